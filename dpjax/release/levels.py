"""Categories with names: values that are names become codes 0, 1, ..., and the names are kept for summaries."""

from typing import Any

import numpy as np

from dpjax._util.validation import describe, fail, is_gap, name_of, plain
from dpjax.statistics.labels import read_levels

__all__ = ["Names", "check_number_of", "in_words", "to_codes"]

Names = tuple[str, ...] | None
"""The names of the categories of a field in the order of their numbers, if they have names."""

REMEDY = "Pass the names of all categories of the channel in their order, also of those that nobody reported."


def to_codes(argument: str, values: Any, levels: Any) -> tuple[Any, Names]:
    """Values as numbers, with the names of their categories; NaN where a name is missing.

    Parameters
    ----------
    argument
        What errors call the values.
    values : [n] or [n, k]
        Numbers, names, or a categorical Series of pandas, which has names of its own.
    levels
        The names of the categories in the order of their numbers; None for numbers, and for categorical values.
    """
    own = getattr(getattr(values, "cat", values), "categories", None)
    if levels is None and own is None:
        if has_names(values):
            fail(argument, "names", "numbers, or names with levels", REMEDY, error=TypeError)
        return plain(values), None
    found = read_levels(levels if own is None or levels is not None else list(map(str, own)))
    if found is None or len(found) != 1:
        fail("levels", describe(levels), "the names of the categories of one field", REMEDY)
    [names] = found
    return (look_up(argument, values, names) if own is not None or has_names(values) else values), names


def has_names(values: Any) -> bool:
    """Whether there are texts among the values."""
    try:
        array = np.asarray(values)
    except Exception:  # traced or ragged ones, and others', of which later checks say what is wrong
        return False
    return array.dtype.kind in "OSU" and any(isinstance(value, str) for value in array.ravel().tolist())


def look_up(argument: str, values: Any, names: tuple[str, ...]) -> np.ndarray:
    """The places of values among names; NaN where a value is missing."""
    places: dict[str, float] = {name: place for place, name in enumerate(names)}
    array = np.asarray(values, object)
    found = [np.nan if is_gap(value) else places.get(str(value)) for value in array.ravel()]
    if None in found:
        fail(argument, repr(array.ravel()[found.index(None)]), f"names among {list(names)}", REMEDY)
    codes = np.array(found, float).reshape(array.shape)
    return codes if np.isnan(codes).any() else codes.astype(int)


def check_number_of(levels: Names, channel: Any) -> None:
    """Raise unless there are as many names as the channel has categories, if it is known; noise on numbers has none."""
    size = channel.sums.categories
    if levels is not None and channel.noise is not None and not channel.sums.known:
        fail("levels", f"names of categories under {name_of(channel)} noise", "a channel of categories", REMEDY)
    if levels is not None and size not in (None, len(levels)):
        fail("levels", f"{len(levels)} names", f"{size}, the number of categories of the channel", REMEDY)


def in_words(field: str, levels: Names) -> str:
    """A field with the names of its categories."""
    return f"`{field}`" if levels is None else f"`{field}` ({', '.join(levels)})"
