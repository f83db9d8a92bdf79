"""Confidential records as they are held: arrays, a table with columns, or batches that are read once."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import ShapeDtypeStruct
from jax.dtypes import canonicalize_dtype

from dpjax._util.validation import fail, is_traced
from dpjax.private.targets.target import check_records, readable

__all__ = ["Batch", "Columns", "Fields", "read_batches"]

Fields = dict[str, np.ndarray]
Columns = Mapping[str, str | list[str]]

REMEDY = "Pass a dict of arrays, a DataFrame, or an iterable of such batches."


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
        fields = as_fields(batch, columns)
        check_names(fields)
        if all(np.shape(leaf)[:1] == (0,) for leaf in fields.values()):
            continue
        if all(leaf.ndim and leaf.dtype.kind in "biuf" for leaf in fields.values()):  # else `check_records` says so
            dtypes = {name: canonicalize_dtype(leaf.dtype) for name, leaf in fields.items()}
            check_fields({name: ShapeDtypeStruct(leaf.shape, dtypes[name]) for name, leaf in fields.items()})
        check_records(fields)
        read = {name: readable(leaf) for name, leaf in fields.items()}
        form = {name: (leaf.shape[1:], leaf.dtype) for name, (leaf, _) in read.items()}
        first = first or form
        if form != first:
            remedy = "Give all batches the same fields, of the same shapes and types."
            fail("records", f"a batch of fields {form}", f"fields {first}, as in the first batch", remedy)
        whole = [np.all(found.reshape(len(found), -1), axis=1) for _, found in read.values()]
        yield Batch({name: leaf for name, (leaf, _) in read.items()}, np.all(whole, axis=0))


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


def as_fields(batch: Any, columns: Columns | None) -> Fields:
    """The fields of a batch as arrays."""
    if isinstance(batch, Mapping):
        if columns is not None:
            remedy = "Leave columns out: the arrays have their fields' names."
            fail("columns", sorted(columns), "none, for records in a dict", remedy)
        return {name: as_column(leaf) for name, leaf in as_named(batch).items()}
    if not hasattr(batch, "columns"):
        fail("records", f"a batch that is a {type(batch).__name__}", "records by field", REMEDY, error=TypeError)
    names = list(batch.columns)
    return {field: take(batch, names, of) for field, of in as_named(columns or {name: name for name in names}).items()}


def as_column(leaf: Any) -> np.ndarray:
    """A field as an array, or an error."""
    if is_traced(leaf):
        fail("records", "traced arrays", "arrays", "Release outside of jax.jit and jax.vmap.", error=TypeError)
    if isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        fail("records", "an array of keys", "numbers", "Pass the records themselves.", error=TypeError)
    try:
        return np.asanyarray(leaf)
    except (TypeError, ValueError):
        return fail("records", "rows of unequal length", "arrays with one leading axis [n]", REMEDY, error=TypeError)


def as_named(fields: Mapping[Any, Any]) -> Mapping[str, Any]:
    """Fields that all have names, at least one."""
    if not fields or not all(isinstance(name, str) for name in fields):
        fail("records", f"fields {list(fields)}", "fields with names", "Name them as the statistic does.")
    return fields


def take(frame: Any, names: list[Any], of: Any) -> np.ndarray:
    """One column [m] of a table, or several side by side [m, k]."""
    wanted = of if isinstance(of, list) else [of]
    if missing := [name for name in wanted if name not in names]:
        fail("columns", missing, f"columns of the table, {names}", "Name columns that there are.")
    arrays = [as_column(frame[name].to_numpy()) for name in wanted]
    return np.stack(arrays, axis=1) if isinstance(of, list) else arrays[0]
