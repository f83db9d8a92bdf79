"""The names of the variables of a table and of their levels, as they are given."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import Any

from dpjax._util.validation import check_no_gaps, describe, fail

__all__ = ["read_labels", "read_levels"]

REMEDY = "Pass the names of the levels of each variable, such as [['female', 'male'], ['no', 'yes']]."


def read_levels(levels: Any, sizes: tuple[int, ...] | None = None) -> tuple[tuple[str, ...], ...] | None:
    """The names of the levels of each variable, or an error unless each has as many different names as levels.

    Parameters
    ----------
    levels
        A sequence of names for each variable, or the names of the only one; None where there are none.
    sizes
        The numbers of levels, if they are known.
    """
    if levels is None:
        return None
    if is_listed(levels) and levels and all(isinstance(name, str) for name in levels):
        levels = [levels]
    if not is_listed(levels) or not all(map(is_listed, levels)):
        fail("levels", describe(levels), "a list of names for each variable", REMEDY, error=TypeError)
    names = tuple(tuple(str(level) for level in one) for one in levels)
    if not (names and all(names)):
        fail("levels", describe(levels), "names for each variable, at least one", REMEDY)
    for one in names:
        if len(set(one)) != len(one):
            fail("levels", repr(one), "names that differ", REMEDY)
    found = tuple(map(len, names))
    if sizes is not None and found != sizes:
        fail("levels", f"{list(found)} names", f"{list(sizes)}, the numbers of levels", REMEDY)
    return names


def is_listed(value: Any) -> bool:
    """Whether a value is a list of several things, and no text."""
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def read_labels(argument: str, table: Any) -> tuple[list[Any], tuple[tuple[str, ...], ...]] | None:
    """The names of the variables of a DataFrame or a Series of pandas, and of their levels; None of any other value.

    It is recognised by its attributes, so that pandas need not be installed.
    """
    if not (hasattr(table, "index") and hasattr(table, "to_numpy")):
        return None
    columns = getattr(table, "columns", ())
    variables = [*variables_of(argument, table.index)]
    variables += variables_of(argument, columns) if len(columns) > 1 else []
    return [name for name, _ in variables], tuple(levels for _, levels in variables)


def variables_of(argument: str, side: Any) -> Iterator[tuple[Any, tuple[str, ...]]]:
    """The name and the levels of each variable on one side of a DataFrame."""
    labels = [label if isinstance(label, tuple) else (label,) for label in side]
    levels = [tuple(dict.fromkeys(column)) for column in zip(*labels, strict=True)]
    if labels != list(product(*levels)):
        expected, remedy = "one row for each combination of levels, in order", "Sort it: table.sort_index()."
        fail(argument, f"a table with {len(labels)} labels of {list(map(len, levels))} levels", expected, remedy)
    for one in levels:
        check_no_gaps(
            argument, one, "Name this level, which pandas reads as missing: read_csv(..., keep_default_na=False)."
        )
    return zip(side.names, (texts(one) for one in levels), strict=True)


def texts(values: Iterable[Any]) -> tuple[str, ...]:
    """Values as texts."""
    return tuple(map(str, values))
