"""What the referee saw, by Matplotlib."""

from typing import TYPE_CHECKING, Any

import numpy as np

from dpjax.adapters.figures import make_figure
from dpjax.posterior import merge

if TYPE_CHECKING:
    from dpjax.refereeing.verdict import Verdict

MAX_ROWS = 40
QUANTILES = (0.05, 0.5, 0.95)
SIDES = {"draws": (-0.13, "0.55"), "after exact sweeps": (0.13, "#1f6fb4")}


def plot_verdict(verdict: "Verdict") -> Any:
    """A figure with the median and central 90 % of draws and ends, a row for each of up to 40 scalar parameters.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    """
    rows = np.arange(min(len(verdict.rows), MAX_ROWS))
    axes = (figure := make_figure(6, 1.2 + 0.35 * len(rows))).add_subplot()
    draws, _, after = verdict.standardised
    for (label, (shift, color)), scores in zip(SIDES.items(), (merge(draws), after), strict=True):
        low, middle, high = np.quantile(scores[:, rows], QUANTILES, axis=0)
        axes.hlines(rows + shift, low, high, color=color, linewidth=2)
        axes.plot(middle, rows + shift, "o", color=color, markersize=4, label=label)
    axes.set(yticks=rows, yticklabels=[verdict.rows[row] for row in rows], ylim=(len(rows) - 0.5, -0.5))
    axes.set_xlabel("standard deviations of the draws from their mean")
    axes.set_title(f"{verdict.outcome}, after {verdict.num_sweeps} sweeps")
    figure.legend(frameon=False, loc="outside lower center", ncols=len(SIDES))
    return figure
