"""Published tables with names of their variables and levels, as data frames have them, and numbers by name."""

from collections.abc import Mapping
from typing import Any

from dpjax._util.validation import fail, name_of, plain, read_numbers
from dpjax.statistics.base import RecordStatistic
from dpjax.statistics.labels import read_labels
from dpjax.statistics.tables import Cells, cells

__all__ = ["read_table"]

NAME = "Name them: table.rename_axis(index='sex', columns='admitted')."
INDEX = "Make the variables the index: table.set_index(['sex', 'admitted'])['count']."

TOTALS = frozenset({"all", "total", "totals", "sum"})
"""What tools call the row and the column of totals."""


def read_table(value: Any, statistic: Any) -> tuple[Any, Any]:
    """The numbers [d] of a DataFrame or a Series of pandas, and its statistic; of other values both as they are.

    A statistic without names of levels receives those of the table.

    Raises
    ------
    TypeError, ValueError
        If the table has no names for its variables, does not consist of numbers, has other fields or levels than the
        statistic, or the statistic is not `dpjax.statistics.cells`. If numbers by name are not those of the statistic.
    """
    if isinstance(value, Mapping) or has_names(value, statistic):
        return match_names(value, statistic), statistic
    labels = read_labels("value", value)
    if labels is None:
        if statistic is None:
            remedy = "Pass what the numbers are, such as dpjax.statistics.cells(['sex', 'admitted'], [2, 2])."
            fail("statistic", None, "a function of one record, except for a table of pandas", remedy, error=TypeError)
        return value, statistic
    # As `read_csv` leaves a file with a row for each cell.
    is_long = type(value.index).__name__ == "RangeIndex"
    fields, levels = check_fields(labels[0], statistic, INDEX if is_long else NAME), labels[1]
    if all(one[-1].lower() in TOTALS for one in levels):
        given = f"a table whose last level of each variable is {levels[0][-1]!r}, as of totals"
        remedy = "Leave totals out, or join them to it: a release of dpjax.statistics.grouped, by dpjax.joint."
        fail("value", given, "cells that exclude each other", remedy)
    numbers = read_numbers("value", plain(value.to_numpy()), "a table of numbers", INDEX)
    found = cells(fields, levels=levels)
    if statistic is not None and statistic not in (found, cells(fields, found.num_categories)):
        expected, remedy = repr(statistic), "Order the table as its statistic, or leave the statistic out."
        fail("value", f"a table with {found.words().removeprefix('the counts of a table of ')}", expected, remedy)
    return numbers.ravel(), found


def has_names(value: Any, statistic: Any) -> bool:
    """Whether a value is a Series of pandas with names, for a statistic of named numbers that is no table."""
    named = isinstance(statistic, RecordStatistic) and statistic.coordinate_names is not None
    is_series = hasattr(value, "index") and hasattr(value, "items") and not hasattr(value, "columns")
    numbered = type(getattr(value, "index", None)).__name__ == "RangeIndex"
    return named and is_series and not numbered and not isinstance(statistic, Cells)


def match_names(value: Any, statistic: Any) -> Any:
    """The numbers [d] of a dict or a Series, in the order of a statistic's names."""
    names = statistic.coordinate_names if isinstance(statistic, RecordStatistic) else None
    if names is None:
        remedy = "Pass the numbers in its order, or a statistic such as dpjax.statistics.group_totals with levels."
        fail("statistic", name_of(statistic), "a statistic whose numbers have names, for numbers by name", remedy)
    given = [(str(name), number) for name, number in value.items()]
    keys = [name for name, _ in given]
    if sorted(keys) != sorted(names):
        others = sorted({*keys, *names} - ({*keys} & {*names})) or [key for key in keys if keys.count(key) > 1]
        shown, remedy = ", ".join(map(repr, others[:4])), "Pass one number for each name of the statistic."
        fail("value", f"numbers by name, which differ in {shown}", f"{len(names)} names of the statistic", remedy)
    return read_numbers(
        "value", plain([dict(given)[name] for name in names]), "numbers by name", "Pass one for each name."
    )


def check_fields(names: list[Any], statistic: Any, remedy: str) -> list[str]:
    """The fields of the variables: those of the statistic where the table does not name them."""
    if not (statistic is None or isinstance(statistic, Cells)):
        alone = "Pass the numbers alone: table.to_numpy().ravel()."
        fail("statistic", name_of(statistic), "dpjax.statistics.cells for a table with labels", alone, error=TypeError)
    known = statistic.field if statistic is not None and len(statistic.field) == len(names) else [None] * len(names)
    fields: list[Any] = [given if name is None else name for name, given in zip(names, known, strict=True)]
    if not all(isinstance(field, str) for field in fields):
        fail("value", f"a table of variables named {names}", "a name for each variable", remedy)
    return fields
