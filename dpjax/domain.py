"""What the fields of a record can be: how many levels each has, what these are called, and which occur together."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

__all__ = ["LARGEST_DOMAIN", "Domain", "LevelNumbers", "domain_by"]

Lists = Callable[[], dict[str, Any]]
"""What lists records, or some of their fields, with one leading axis."""

LARGEST_DOMAIN = 100_000
"""Largest number of possible records that are listed."""

MAX_COMPARED = 64
"""Largest number of levels for which comparing with each is faster than a binary search."""


class LevelNumbers(NamedTuple):
    """The numbers that stand for the levels of a field, as plain data."""

    numbers: tuple[Any, ...]
    dtype: str

    @property
    def array(self) -> np.ndarray:
        """The numbers [levels]."""
        return np.asarray(self.numbers, self.dtype)

    def place(self, given: jax.Array) -> jax.Array:
        """The place [n] of each given number [n] among them, which may be in any order."""
        numbers = self.array
        whole = numbers.dtype.kind in "iu"
        if whole and np.all(np.diff(numbers) == 1):
            return (given - numbers[0]).astype(int)
        method = "compare_all" if len(numbers) <= MAX_COMPARED else "scan"
        order = np.argsort(numbers)
        lower, upper = numbers[order][:-1], numbers[order][1:]
        half = (upper - lower) // 2 if whole else (upper - lower) / 2
        return jnp.asarray(order)[jnp.searchsorted(jnp.asarray(upper - half), given, side="right", method=method)]


@dataclass(frozen=True)
class Domain:
    """What the fields of a record can be. Cells are numbered in C order: the last field varies fastest.

    Parameters
    ----------
    fields
        The names of the fields.
    sizes
        How many levels each has.
    levels
        Their names; None where they have only numbers.
    possible
        The cells that a record can be in; None if these are all.
    numbers
        What stands for the levels in records; None if these are 0, 1, ...
    lists
        What lists the records, if they are no combinations of levels: `sizes` is then how many they are.
    is_finite
        Whether it tells the whole of a record, and not some of its fields alone.
    """

    fields: tuple[str, ...]
    sizes: tuple[int, ...]
    levels: tuple[tuple[str, ...], ...] | None = None
    possible: tuple[int, ...] | None = None
    numbers: tuple[LevelNumbers, ...] | None = None
    lists: Lists | None = None
    is_finite: bool = True

    def __call__(self) -> dict[str, Any]:
        """Every possible record [m], as far as the domain lists its fields; without fields nothing."""
        if self.lists is not None:
            return self.lists()
        listed = self.records(self.places)
        if self.numbers is not None:
            listed = {name: of.array[listed[name]] for name, of in zip(self.fields, self.numbers, strict=True)}
        return {name: jnp.asarray(level) for name, level in listed.items()}

    @property
    def num_cells(self) -> int:
        """The number of cells c."""
        return prod(self.sizes)

    @property
    def size(self) -> int:
        """The number m of possible records."""
        return self.num_cells if self.possible is None else len(self.possible)

    @property
    def places(self) -> np.ndarray:
        """The cells [m] that a record can be in."""
        return np.arange(self.num_cells) if self.possible is None else np.asarray(self.possible)

    @property
    def empty(self) -> dict[str, list[int]]:
        """The levels that no record has, by field: stated, and so no mistake in a release that counts them."""
        if self.possible is None:
            return {}
        taken = self.records(self.places)
        return {
            name: sorted(set(range(size)) - set(taken[name].tolist()))
            for name, size in zip(self.fields, self.sizes, strict=True)
        }

    @property
    def level_names(self) -> dict[str, tuple[str, ...]]:
        """The names of the levels by field, where they have names."""
        return {} if self.levels is None else dict(zip(self.fields, self.levels, strict=True))

    @property
    def cell_names(self) -> tuple[str, ...] | None:
        """The names of the cells [c], such as ``"female,yes"``; None where levels have only numbers."""
        return None if self.levels is None else tuple(map(",".join, product(*self.levels)))

    def named(self, level_names: Mapping[str, tuple[str, ...]]) -> "Domain":
        """The same fields, with names of their levels if every field has them."""
        known = tuple(level_names[field] for field in self.fields if field in level_names)
        return replace(self, levels=known if tuple(map(len, known)) == self.sizes else None)

    def cell(self, records: dict[str, Any]) -> jax.Array:
        """The number of the cell of each record."""
        cell, *others = (records[field] for field in self.fields)
        if self.numbers is not None:
            cell, *others = (of.place(level) for of, level in zip(self.numbers, (cell, *others), strict=True))
        for size, level in zip(self.sizes[1:], others, strict=True):
            cell = cell * size + level
        return cell

    def records(self, cell: Any) -> dict[str, Any]:
        """The levels of records in cells of these numbers."""
        levels = []
        for size in reversed(self.sizes[1:]):
            cell, level = divmod(cell, size)
            levels.append(level)
        return dict(zip(self.fields, [cell, *reversed(levels)], strict=True))

    def take(self, values: jax.Array) -> jax.Array:
        """The values of the possible cells [m] among those of all [c]."""
        return values if self.possible is None else values[self.places]

    def spread(self, values: jax.Array) -> jax.Array:
        """Values of the possible cells [m] among zeros [c]."""
        if self.possible is None:
            return values
        return jnp.zeros(self.num_cells, values.dtype).at[self.places].set(values)


def domain_by(whole: Lists | None, other: Lists | None) -> Domain:
    """The domain of the records that a function lists, or else of the fields that another one lists, if there is one.

    The functions may be domains themselves.
    """
    lists = other if whole is None else whole
    if lists is None:
        return Domain((), (), lists=dict, is_finite=False)
    if not isinstance(lists, Domain):
        shapes = jax.eval_shape(lists)
        lists = Domain(tuple(shapes), tuple({leaf.shape[0] for leaf in jax.tree.leaves(shapes)}), lists=lists)
    return replace(lists, is_finite=whole is not None)
