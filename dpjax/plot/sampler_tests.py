"""Figures of sampler tests: rank histograms of SBC, and intervals of invariance tests."""

from typing import Any

import numpy as np
import scipy

from dpjax.diagnostics.summary import entry_names
from dpjax.plot.style import BAND, POSTERIOR, RELEASED, legend_above, new_axes, panels_in_rows, tidy
from dpjax.posterior.posterior import merge
from dpjax.sampler_tests.invariance_test_result import InvarianceTestResult
from dpjax.sampler_tests.sbc_result import SBCResult

MAX_PANELS, MAX_COLUMNS = 24, 4
"""Largest number of rank histograms, and of columns of them."""

COVERED = 0.99
"""Probability of the band of each bin."""

MAX_ROWS = 40
"""Largest number of parameters of an invariance test."""

QUANTILES = (0.05, 0.5, 0.95)
SIDES = {"draws": (-0.13, RELEASED), "after exact sweeps": (0.13, POSTERIOR)}


def plot_ranks(calibration: SBCResult, *, axes: Any) -> Any:
    """The axes [quantity] with a histogram for each scalar quantity, up to 24; see `SBCResult.plot`."""
    counts = dict(list(panels_of(calibration).items())[:MAX_PANELS])
    what = f"one for each quantity, of which the first {MAX_PANELS} are shown"
    panels = panels_in_rows(axes, len(counts), what, MAX_COLUMNS, height=2.2)
    for panel, (name, bins) in zip(panels, counts.items(), strict=True):
        draw_histogram(panel, calibration, name, bins)
    return np.array(panels)


def panels_of(calibration: SBCResult) -> dict[str, np.ndarray]:
    """The counts [bin] of each scalar quantity."""
    panels: dict[str, np.ndarray] = {}
    for name, counts in calibration.counts().items():
        flat = counts.reshape(len(counts), -1)
        panels |= dict(zip(entry_names(name, {"counts": counts[0]}), flat.T, strict=True))
    return panels


def draw_histogram(axes: Any, calibration: SBCResult, name: str, counts: np.ndarray) -> None:
    """The counts [bin] with the band of their distribution."""
    expected = calibration.expected_counts()
    low, high = scipy.stats.binom.interval(COVERED, calibration.num_replicates, expected / expected.sum())
    edges = np.append(0.0, np.cumsum(expected) / expected.sum())
    axes.stairs(high, edges, baseline=low, fill=True, color=BAND)
    axes.stairs(counts, edges, color=POSTERIOR, linewidth=1.5)
    axes.set(title=name, xlim=(0, 1), ylim=(0, 1.1 * max(np.max(high), np.max(counts))))
    axes.locator_params(axis="y", nbins=4, integer=True)
    axes.set(xlabel="rank / number of draws", ylabel="replicates")
    tidy(axes)


def plot_verdict(verdict: InvarianceTestResult, *, axes: Any) -> Any:
    """The axes with median and 90 % interval of draws and ends by parameter; see `InvarianceTestResult.plot`."""
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
