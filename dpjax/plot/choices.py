"""Which of the released numbers a picture shows, and by what names."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from dpjax.validation import fail, read_numbers, summarize

MAX_SHOWN = 60
"""Numbers in one panel, unless others are asked for."""

MAX_UPRIGHT = 12
MAX_LETTERS = 48
"""So many names, of so many letters, are written in the direction of reading in one panel."""


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
