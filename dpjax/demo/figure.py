"""The demo's figure: densities and intervals of the tables, and lines with bands of the regression."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.stats import gaussian_kde

from dpjax.demo.comparison import WAYS, Answer, Comparison, interval
from dpjax.demo.diabetes import TYPICAL_BMI, load
from dpjax.plot.style import INK, NAIVE, POSTERIOR

COLOURS = dict(zip(WAYS, (INK, NAIVE, POSTERIOR), strict=True))
LABELS = dict(zip(WAYS, ("confidential data", "release, noise ignored", "release, with dpjax"), strict=True))
SHADE = 0.16
MAX_KDE_DRAWS = 5_000


def draw(comparisons: Sequence[Comparison], upright: bool = False) -> Figure:
    """One panel for each comparison, side by side or, for a telephone, one below the other."""
    figure = Figure(figsize=(4.8, 13.5) if upright else (12.5, 5), layout="constrained")
    left, middle, right = figure.subplots(*((3, 1) if upright else (1, 3)))
    admissions, titanic, diabetes = comparisons
    draw_quantities(left, admissions)
    left.axvline(0, color="0.8", linewidth=1, zorder=0)
    left.set_xlim(-3, 2)
    draw_quantities(middle, titanic)
    draw_lines(right, diabetes)
    for axes, comparison in zip((left, middle, right), comparisons, strict=True):
        axes.set_title(comparison.title, fontsize=12, fontweight="bold", pad=20)
        axes.text(0.5, 1.02, comparison.promise, transform=axes.transAxes, ha="center", color="0.35")
        axes.spines[["top", "right"]].set_visible(False)
    columns = 1 if upright else 3
    entries = right.get_legend_handles_labels()
    figure.legend(*entries, loc="outside lower center", ncols=columns, frameon=False, fontsize=11)
    return figure


def draw_quantities(axes: Axes, comparison: Comparison) -> None:
    """One row for each quantity, the first on top: densities above its base line, means and intervals below."""
    names = list(reversed(comparison.dpjax))
    step = 0.02 * len(names)
    for row, name in enumerate(names):
        for place, (way, answer) in enumerate(comparison.answers.items(), 1):
            draws = answer[name].ravel()
            draw_density(axes, draws, row, 0.9 - 3.5 * step, COLOURS[way])
            draw_interval(axes, draws, row - step * place, COLOURS[way])
    axes.set_yticks(range(len(names)), names, fontsize=11)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.set_xlabel(comparison.measure)


def draw_density(axes: Axes, draws: np.ndarray, base: float, height: float, colour: str) -> None:
    """The density of draws above a base line, scaled to a height."""
    low, high = np.quantile(draws, [0.001, 0.999])
    grid = np.linspace(low, high, 200)
    density = gaussian_kde(draws[:: 1 + len(draws) // MAX_KDE_DRAWS])(grid)
    outline = base + height * density / np.max(density)
    axes.fill_between(grid, base, outline, color=colour, alpha=SHADE, linewidth=0)
    axes.plot(grid, outline, color=colour, linewidth=1.2)


def draw_interval(axes: Axes, draws: np.ndarray, place: float, colour: str) -> None:
    """The mean and the 95 % interval of draws."""
    axes.plot(interval(draws), (place, place), color=colour, linewidth=2, solid_capstyle="butt")
    axes.plot(np.mean(draws), place, "o", color=colour, markersize=4.5)


def draw_lines(axes: Axes, comparison: Comparison) -> None:
    """The regression line of each answer with its 95 % band, over the confidential data."""
    bmi, score = load()
    axes.plot(bmi, score, ".", color="0.78", markersize=3.5, zorder=0)
    grid = np.linspace(np.min(bmi), np.max(bmi), 50)
    for way, answer in comparison.answers.items():
        low, middle, high = np.quantile(lines(answer, grid), [0.025, 0.5, 0.975], axis=0)
        axes.fill_between(grid, low, high, color=COLOURS[way], alpha=SHADE, linewidth=0)
        axes.plot(grid, middle, color=COLOURS[way], linewidth=1.8, label=LABELS[way])
        for edge in (low, high):
            axes.plot(grid, edge, color=COLOURS[way], linewidth=0.6)
    axes.set(xlabel="body mass index, kg/m²", ylabel=comparison.measure, ylim=(0, 360))


def lines(answer: Answer, grid: np.ndarray) -> np.ndarray:
    """The regression lines [draw, grid] at a grid of body mass indices."""
    level, slope, _ = (draws.ravel()[:, None] for draws in answer.values())
    return level + slope * (grid - TYPICAL_BMI)
