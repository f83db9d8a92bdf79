"""How confidential records are held: all that is looked at before the charge, and nothing that they are.

Public are the names of fields, and the type and shape that whoever makes an array has to choose. Lists, tables and
batches are not looked into. The type of such a field is the one that the statistic reads; of a function of the user's
it is a float, unless `dtypes` says another one.
"""

from collections.abc import Callable, Iterable, Mapping
from math import inf
from typing import Any, NamedTuple

import jax
import numpy as np

from dpjax._util.dependence import used_arguments
from dpjax._util.validation import describe, fail
from dpjax.private.entries import check_array_type, check_plain, jax_type
from dpjax.private.people import People, check_column, check_identifiers
from dpjax.statistics import RecordStatistic
from dpjax.statistics.base import field_types_of

__all__ = ["Columns", "Dtypes", "Field", "ReleaseLayout", "column_names", "is_batch", "lay_out"]

Columns = Mapping[str, str | list[str]]
Dtypes = Mapping[str, Any]

REMEDY = "Pass a dict of arrays, a DataFrame, or an iterable of such batches."


class Field(NamedTuple):
    """What each entry of a field is converted to.

    Attributes
    ----------
    column
        The column that holds it, or several that make a vector.
    dtype
        One of JAX's types.
    shape
        The shape of an entry.
    largest
        From here on whole numbers are unreadable, as the type does not tell them apart.
    """

    column: Any
    dtype: np.dtype
    shape: tuple[int, ...]
    largest: float

    @property
    def columns(self) -> list[Any]:
        """The columns that hold it."""
        return self.column if isinstance(self.column, list) else [self.column]


class ReleaseLayout(NamedTuple):
    """The fields of records, and which of them are read.

    Attributes
    ----------
    fields
        By name.
    read
        The names of those on which the statistic depends.
    beside
        What else there is, in words: columns that are not read, of which one may say whose a record is.
    """

    fields: dict[str, Field]
    read: frozenset[str]
    beside: str

    @property
    def columns(self) -> list[Any]:
        """The columns of all fields."""
        return [column for one in self.fields.values() for column in one.columns]


def lay_out(
    records: Any,
    statistic: RecordStatistic,
    columns: Columns | None,
    dtypes: Dtypes | None,
    people: People,
    check_fields: Callable[[Any], None] = lambda fields: None,
) -> ReleaseLayout:
    """How the records are held, or an error that does not depend on them.

    Parameters
    ----------
    check_fields
        Raises unless the statistic takes records of these shapes and types, with a leading axis.
    """
    fields = fields_of(records, statistic, columns, dtypes, people)
    check_fields({name: jax.ShapeDtypeStruct((1, *one.shape), one.dtype) for name, one in fields.items()})
    read = fields_read(statistic, fields)
    if not is_batch(records):
        return ReleaseLayout(fields, read, "batches, whose columns show after the charge")
    for leaf in [records[name] for name in read] if isinstance(records, Mapping) else []:
        if is_array(leaf):
            check_array_type(leaf)
    used = [people.column, *(column for name in read for column in fields[name].columns)]
    unused = [name for name in column_names(records) if name not in used]
    return ReleaseLayout(fields, read, f"columns {unused} that are not used" if unused else "")


def fields_of(
    records: Any, statistic: RecordStatistic, columns: Columns | None, dtypes: Dtypes | None, people: People
) -> dict[str, Field]:
    """The fields by name, or an error."""
    stated, declared = field_types_of(statistic), read_dtypes(dtypes)
    check_columns(columns)
    if is_batch(records):
        chosen = choose_columns(records, columns, people)
    else:
        chosen = choose_fields(records, [*stated, *declared], columns, people)
    if missing := [name for name in declared if name not in chosen]:
        fail("dtypes", missing, f"fields of the records, {list(chosen)}", "Name fields that there are.")
    return {name: field_of(records, name, column, stated, declared) for name, column in chosen.items()}


def fields_read(statistic: RecordStatistic, fields: Mapping[str, Field]) -> frozenset[str]:
    """The names of the fields on which what a record contributes depends."""

    def contributions(record: Any) -> Any:
        rows = {name: leaf[None] for name, leaf in record.items()}
        return statistic(record), statistic.sparse(rows) if statistic.is_sparse else None

    record = {name: jax.ShapeDtypeStruct(one.shape, one.dtype) for name, one in fields.items()}
    return frozenset(name for name, is_used in used_arguments(contributions, record).items() if is_used)


def is_batch(records: Any) -> bool:
    """Whether these are records, rather than several batches of them."""
    return isinstance(records, Mapping) or hasattr(records, "columns")


