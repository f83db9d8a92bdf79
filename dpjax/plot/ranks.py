"""Rank histograms of a calibration."""

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

from dpjax.plot.style import BAND, POSTERIOR, new_panels, own_panels, tidy
from dpjax.summary import entry_names

if TYPE_CHECKING:
    from dpjax.simulation_based_calibration.result import Calibration

MAX_PANELS = 24
MAX_COLUMNS = 4
COVERED = 0.99


def plot_ranks(calibration: "Calibration", axes: Any = None) -> Any:
    """The axes [quantity] with a histogram for each scalar quantity, up to 24; see `Calibration.plot`."""
    counts = dict(list(panels_of(calibration).items())[:MAX_PANELS])
    panels = choose_panels(axes, len(counts))
    for panel, (name, bins) in zip(panels, counts.items(), strict=True):
        draw_histogram(panel, calibration, name, bins)
    return np.array(panels)


def choose_panels(axes: Any, number: int) -> list[Any]:
    """The axes that were given, or those of a new figure, whose empty places are left white."""
    if axes is not None:
        return own_panels(axes, number, f"one for each quantity, of which the first {MAX_PANELS} are shown")
    columns = min(MAX_COLUMNS, number)
    rows = -(-number // columns)
    panels = new_panels(rows, columns, 3 * columns, 2.2 * rows)
    for empty in panels[number:]:
        empty.remove()
    return panels[:number]


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
    low, high = scipy.stats.binom.interval(COVERED, calibration.num_replicates, expected / expected.sum())
    edges = np.append(0.0, np.cumsum(expected) / expected.sum())
    axes.stairs(high, edges, baseline=low, fill=True, color=BAND)
    axes.stairs(counts, edges, color=POSTERIOR, linewidth=1.5)
    axes.set(title=name, xlim=(0, 1), ylim=(0, 1.1 * max(np.max(high), np.max(counts))), yticks=[])
    axes.set_xlabel("rank / number of draws")
    tidy(axes, "left")
