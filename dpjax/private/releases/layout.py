"""How confidential records are held: all that is looked at before the charge, and nothing that they are.

Public are the names of fields, and the types and shapes that whoever makes an array or a table has to choose. Lists and
columns of objects are not looked into. A field is converted to the type that the statistic reads; for a function of the
user's this is that of its array or a float, unless `dtypes` says another one.
"""

from collections.abc import Callable, Iterable, Mapping, Set
from math import inf
from typing import Any, NamedTuple

import jax
import numpy as np

from dpjax._util.dependence import used_arguments
from dpjax._util.validation import describe, fail
from dpjax.private.columns import column_names, is_computed, is_table, sort_of, type_name
from dpjax.private.entries import LevelCodes, Reading, check_array_type, check_plain, jax_type
from dpjax.private.people import People, check_column, check_identifiers
from dpjax.statistics import RecordStatistic
from dpjax.statistics.base import field_types_of, fixed_values_of, level_names_of

__all__ = ["Columns", "Dtypes", "Field", "ReleaseLayout", "lay_out"]

Columns = Mapping[str, str | list[str]]
Dtypes = Mapping[str, Any]

REMEDY = "Pass a dict of arrays, a DataFrame, or an iterable of such batches."
COLUMN = ("dtype", "to_numpy", "read")
"""Attributes of what is one column, or a file, though it can be iterated."""


class Field(NamedTuple):
    """The places of the entries of a field, and what each is converted to.

    Attributes
    ----------
    column
        The column that holds it, or several that make a vector.
    reading
        The type and shape of an entry, and its levels if these have names.
    fixed
        What stands for an entry that is none: one number, or one for each coordinate.
    """

    column: Any
    reading: Reading
    fixed: tuple[float, ...]

    @property
    def columns(self) -> list[Any]:
        """The columns that hold it."""
        return self.column if isinstance(self.column, list) else [self.column]

    @property
    def stand_in(self) -> np.ndarray:
        """An entry of which nothing is known but what `fixed` says."""
        shape = self.reading.shape
        fixed = np.reshape(self.fixed, (-1,) if shape else ())
        return np.broadcast_to(fixed, shape).astype(self.reading.dtype)


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

    @property
    def fixed(self) -> dict[str, np.ndarray]:
        """The record that stands for one of which nothing can be read."""
        return {name: one.stand_in for name, one in self.fields.items()}


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
    check_fields(
        {name: jax.ShapeDtypeStruct((1, *one.reading.shape), one.reading.dtype) for name, one in fields.items()}
    )
    layout = ReleaseLayout(fields, fields_read(statistic, fields), "batches, whose columns show after the charge")
    if not is_table(records):
        for batch in records if isinstance(records, (list, tuple)) else ():
            check_table(batch, layout)
        return layout
    check_table(records, layout)
    used = [people.column, *(column for name in layout.read for column in fields[name].columns)]
    unused = [name for name in column_names(records) if name not in used]
    return layout._replace(beside=f"columns {unused} that are not used" if unused else "")


def check_table(table: Any, layout: ReleaseLayout) -> None:
    """Raise unless a table, or a batch, has the columns that are read, of types which can hold the fields."""
    if not (is_computed(table) and is_table(table)):
        given = "a batch that is no table in memory"
        fail("records", given, "records by field", REMEDY, error=TypeError)
    names = column_names(table)
    if missing := [column for column in layout.columns if column not in names]:
        fail("records", f"a batch without {missing}", "all fields in every batch", "Give all batches the same fields.")
    for name in sorted(layout.read):
        one = layout.fields[name]
        for column in one.columns:
            shape = () if isinstance(one.column, list) else one.reading.shape
            check_held(column, held_column(table, column), one.reading._replace(shape=shape))


def check_held(name: str, column: Any, reading: Reading) -> None:
    """Raise unless a column can hold entries of a field, by its type and shape alone."""
    check_plain(column)
    if isinstance(column, np.ma.MaskedArray):
        check_array_type(column)
    allowed = {"unknown", "numbers", "floats"} | ({"texts"} if reading.levels else set())
    sort = sort_of(column)
    if sort not in allowed | ({"lists"} if reading.shape else set()):
        given = f"a column {name!r} of {'texts' if sort == 'texts' else type_name(column)}"
        expected = "numbers, or names of levels" if reading.levels else "numbers"
        remedy = "Pass numbers of at most 64 bits. Give cells(levels=...) the names of categories, or code these."
        fail("records", given, expected, remedy, error=TypeError)
    if sort != "unknown" and is_array(column) and column.shape[1:] != reading.shape:
        given = f"a column {name!r} with entries of shape {list(column.shape[1:])}"
        fail("records", given, f"shape {list(reading.shape)}", "Give each field one entry for each record.")


def held_column(table: Any, name: Any) -> Any:
    """A column of a table, or an error unless it is one, with entries in an order."""
    column = table[name]
    is_listed = hasattr(column, "__len__") and getattr(column, "shape", None) != () and not is_table(column)
    if not is_listed or isinstance(column, (str, bytes, Set)):
        given, remedy = f"a field {name!r} that is no column", "Pass one entry for each record, in their order."
        fail("records", given, "arrays or lists", remedy, error=TypeError)
    return column


