"""What the fields of a record can be: how many levels each has, what these are called, and which occur together."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

__all__ = ["Domain"]


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
    """

    fields: tuple[str, ...]
    sizes: tuple[int, ...]
    levels: tuple[tuple[str, ...], ...] | None = None
    possible: tuple[int, ...] | None = None

    def __call__(self) -> dict[str, Any]:
        """Every possible record [m]."""
        return {name: jnp.asarray(level, int) for name, level in self.records(self.places).items()}

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
        for size, level in zip(self.sizes[1:], others, strict=True):
            cell = cell * size + level
        return cell

    def records(self, cell: Any) -> dict[str, Any]:
        """The records in cells of these numbers."""
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
