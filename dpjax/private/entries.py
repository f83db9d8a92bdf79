"""Entries of records as numbers of a type: each is converted by itself, so that none changes what another one is.

The type is fixed before. An entry that it does not hold is 0, and is said to be unreadable; nothing is raised.
"""

import warnings
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import inf
from typing import Any, NamedTuple, Self

import jax
import jax.numpy as jnp
import numpy as np
from jax.dtypes import canonicalize_dtype

from dpjax._util.validation import fail
from dpjax.private.columns import entries_of

__all__ = ["LevelCodes", "Reading", "check_array_type", "check_plain", "convert", "jax_type", "read_column", "silent"]

LARGEST_WHOLE = 2.0**53
"""From here on floats do not tell whole numbers apart."""
LONGEST = 2**63
"""Whole numbers of Python below it are NumPy's."""


@contextmanager
def silent() -> Iterator[None]:
    """In it neither Python nor NumPy warns of an entry, nor raises where warnings are errors."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def check_plain(leaf: Any) -> None:
    """Raise if a field is traced, or holds keys."""
    if isinstance(leaf, jax.core.Tracer):
        fail("records", "traced arrays", "arrays", "Release outside of jax.jit and jax.vmap.", error=TypeError)
    if isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        fail("records", "an array of keys", "numbers", "Pass the records themselves.", error=TypeError)


def check_array_type(array: Any) -> None:
    """Raise unless an array is of numbers: by its type alone, whatever they are."""
    check_plain(array)
    if isinstance(array, np.ma.MaskedArray):
        remedy = "Drop or impute what is masked beforehand, and pass a plain array."
        fail("records", "a masked array, whose mask would be ignored", "a plain array", remedy, error=TypeError)
    jax_type("records", array.dtype)


def jax_type(argument: str, dtype: np.dtype) -> np.dtype:
    """The type that JAX has for numbers of a type, or an error if they are none."""
    if dtype.kind not in "biuf" or dtype.itemsize > 8:
        fail(argument, f"an array of {dtype}", "numbers", "Encode categories as integers.", error=TypeError)
    return np.dtype(canonicalize_dtype(dtype.newbyteorder("=")))


def convert(values: np.ndarray, dtype: np.dtype, largest: float = inf) -> tuple[np.ndarray, np.ndarray]:
    """Numbers [...] in a type, each by itself, and where the type holds them [...]; elsewhere they are 0.

    It holds what is finite, in its range, and whole if the type is. Whole numbers from `largest` on count as not held.
    Others are rounded to float64 first, so that what was made a float64 before is the same.
    """
    with np.errstate(all="ignore"):
        wide = values.astype(np.float64)
        is_whole = wide == np.rint(wide)
        is_held = np.isfinite(wide) & ~(is_whole & (np.abs(wide) >= largest))
        if dtype.kind == "f":
            held = wide.astype(dtype)
            is_held &= np.isfinite(held)
        else:
            if values.dtype.kind not in "iu":
                is_held &= is_whole & (np.abs(wide) < LARGEST_WHOLE)
                values = np.where(is_held, wide, 0.0).astype(np.int64)
            low, high = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
            is_held &= (values >= low) & (values <= high)
            held = values.astype(dtype)
    return np.where(is_held, held, np.zeros((), dtype)), is_held


class LevelCodes(NamedTuple):
    """How entries of a field say which of its declared levels they are.

    Attributes
    ----------
    texts
        The code of each name.
    numbers
        The code that a whole number stands for: itself, unless names are whole numbers.
    flags
        The codes of False and True.
    """

    texts: dict[str, int]
    numbers: dict[int, int]
    flags: dict[int, int]

    @classmethod
    def of(cls, names: Sequence[str]) -> Self:
        """Those of levels with names."""
        texts = {name: code for code, name in enumerate(names)}
        wholes = [int(name) for name in names if name.isdecimal()]
        named = {int(name): code for name, code in texts.items() if name.isdecimal() and wholes.count(int(name)) == 1}
        numbers = named if wholes else {code: code for code in range(len(names))}
        own = {flag: texts[str(bool(flag))] for flag in (0, 1) if str(bool(flag)) in texts}
        return cls(texts, numbers, own or numbers)

    def codes(self, values: np.ndarray, kind: str) -> tuple[np.ndarray, np.ndarray]:
        """The codes [...] that whole numbers of a kind of type stand for, and which of them [...] are of a level."""
        known = self.flags if kind == "b" else self.numbers
        given = np.array([-1, *sorted(known)], np.int64)
        places = np.searchsorted(given, np.maximum(values, -1), side="right") - 1
        codes = np.array([-1, *(known[one] for one in sorted(known))], values.dtype)[places]
        return codes, (given[places] == values) & (codes >= 0)


class Reading(NamedTuple):
    """What each entry of a field is converted to.

    Attributes
    ----------
    dtype
        One of JAX's types.
    shape
        The shape of an entry.
    largest
        From here on whole numbers are unreadable, as the type does not tell them apart.
    levels
        The levels of a field of categories that have names, else None.
    """

    dtype: np.dtype
    shape: tuple[int, ...] = ()
    largest: float = inf
    levels: LevelCodes | None = None

    def convert(self, values: np.ndarray, largest: float) -> tuple[np.ndarray, np.ndarray]:
        """Numbers [...] in the type, or the codes of their levels, and where there are such [...]."""
        held, is_held = convert(values, self.dtype, min(largest, self.largest))
        if self.levels is None:
            return held, is_held
        codes, is_level = self.levels.codes(held, values.dtype.kind)
        return codes, is_held & is_level


def read_column(column: Any, reading: Reading) -> tuple[np.ndarray, np.ndarray]:
    """The entries [m, ...] of a column in a type, and where [m, ...] these are numbers which it holds.

    Whole numbers of a table are read below 2^53 alone: those beyond may have been made floats, in all rows, by an entry
    of another row.
    """
    if isinstance(column, np.ma.MaskedArray):
        check_array_type(column)
    is_promoted = hasattr(column, "to_numpy") and reading.dtype.kind != "f"
    largest, column = LARGEST_WHOLE if is_promoted else inf, entries_of(column)
    if isinstance(column, np.ndarray) and column.dtype.kind in "biuf" and column.shape[1:] == reading.shape:
        return reading.convert(column, largest)
    return read_entries(list(column), reading, largest)


def read_entries(entries: Sequence[Any], reading: Reading, largest: float) -> tuple[np.ndarray, np.ndarray]:
    """The same of entries of any kind; those of one type at a time."""
    shape, texts = reading.shape, reading.levels.texts if reading.levels else {}
    values, is_held = np.zeros((len(entries), *shape), reading.dtype), np.zeros((len(entries), *shape), bool)
    groups: defaultdict[Any, tuple[list[int], list[Any]]] = defaultdict(lambda: ([], []))
    for place, entry in enumerate(entries):
        if type(entry) in (str, np.str_):
            values[place], is_held[place] = texts.get(entry, 0), entry in texts
        elif (numbers := read_entry(entry, shape)) is not None:
            places, group = groups[getattr(numbers, "dtype", type(numbers))]
            places.append(place)
            group.append(numbers)
    for places, group in groups.values():
        values[places], is_held[places] = reading.convert(np.array(group), largest)
    return values, is_held


def read_entry(entry: Any, shape: tuple[int, ...]) -> np.ndarray | float | None:
    """The numbers of an entry, or None if it is something else, or of another shape."""
    if not shape and (type(entry) is float or (type(entry) is int and -LONGEST <= entry < LONGEST)):
        return entry
    try:
        array = np.asarray(entry.tolist() if isinstance(entry, np.ndarray) and entry.dtype == object else entry)
    except Exception:  # whatever an entry may raise
        return None
    is_number = array.dtype.kind in "biuf" and array.shape == shape and not isinstance(entry, np.ma.MaskedArray)
    return array if is_number else None
