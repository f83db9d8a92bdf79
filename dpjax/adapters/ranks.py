"""Rank histograms of a calibration, by Matplotlib."""

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats

from dpjax.adapters.figures import make_figure
from dpjax.summary import entry_names

if TYPE_CHECKING:
    from dpjax.simulation_based_calibration.result import Calibration

MAX_PANELS = 24
MAX_COLUMNS = 4
COVERED = 0.99


def plot_ranks(calibration: "Calibration") -> Any:
    """A figure of one histogram for each scalar quantity, up to 24, with the band that holds 99 % of uniform bars.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    """
    panels = list(panels_of(calibration).items())[:MAX_PANELS]
    columns = min(MAX_COLUMNS, len(panels))
    rows = -(-len(panels) // columns)
    figure = make_figure(3 * columns, 2.2 * rows)
    for place, (name, counts) in enumerate(panels, 1):
        draw_histogram(figure.add_subplot(rows, columns, place), calibration, name, counts)
    return figure


def panels_of(calibration: "Calibration") -> dict[str, np.ndarray]:
    """The counts [bin] of each scalar quantity."""
    panels: dict[str, np.ndarray] = {}
    for name, counts in calibration.counts().items():
        flat = counts.reshape(len(counts), -1)
        panels |= dict(zip(entry_names(name, {"counts": counts[0]}), flat.T, strict=True))
    return panels


def draw_histogram(axes: Any, calibration: "Calibration", name: str, counts: np.ndarray) -> None:
    """Bars of the counts [bin] with their band."""
    expected = calibration.expected_counts()
    low, high = stats.binom.interval(COVERED, calibration.num_replicates, expected / expected.sum())
    edges = np.append(0.0, np.cumsum(expected) / expected.sum())
    axes.stairs(high, edges, baseline=low, fill=True, color="0.85")
    axes.stairs(counts, edges, color="#1f6fb4", linewidth=1.5)
    axes.set(title=name, xlim=(0, 1), ylim=(0, 1.1 * max(np.max(high), np.max(counts))), yticks=[])
    axes.set_xlabel("rank / number of draws")
