"""The demo's figure: for every quantity three densities, and their means and 95 % intervals below."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.stats import gaussian_kde

from dpjax.demo.comparison import WAYS, Comparison, interval

COLOURS = dict(zip(WAYS, ("#3d3d3d", "#d95f02", "#1f6fb4"), strict=True))
LABELS = dict(
    zip(WAYS, ("confidential data", "release, noise ignored", "release, noise accounted for (dpjax)"), strict=True)
)
TALLEST, FIRST_BAR, BAR_STEP = 0.52, -0.08, 0.11
MAX_KDE_DRAWS = 5_000


def draw(comparisons: Sequence[Comparison]) -> Figure:
    """One panel for each comparison."""
    figure = Figure(figsize=(12.5, 5.2), layout="constrained")
    for axes, comparison in zip(figure.subplots(1, len(comparisons)), comparisons, strict=True):
        draw_panel(axes, comparison)
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(WAYS), frameon=False, fontsize=11)
    return figure


def draw_panel(axes: Axes, comparison: Comparison) -> None:
    """One row for each quantity, the first on top."""
    names = list(comparison.dpjax)
    for row, name in enumerate(reversed(names)):
        for place, (way, answer) in enumerate(comparison.answers.items()):
            label = LABELS[way] if row == 0 else None
            draw_answer(axes, answer[name].ravel(), row, FIRST_BAR - BAR_STEP * place, COLOURS[way], label)
    if comparison.reference is not None:
        axes.axvline(comparison.reference, color="0.75", linewidth=1, linestyle=(0, (4, 3)), zorder=0)
    axes.set_title(comparison.title, fontsize=12, loc="left")
    axes.set_xlabel(comparison.measure, fontsize=10.5)
    axes.set_yticks(range(len(names)), reversed(names), fontsize=10.5)
    axes.tick_params(axis="y", length=0)
    axes.spines[["left", "top", "right"]].set_visible(False)


def draw_answer(axes: Axes, draws: np.ndarray, row: float, below: float, colour: str, label: str | None) -> None:
    """The density of draws above the height `row`, its mean and interval below."""
    low, high = interval(draws)
    axes.plot([low, high], [row + below] * 2, color=colour, linewidth=2.2, solid_capstyle="butt", label=label)
    axes.plot(np.mean(draws), row + below, "o", color=colour, markersize=5)
    grid = np.linspace(*np.quantile(draws, [0.001, 0.999]), 200)
    density = gaussian_kde(draws[:: 1 + len(draws) // MAX_KDE_DRAWS])(grid)
    height = row + TALLEST * density / np.max(density)
    axes.fill_between(grid, row, height, color=colour, alpha=0.16, linewidth=0)
    axes.plot(grid, height, color=colour, linewidth=1.2)
