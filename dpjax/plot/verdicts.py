"""What the referee saw."""

from typing import TYPE_CHECKING, Any

import numpy as np

from dpjax.plot.style import POSTERIOR, RELEASED, legend_above, new_axes, tidy
from dpjax.posterior import merge

if TYPE_CHECKING:
    from dpjax.refereeing.verdict import Verdict

MAX_ROWS = 40
QUANTILES = (0.05, 0.5, 0.95)
SIDES = {"draws": (-0.13, RELEASED), "after exact sweeps": (0.13, POSTERIOR)}


def plot_verdict(verdict: "Verdict", axes: Any = None) -> Any:
    """The axes with median and central 90 % of draws and ends, a row for each parameter; see `Verdict.plot`."""
    rows = np.arange(min(len(verdict.rows), MAX_ROWS))
    axes = new_axes(axes, 6.0, 1.4 + 0.35 * len(rows))
    draws, _, after = verdict.standardised
    for (label, (shift, colour)), scores in zip(SIDES.items(), (merge(draws), after), strict=True):
        low, middle, high = np.quantile(scores[:, rows], QUANTILES, axis=0)
        axes.hlines(rows + shift, low, high, color=colour, linewidth=2)
        axes.plot(middle, rows + shift, "o", color=colour, markersize=4, label=label)
    axes.set(yticks=rows, yticklabels=[verdict.rows[row] for row in rows], ylim=(len(rows) - 0.5, -0.5))
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("standard deviations of the draws from their mean")
    axes.set_title(f"{verdict.outcome}, after {verdict.num_sweeps} sweeps", pad=24)
    legend_above(axes)
    tidy(axes, "left")
    return axes
