"""Figures of designs of releases: what widths readers can expect."""

from math import sqrt
from typing import Any

import numpy as np

from dpjax.plot.style import legend_above, panels_in_rows, styles_of, tidy
from dpjax.private.planning.design import Design

MAX_COLUMNS = 3


def plot_widths(design: Design, *, axes: Any) -> Any:
    """The axes [parameter] with the mean widths of each candidate against ε; see `private.Design.plot`."""
    scalars = dict(design.scalars())
    panels = panels_in_rows(axes, len(scalars), "one for each scalar parameter", MAX_COLUMNS, height=2.6)
    epsilons = np.array([budget.epsilon for budget in design.budgets])
    for panel, (name, widths) in zip(panels, scalars.items(), strict=True):
        for (candidate, style), one in zip(styles_of(design.candidates).items(), widths, strict=True):
            draw_line(panel, epsilons, one, candidate, style)
        panel.set(
            xscale="log", ylim=(0, None), xlabel="ε", ylabel=f"{name}: width of {100 * design.level:g} % interval"
        )
        panel.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons], minor=False)
        panel.set_xticks([], minor=True)
        tidy(panel)
    if len(design.candidates) > 1:
        legend_above(panels[0])
    return np.array(panels)


def draw_line(axes: Any, epsilons: np.ndarray, widths: np.ndarray, label: str, style: dict[str, str]) -> None:
    """The mean widths of one candidate with two standard errors either way, from widths [budget, release]."""
    order = np.argsort(epsilons)
    errors = 2 * widths.std(axis=1, ddof=1) / sqrt(widths.shape[1])
    axes.errorbar(epsilons[order], widths.mean(axis=1)[order], errors[order], label=label, linewidth=1.2, **style)
