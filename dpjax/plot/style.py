"""The look of all pictures: colours that the colour-blind can tell apart, marks, and new axes in one style."""

from collections.abc import Iterable, Sequence
from itertools import cycle
from typing import Any

import numpy as np

from dpjax._util.validation import fail, read_numbers, summarize

POSTERIOR = "#1f6fb4"
"""Of what dpjax says; blue and orange differ for every kind of colour vision, and in brightness."""

NAIVE = "#d95f02"
"""Of what is wrong, or ignores the noise."""

INK = "#404040"
"""Of marks and lines that everything else is compared with, such as what only the data holder knows."""

RELEASED = "0.55"
"""Of what was published."""

BAND = "0.85"
"""Of what is to be expected."""

SERIES = (POSTERIOR, NAIVE, INK, "#56b4e9", "#b5589a", "#e6a700")
MARKS = ("o", "s", "D", "^", "v", "P")
"""Of the first, second, … of several things beside each other; each has a mark, too, so that print in grey will do."""

KNOWN = {"dpjax": POSTERIOR, "posterior": POSTERIOR, "naive": NAIVE, "non-private": INK}
"""Names that have a colour of their own, wherever they stand."""

MAX_SHOWN = 60
"""Numbers in one panel, unless others are asked for."""

MAX_UPRIGHT = 12
MAX_LETTERS = 48
"""So many names, of so many letters, are written in the direction of reading in one panel."""


def new_axes(axes: Any = None, width: float = 5.5, height: float = 3.2) -> Any:
    """The axes given, or those of a new figure of this size in inches.

    Raises
    ------
    TypeError
        If what is given are no axes.
    """
    if axes is None:
        return new_panels(1, 1, width, height)[0]
    if not hasattr(axes, "plot"):
        remedy = "Pass one panel of plt.subplots(), or leave it out for a new figure."
        fail("axes", type(axes).__name__, "one Matplotlib Axes", remedy, error=TypeError)
    return axes


def new_panels(rows: int, columns: int, width: float, height: float) -> list[Any]:
    """The axes of a new figure of this size in inches, row by row."""
    figure = pyplot().figure(figsize=(width, height), layout="constrained")
    return list(np.ravel(figure.subplots(rows, columns)))


def own_panels(axes: Any, number: int, what: str) -> list[Any]:
    """The axes given, or an error if there are not as many as are drawn."""
    panels = list(np.ravel(axes))
    if len(panels) != number:
        fail("axes", f"{len(panels)} axes", f"{number}, {what}", "Make as many subplots.")
    return [new_axes(panel) for panel in panels]


def pyplot() -> Any:
    """Matplotlib's pyplot, whose figures notebooks show.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    """
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError('matplotlib: not installed; expected for plots. Run pip install "dpjax[plots]".') from error
    return pyplot


def looks_of(names: Iterable[str]) -> dict[str, dict[str, str]]:
    """The colour and mark of each of several things; well-known names keep their colours."""
    names = list(names)
    taken = {KNOWN.get(name) for name in names}
    others = cycle([colour for colour in SERIES if colour not in taken] or SERIES)
    return {
        name: {"color": KNOWN.get(name) or next(others), "marker": mark}
        for name, mark in zip(names, cycle(MARKS), strict=False)
    }


def tidy(axes: Any, *sides: str) -> None:
    """Take away the lines at these sides of the axes, and those above and at the right."""
    axes.spines[["top", "right", *sides]].set_visible(False)


def legend_above(axes: Any, *, stacked: bool = False) -> None:
    """A legend on top of the axes, in one line, or where its texts are long in a line for each."""
    number = 1 if stacked else len(axes.get_legend_handles_labels()[1])
    place = {"loc": "lower left", "bbox_to_anchor": (0, 1), "borderaxespad": 0.2, "ncols": number}
    axes.legend(frameon=False, fontsize="small", handlelength=1.4, columnspacing=1.2, **place)


def check_labels(labels: Sequence[str] | None, size: int) -> np.ndarray:
    """The names [d] of the released numbers, their places by default."""
    names = np.arange(size).astype(str) if labels is None else np.asarray(labels, str)
    if names.shape != (size,):
        fail("labels", f"shape {list(names.shape)}", f"{size} names", "Give each released number a name.")
    return names


def choose_places(show: Sequence[int] | None, parts: Sequence[slice]) -> list[np.ndarray]:
    """The places that each part of a release shows: those asked for, or its first ones; not parts without any."""
    if show is None:
        return [np.arange(where.start, min(where.stop, where.start + MAX_SHOWN)) for where in parts]
    expected, remedy = f"numbers from 0 to {parts[-1].stop - 1}", "Number the released values from 0."
    numbers = read_numbers("show", show, expected, remedy)
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu" or np.any((numbers < 0) | (numbers >= parts[-1].stop)):
        fail("show", summarize(numbers), expected, remedy)
    chosen = [numbers[(numbers >= where.start) & (numbers < where.stop)] for where in parts]
    return [some for some in chosen if len(some)] or fail("show", "nothing", expected, "Leave it out for all.")


def name_places(axes: Any, names: np.ndarray) -> None:
    """Write the names below the places 0, 1, …, at a slant if they are long, and upright if they are many."""
    axes.set_xticks(range(len(names)), names)
    axes.tick_params(axis="x", length=0)
    if len(names) > MAX_UPRIGHT:
        axes.tick_params(axis="x", rotation=90)
    elif sum(map(len, names)) > MAX_LETTERS:
        for label in axes.get_xticklabels():
            label.set(rotation=30, ha="right", rotation_mode="anchor")
