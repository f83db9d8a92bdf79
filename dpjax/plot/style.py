"""The style of all figures: colours for every kind of colour vision, marks, and axes.

Each colour has one meaning in all figures. Blue is what dpjax computes, and orange what ignores the noise. Dark grey is
what something is compared with: the truth, the confidential data, a proven bound, or a released value in front of its
predictions. Middle grey is a released value with its noise, and light grey a band of expected values. Purple is another
estimate, and red what is out of bounds. Series without such a meaning take the colours of `SERIES`.
"""

from collections.abc import Iterable, Sequence
from itertools import cycle
from typing import Any

import numpy as np

from dpjax._util.validation import describe_array, fail, name_of, read_numbers
from dpjax.release import PrivateRelease
from dpjax.statistics.base import coordinate_names_of

POSTERIOR = "#1f6fb4"
"""Colour of results of dpjax; blue and orange differ for every kind of colour vision, and in brightness."""

NAIVE = "#d95f02"
"""Colour of results that ignore the noise."""

OTHER = "#b5589a"
"""Colour of other estimates, such as least squares."""

OUTSIDE = "#c1121f"
"""Colour of what is out of bounds, such as a released value that the model does not predict; it has a mark, too."""

ZERO = "0.8"
"""Colour of lines at zero."""

INK = "#404040"
"""Colour of references, such as results from the confidential data, or bounds."""

RELEASED = "0.55"
"""Colour of released values."""

BAND = "0.85"
"""Colour of bands of expected values."""

SERIES = (POSTERIOR, OTHER, "#56b4e9", "#117733", "#e6a700", "#882255")
MARKS = ("o", "s", "D", "^", "v", "P")
"""Colours and marks of several series; marks make them distinguishable without colour."""

KNOWN = {"dpjax": POSTERIOR, "posterior": POSTERIOR, "naive": NAIVE, "non-private": INK}
"""Colours of series with well-known names."""

MAX_SHOWN = 60
"""Default largest number of values in one panel."""

MAX_HORIZONTAL, MAX_LETTERS = 12, 48
"""Largest number of tick labels, and of their letters, that are not rotated."""


def new_axes(axes: Any = None, width: float = 5.5, height: float = 3.2) -> Any:
    """The given axes, or those of a new figure of this size in inches.

    Raises
    ------
    TypeError
        If the argument is not one Matplotlib Axes.
    """
    if axes is None:
        return new_panels(1, 1, width, height)[0]
    if not hasattr(axes, "get_figure"):  # a data frame has a method to plot, too
        remedy = "Pass one panel of plt.subplots(), or leave it out for a new figure."
        fail("axes", name_of(axes), "one Matplotlib Axes", remedy, error=TypeError)
    return axes


def new_panels(rows: int, columns: int, width: float, height: float) -> list[Any]:
    """The axes of a new figure of this size in inches, row by row."""
    figure = pyplot().figure(figsize=(width, height), layout="constrained")
    return list(np.ravel(figure.subplots(rows, columns)))


def panels_in_rows(axes: Any, number: int, what: str, most_columns: int, height: float) -> list[Any]:
    """The given axes, or those of a new figure in rows of this height in inches, without empty panels."""
    if axes is not None:
        return own_panels(axes, number, what)
    columns = min(most_columns, number)
    rows = -(-number // columns)
    panels = new_panels(rows, columns, 3 * columns, height * rows)
    for empty in panels[number:]:
        empty.remove()
    return panels[:number]


def own_panels(axes: Any, number: int, what: str) -> list[Any]:
    """The given axes, or an error if their number is wrong."""
    panels = list(np.ravel(axes))
    if len(panels) != number:
        fail("axes", f"{len(panels)} axes", f"{number}, {what}", "Make as many subplots.")
    return [new_axes(panel) for panel in panels]


def pyplot() -> Any:
    """Matplotlib's pyplot.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    """
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError("matplotlib: not installed; expected for plots. Run pip install arviz matplotlib.") from error
    return pyplot


def styles_of(names: Iterable[str]) -> dict[str, dict[str, str]]:
    """The colour and mark of each of several series; well-known names have fixed colours."""
    names = list(names)
    taken = {KNOWN.get(name) for name in names}
    others = cycle([colour for colour in SERIES if colour not in taken] or SERIES)
    return {
        name: {"color": KNOWN.get(name) or next(others), "marker": mark}
        for name, mark in zip(names, cycle(MARKS), strict=False)
    }


def tidy(axes: Any, *sides: str) -> None:
    """Hide the spines at these sides of the axes, and those above and at the right."""
    axes.spines[["top", "right", *sides]].set_visible(False)


def line_at_zero(axes: Any) -> None:
    """Draw a line at 0 of the horizontal axis, if 0 is within it."""
    low, high = axes.get_xlim()
    if low < 0 < high:
        axes.axvline(0, color=ZERO, linewidth=1, zorder=0)


def legend_above(axes: Any, *, stacked: bool = False) -> None:
    """Add a legend above the axes, in one line or, stacked, one line for each entry."""
    number = 1 if stacked else len(axes.get_legend_handles_labels()[1])
    place = {"loc": "lower left", "bbox_to_anchor": (0, 1), "borderaxespad": 0.2, "ncols": number}
    axes.legend(frameon=False, fontsize="small", handlelength=1.4, columnspacing=1.2, **place)


def check_labels(labels: Sequence[str] | None, release: PrivateRelease, size: int) -> np.ndarray:
    """The names [d] of the released numbers, by default those of the statistic or their places."""
    own = coordinate_names_of(None if release.summed is None else release.summed.statistic, size)
    names = np.asarray(own if labels is None else labels, str)
    if names.shape != (size,):
        fail("labels", f"shape {list(names.shape)}", f"{size} names", "Give each released number a name.")
    return names


def choose_places(show: Sequence[int] | None, parts: Sequence[slice]) -> list[np.ndarray]:
    """The places to show of each part of a release: the requested or the first ones; without parts that have none."""
    if show is None:
        return [np.arange(where.start, min(where.stop, where.start + MAX_SHOWN)) for where in parts]
    expected, remedy = f"numbers from 0 to {parts[-1].stop - 1}", "Number the released values from 0."
    numbers = read_numbers("show", show, expected, remedy)
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu" or np.any((numbers < 0) | (numbers >= parts[-1].stop)):
        fail("show", describe_array(numbers), expected, remedy)
    chosen = [numbers[(numbers >= where.start) & (numbers < where.stop)] for where in parts]
    return [some for some in chosen if len(some)] or fail("show", "nothing", expected, "Leave it out for all.")


def name_places(axes: Any, names: np.ndarray) -> None:
    """Label the places 0, 1, … of the horizontal axis, slanted if labels are long, vertical if they are many."""
    axes.set_xticks(range(len(names)), names)
    axes.tick_params(axis="x", length=0)
    if len(names) > MAX_HORIZONTAL:
        axes.tick_params(axis="x", rotation=90)
    elif sum(map(len, names)) > MAX_LETTERS:
        for label in axes.get_xticklabels():
            label.set(rotation=30, ha="right", rotation_mode="anchor")
