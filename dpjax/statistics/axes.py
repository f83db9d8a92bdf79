"""The variables of a table: their fields, how many levels each has, and what these are called."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import Any

import jax.numpy as jnp

from dpjax._util.validation import describe, fail
from dpjax.base import Array, Records

__all__ = ["Axes", "labelled_axes", "read_levels"]

REMEDY = "Pass the names of the levels of each variable, such as [['female', 'male'], ['no', 'yes']]."


@dataclass(frozen=True)
class Axes:
    """The variables of a table, whose cells are numbered in C order: the last variable varies fastest.

    Parameters
    ----------
    fields
        The record field of each variable.
    sizes
        How many levels each has.
    levels
        Their names; None where they have only numbers.
    """

    fields: tuple[str, ...]
    sizes: tuple[int, ...]
    levels: tuple[tuple[str, ...], ...] | None = None

    @property
    def num_cells(self) -> int:
        """The number of cells c."""
        return prod(self.sizes)

    @property
    def level_names(self) -> dict[str, tuple[str, ...]]:
        """The names of the levels by field, where they have names."""
        return {} if self.levels is None else dict(zip(self.fields, self.levels, strict=True))

    @property
    def cell_names(self) -> tuple[str, ...] | None:
        """The names of the cells [c], such as ``"female,yes"``; None where levels have only numbers."""
        return None if self.levels is None else tuple(map(",".join, product(*self.levels)))

    def named(self, level_names: Mapping[str, tuple[str, ...]]) -> "Axes":
        """The same variables, with names of their levels if every field has them."""
        known = tuple(level_names[field] for field in self.fields if field in level_names)
        return replace(self, levels=known if tuple(map(len, known)) == self.sizes else None)

    def cell(self, records: Records) -> Array:
        """The number of the cell of each record."""
        cell, *others = (records[field] for field in self.fields)
        for size, level in zip(self.sizes[1:], others, strict=True):
            cell = cell * size + level
        return cell

    def records(self, cell: Array) -> Records:
        """The records in cells of these numbers."""
        levels = []
        for size in reversed(self.sizes[1:]):
            cell, level = jnp.divmod(cell, size)
            levels.append(level)
        return dict(zip(self.fields, [cell, *reversed(levels)], strict=True))


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
    if not names:
        fail("levels", "none", "a list of names for each variable", REMEDY)
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


def labelled_axes(argument: str, table: Any) -> tuple[list[Any], tuple[tuple[str, ...], ...]] | None:
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
    return zip(side.names, (texts(one) for one in levels), strict=True)


def texts(values: Iterable[Any]) -> tuple[str, ...]:
    """Values as texts."""
    return tuple(map(str, values))
