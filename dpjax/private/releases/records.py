"""Confidential records as they are held: arrays, a table with columns, or batches that are read once.

What a column is, numbers of some type and shape, may show before anything is charged. An array says so itself. Of a
list, or of an array of objects, most of its entries say so. An entry that is unlike these makes its record unreadable,
which shows after the charge.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from jax import ShapeDtypeStruct
from jax.dtypes import canonicalize_dtype

from dpjax._util.validation import fail
from dpjax.private.people import check_plain
from dpjax.private.targets.target import check_records, readable

__all__ = ["Batch", "Columns", "Fields", "read_batches"]

Fields = dict[str, np.ndarray]
Held = dict[str, "Column"]
Columns = Mapping[str, str | list[str]]

LARGEST_WHOLE = 2.0**53
"""Floats below it can be whole numbers that are meant."""

REMEDY = "Pass a dict of arrays, a DataFrame, or an iterable of such batches."


class Column(NamedTuple):
    """A field as it was held.

    Attributes
    ----------
    values
        The entries [m, ...], 0 in place of one that is no number of the shape that most have.
    is_readable : [m]
        Whether an entry is such a number.
    is_inferred
        Whether the type was found from the entries, as that of a list or of a table's column.
    """

    values: np.ndarray
    is_readable: np.ndarray
    is_inferred: bool

    @property
    def form(self) -> tuple[tuple[int, ...], Any]:
        """The shape of an entry, and the type, which is of no account if it was inferred."""
        return self.values.shape[1:], None if self.is_inferred else canonicalize_dtype(self.values.dtype)

    def as_whole(self) -> "Column":
        """The column as integers if its type was inferred and most entries are whole; others are unreadable then."""
        if not self.is_inferred or self.values.dtype.kind != "f":
            return self
        is_whole = (self.values == np.round(self.values)) & (np.abs(self.values) < LARGEST_WHOLE)
        rows = np.all(is_whole.reshape(len(is_whole), -1), axis=1)
        if 2 * np.sum(rows) <= len(rows):
            return self
        return Column(np.where(is_whole, self.values, 0).astype(int), self.is_readable & rows, True)


class Batch(NamedTuple):
    """Records that were read together.

    Attributes
    ----------
    fields
        Arrays [m, ...] by field, 0 in place of what no number in JAX's type is.
    is_readable : [m]
        Whether a record has nothing in it that was replaced.
    """

    fields: Fields
    is_readable: np.ndarray


def read_batches(
    records: Any,
    columns: Columns | None,
    check_fields: Callable[[Any], None] = lambda fields: None,
    check_names: Callable[[Collection[str]], None] = lambda names: None,
) -> Iterator[Batch]:
    """The records in batches, with the empty ones left out.

    Parameters
    ----------
    records
        A dict of arrays, anything with ``columns`` and ``[name].to_numpy()``, such as a pandas DataFrame, or an
        iterable of such batches, which is read once.
    columns
        The column of each field, or several that make a vector; by default each column is a field.
    check_fields
        Raises unless fields have the right names, shapes and types, before their values are looked at.
    check_names
        Raises unless a batch may have fields of these names, of whatever type they are.

    Raises
    ------
    TypeError, ValueError
        If a batch is neither, its entries are not numbers, or it has other fields than the first.
    """
    if columns is not None and not (isinstance(columns, Mapping) and columns):
        remedy = "Pass such as {'x': ['age', 'income'], 'y': 'wage'}."
        fail("columns", repr(columns), "a dict from fields to columns", remedy, error=TypeError)
    first: dict[str, Any] | None = None
    for batch in [records] if is_batch(records) else as_batches(records):
        held = as_fields(batch, columns)
        check_names(held)
        if all(np.shape(column.values)[:1] == (0,) for column in held.values()):
            continue
        held = fit(held, check_fields)
        check_records({name: column.values for name, column in held.items()})
        read = {name: readable(column.values) for name, column in held.items()}
        form = {name: column.form for name, column in held.items()}
        first = first or form
        if form != first:
            remedy = "Give all batches the same fields, of the same shapes and types."
            fail("records", f"a batch of fields {form}", f"fields {first}, as in the first batch", remedy)
        whole = [np.all(found.reshape(len(found), -1), axis=1) for _, found in read.values()]
        whole += [column.is_readable for column in held.values()]
        yield Batch({name: leaf for name, (leaf, _) in read.items()}, np.all(whole, axis=0))


def fit(held: Held, check_fields: Callable[[Any], None]) -> Held:
    """The columns in types that the statistic takes, if they were inferred.

    One missing entry makes floats of a table's column of integers, and must not show before the charge.
    """
    if not all(column.values.ndim and column.values.dtype.kind in "biuf" for column in held.values()):
        return held  # `check_records` says what is wrong
    try:
        check_fields(shapes_of(held))
    except (TypeError, ValueError):
        held = {name: column.as_whole() for name, column in held.items()}
        check_fields(shapes_of(held))
    return held


def shapes_of(held: Held) -> dict[str, ShapeDtypeStruct]:
    """The shapes of fields, in the types that JAX has for them."""
    return {
        name: ShapeDtypeStruct(column.values.shape, canonicalize_dtype(column.values.dtype))
        for name, column in held.items()
    }


def is_batch(records: Any) -> bool:
    """Whether these are records, rather than several batches of them."""
    return isinstance(records, Mapping) or hasattr(records, "columns")


def as_batches(records: Any) -> Iterable[Any]:
    """An iterable of batches, or an error."""
    if isinstance(records, (str, bytes)) or hasattr(records, "dtype") or not isinstance(records, Iterable):
        fail("records", type(records).__name__, "records by field", REMEDY, error=TypeError)
    return read_in_turn(records)


def read_in_turn(batches: Iterable[Any]) -> Iterator[Any]:
    """The batches; an error of their own says how many were read, as an iterator cannot give them again."""
    number, iterator = 0, iter(batches)
    while True:
        try:
            batch = next(iterator)
        except StopIteration:
            return
        except Exception as error:
            error.add_note(f"records: raised after {number} whole batches. Nothing was charged; pass all again.")
            raise
        number += 1
        yield batch


def as_fields(batch: Any, columns: Columns | None) -> Held:
    """The fields of a batch as columns."""
    if isinstance(batch, Mapping):
        if columns is not None:
            remedy = "Leave columns out: the arrays have their fields' names."
            fail("columns", sorted(columns), "none, for records in a dict", remedy)
        return {name: as_column(leaf) for name, leaf in as_named(batch).items()}
    if not hasattr(batch, "columns"):
        fail("records", f"a batch that is a {type(batch).__name__}", "records by field", REMEDY, error=TypeError)
    names = list(batch.columns)
    return {field: take(batch, names, of) for field, of in as_named(columns or {name: name for name in names}).items()}


def as_column(leaf: Any) -> Column:
    """A field as a column, or an error."""
    if isinstance(leaf, Column):
        return leaf
    check_plain(leaf)
    if isinstance(leaf, (list, tuple)):
        return read_entries(list(leaf))
    values = np.asanyarray(leaf)
    if values.dtype == object and values.ndim:
        return read_entries(list(values))
    return Column(values, np.ones(values.shape[:1], bool), is_inferred=hasattr(leaf, "to_numpy"))


def read_entries(entries: list[Any]) -> Column:
    """The column of a list: what most of its entries are."""
    read = [read_entry(one) for one in entries]
    shapes = Counter(None if one is None else one.shape for one in read)
    shape = shapes.most_common(1)[0][0] if entries else ()
    if shape is None:
        given, remedy = "an array of which most entries are no numbers", "Encode categories as integers."
        fail("records", given, "numbers", remedy, error=TypeError)
    is_readable = np.array([one is not None and one.shape == shape for one in read], bool)
    blank = np.zeros(shape, bool)  # of the type that changes no other
    filled = [one if good else blank for one, good in zip(read, is_readable, strict=True)]
    return Column(np.array(filled) if entries else np.zeros(0), is_readable, is_inferred=True)


def read_entry(entry: Any) -> np.ndarray | None:
    """The numbers of an entry, or None if it is something else."""
    try:
        array = np.asarray(entry)
    except (TypeError, ValueError):
        return None
    return array if array.dtype.kind in "biuf" else None


def as_named(fields: Mapping[Any, Any]) -> Mapping[str, Any]:
    """Fields that all have names, at least one."""
    if not fields or not all(isinstance(name, str) for name in fields):
        fail("records", f"fields {list(fields)}", "fields with names", "Name them as the statistic does.")
    return fields


def take(frame: Any, names: list[Any], of: Any) -> Column:
    """One column [m] of a table, or several side by side [m, k]."""
    wanted = of if isinstance(of, list) else [of]
    if missing := [name for name in wanted if name not in names]:
        fail("columns", missing, f"columns of the table, {names}", "Name columns that there are.")
    held = [as_column(frame[name].to_numpy()) for name in wanted]
    if not isinstance(of, list):
        return held[0]._replace(is_inferred=True)
    is_readable = np.all([column.is_readable for column in held], axis=0)
    return Column(np.stack([column.values for column in held], axis=1), is_readable, is_inferred=True)