def fields_of(
    records: Any, statistic: RecordStatistic, columns: Columns | None, dtypes: Dtypes | None, people: People
) -> dict[str, Field]:
    """The fields by name, or an error."""
    if not is_computed(records):
        given = f"a {type(records).__name__}, which is not computed yet"
        fail("records", given, "a table in memory", "Pass what its collect() or compute() returns.", error=TypeError)
    stated, declared = field_types_of(statistic), read_dtypes(dtypes)
    check_columns(columns)
    if is_table(records):
        chosen = choose_columns(records, columns, people)
    else:
        chosen = choose_fields(records, [*stated, *declared], columns, people)
    if missing := [name for name in declared if name not in chosen]:
        fail("dtypes", missing, f"fields of the records, {list(chosen)}", "Name fields that there are.")
    if columns and (lacking := [name for name in stated if name not in chosen]):
        remedy = f"Add {{{lacking[0]!r}: its column}}: columns that are not named are left out."
        fail("columns", f"fields {list(chosen)}, without {lacking}", "each field that the statistic reads", remedy)
    return {name: field_of(records, name, column, statistic, declared) for name, column in chosen.items()}


def fields_read(statistic: RecordStatistic, fields: Mapping[str, Field]) -> frozenset[str]:
    """The names of the fields on which what a record contributes depends."""

    def contributions(record: Any) -> Any:
        rows = {name: leaf[None] for name, leaf in record.items()}
        return statistic(record), statistic.sparse(rows) if statistic.is_sparse else None

    record = {name: jax.ShapeDtypeStruct(one.reading.shape, one.reading.dtype) for name, one in fields.items()}
    return frozenset(name for name, is_used in used_arguments(contributions, record).items() if is_used)


def choose_columns(records: Any, columns: Columns | None, people: People) -> dict[str, Any]:
    """The column of each field of a dict or a table, or an error."""
    names = column_names(records)
    if people.column is not None:
        check_column(people.column, names)
        check_identifiers(held_column(records, people.column))
    if columns is not None and isinstance(records, Mapping):
        remedy = "Leave columns out: the arrays have their fields' names."
        fail("columns", describe(columns), "none, for records in a dict", remedy)
    chosen = dict(columns or {name: name for name in names if name != people.column})
    if not chosen or not all(isinstance(name, str) for name in chosen):
        fail("records", f"fields {list(chosen)}", "fields with names", "Name them as the statistic does.")
    wanted = [one for of in chosen.values() for one in (of if isinstance(of, list) else [of])]
    if missing := [one for one in wanted if one not in names]:
        fail("columns", missing, f"columns of the table, {names}", "Name columns that there are.")
    if twice := [one for one in dict.fromkeys(wanted) if wanted.count(one) > 1]:
        remedy = "Name that field in each statistic: no model has one number under two names."
        fail("columns", f"{twice}, each for several fields", "one field for each column", remedy)
    if repeated := [one for one in dict.fromkeys([*wanted, people.column]) if names.count(one) > 1]:
        fail("columns", f"{repeated}, each of several columns", "names of one column each", "Rename the others.")
    return chosen


def choose_fields(records: Any, known: list[str], columns: Columns | None, people: People) -> dict[str, Any]:
    """The column of each field of batches, or an error: what they hold is not known before they are read."""
    is_column = isinstance(records, (str, bytes, Set)) or any(hasattr(records, name) for name in COLUMN)
    if is_column or not isinstance(records, Iterable):
        fail("records", type(records).__name__, "records by field", REMEDY, error=TypeError)
    if people.column is not None:
        remedy = "Pass all rows in one dict of arrays or DataFrame."
        fail("records", f"a {type(records).__name__}", "all rows at once, with people=", remedy, error=TypeError)
    if not (columns or known):
        remedy = "Pass such as dtypes={'x': (float, 2), 'y': int}: batches are read after the charge."
        fail("dtypes", "None, for batches and a function of your own", "the type of each field that it reads", remedy)
    return dict(columns or {name: name for name in known})


def field_of(
    records: Any, name: str, column: Any, statistic: RecordStatistic, declared: Mapping[str, np.dtype]
) -> Field:
    """The type of a field: as declared, as the statistic says, that of an array, or a float."""
    own = array_type(held_column(records, column)) if isinstance(records, Mapping) else None
    stated = field_types_of(statistic).get(name)
    known = next((one for one in (declared.get(name), stated, own) if one is not None), None)
    dtype = jax_type("records", np.dtype(float) if known is None else known.base)
    held = own if own is not None else known
    shape = (len(column),) if isinstance(column, list) else () if held is None else held.shape
    # A float that nobody asked for does not stand for whole numbers which it does not tell apart.
    largest = inf if known is not None else 2.0 ** (np.finfo(dtype).nmant + 1)
    is_category = stated is not None and stated.base.kind == "i"
    if is_category and dtype.kind in "bu":
        dtype = jax_type("records", np.dtype(int))  # there is no category -1 else
    levels, fixed = levels_of(statistic, name), fixed_values_of(statistic).get(name, 0.0)
    reading = Reading(dtype, shape, largest, None if levels is None else LevelCodes.of(levels))
    return Field(column, reading, (-1.0,) if is_category else tuple(np.ravel(fixed).tolist()))


def levels_of(statistic: RecordStatistic, name: str) -> tuple[str, ...] | None:
    """The names of the levels of a field, or an error if statistics side by side number them in other ways."""
    found = {levels for leaf in statistic.leaves if (levels := level_names_of(leaf).get(name)) is not None}
    if len(found) > 1:
        remedy = "Declare the levels of a field in one order."
        fail("statistic", f"levels {sorted(found)} of the field {name!r}", "one list of levels", remedy)
    return next(iter(found), None)


def array_type(column: Any) -> np.dtype | None:
    """The type and shape of the rows of an array of numbers; None of anything else."""
    check_plain(column)
    return np.dtype((column.dtype, column.shape[1:])) if is_array(column) and column.dtype.kind in "biuf" else None


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