def column_names(batch: Any) -> list[Any]:
    """The names of the columns of a dict or a table."""
    return list(batch) if isinstance(batch, Mapping) else list(batch.columns)


def choose_columns(records: Any, columns: Columns | None, people: People) -> dict[str, Any]:
    """The column of each field of a dict or a table, or an error."""
    names = column_names(records)
    if people.column is not None:
        check_column(people.column, names)
        check_identifiers(records[people.column])
    if columns is not None and isinstance(records, Mapping):
        remedy = "Leave columns out: the arrays have their fields' names."
        fail("columns", sorted(columns), "none, for records in a dict", remedy)
    chosen = dict(columns or {name: name for name in names if name != people.column})
    if not chosen or not all(isinstance(name, str) for name in chosen):
        fail("records", f"fields {list(chosen)}", "fields with names", "Name them as the statistic does.")
    wanted = [one for of in chosen.values() for one in (of if isinstance(of, list) else [of])]
    if missing := [one for one in wanted if one not in names]:
        fail("columns", missing, f"columns of the table, {names}", "Name columns that there are.")
    return chosen


def choose_fields(records: Any, known: list[str], columns: Columns | None, people: People) -> dict[str, Any]:
    """The column of each field of batches, or an error: what they hold is not known before they are read."""
    if isinstance(records, (str, bytes)) or hasattr(records, "dtype") or not isinstance(records, Iterable):
        fail("records", type(records).__name__, "records by field", REMEDY, error=TypeError)
    if people.column is not None:
        remedy = "Pass all rows in one dict of arrays or DataFrame."
        fail("records", f"a {type(records).__name__}", "all rows at once, with people=", remedy, error=TypeError)
    if not (columns or known):
        remedy = "Pass such as dtypes={'x': (float, 2), 'y': int}: batches are read after the charge."
        fail("dtypes", "None, for batches and a function of your own", "the type of each field that it reads", remedy)
    return dict(columns or {name: name for name in known})


def field_of(
    records: Any, name: str, column: Any, stated: Mapping[str, np.dtype], declared: Mapping[str, np.dtype]
) -> Field:
    """The type of a field: as declared, that of an array, as the statistic says, or a float."""
    own = array_type(name, records[column]) if isinstance(records, Mapping) else None
    known = next((one for one in (declared.get(name), own, stated.get(name)) if one is not None), None)
    dtype = jax_type("records", np.dtype(float) if known is None else known.base)
    held = own if own is not None else known
    shape = (len(column),) if isinstance(column, list) else () if held is None else held.shape
    # A float that nobody asked for does not stand for whole numbers which it does not tell apart.
    return Field(column, dtype, shape, inf if known is not None else 2.0 ** (np.finfo(dtype).nmant + 1))


def array_type(name: str, leaf: Any) -> np.dtype | None:
    """The type and shape of the rows of an array of numbers; None of anything else that has entries, or an error."""
    check_plain(leaf)
    if isinstance(leaf, (str, bytes)) or not hasattr(leaf, "__len__") or getattr(leaf, "shape", None) == ():
        given, remedy = f"a field {name!r} of type {type(leaf).__name__}", "Pass one entry for each record."
        fail("records", given, "arrays or lists", remedy, error=TypeError)
    return np.dtype((leaf.dtype, leaf.shape[1:])) if is_array(leaf) and leaf.dtype.kind in "biuf" else None


def is_array(leaf: Any) -> bool:
    """Whether a field is an array whose type says what its entries are."""
    return isinstance(leaf, (np.ndarray, jax.Array)) and leaf.dtype != object


def check_columns(columns: Any) -> None:
    """Raise unless columns are a dict, or left out."""
    if columns is not None and not (isinstance(columns, Mapping) and columns):
        remedy = "Pass such as {'x': ['age', 'income'], 'y': 'wage'}."
        fail("columns", repr(columns), "a dict from fields to columns", remedy, error=TypeError)


def read_dtypes(dtypes: Any) -> dict[str, np.dtype]:
    """The types of fields that were declared, or an error unless they are those of numbers."""
    if dtypes is None:
        return {}
    remedy = "Pass such as {'x': (float, 2), 'y': int}, with the length of a vector."
    if not isinstance(dtypes, Mapping) or not all(isinstance(name, str) for name in dtypes):
        fail("dtypes", describe(dtypes), "a dict from fields to types of numbers", remedy, error=TypeError)
    try:
        read = {name: np.dtype(of) for name, of in dtypes.items()}
    except (TypeError, ValueError):
        fail("dtypes", describe(dtypes), "types of numbers", remedy, error=TypeError)
    for one in read.values():
        jax_type("dtypes", one.base)
    return read
