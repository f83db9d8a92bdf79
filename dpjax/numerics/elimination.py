"""Sums over many columns of a product of small tables, by eliminating one column after the other.

Columns x_1, ..., x_K have finitely many levels, and log-weights w_C are tables of a few columns C each. Among all
combinations of levels p(x) = exp(Σ_C w_C(x_C)) / Z. To eliminate a column is to add up the tables that it is in, its
*bucket*, and to sum it out (Dechter 1999). The buckets are the cliques of a junction tree (Lauritzen and Spiegelhalter
1988), of which each passes one message. The cost is that of the largest bucket, and not of all combinations.

Margins are the derivatives of log Z by the weights, and covariances of cells are its second derivatives. Records are
drawn column by column in the opposite order, each given the columns that its bucket holds.
"""

from collections.abc import Sequence
from functools import lru_cache, reduce
from itertools import combinations
from math import prod
from operator import add
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from dpjax.base import Array
from dpjax.numerics.cells import count_cells

__all__ = [
    "MOST_ENTRIES",
    "Elimination",
    "cell_moments",
    "draw_levels",
    "log_normaliser",
    "margins",
    "plan_elimination",
]

MOST_ENTRIES = 2**24
"""Largest number of entries of a table that is computed: 128 MiB in float64."""

AT_ONCE = 2**22
"""Entries of the largest bucket, times derivatives that are computed side by side."""


class CellPlaces(NamedTuple):
    """The cells of records among those of all tables, one table after another, each in C order.

    Attributes
    ----------
    offsets
        Where the cells of each table begin [m].
    strides
        How far each column's level moves the cell of each table [K, m].
    num_cells
        How many cells all tables have.
    """

    offsets: np.ndarray
    strides: np.ndarray
    num_cells: int

    def __call__(self, levels: Array) -> Array:
        """The cells [n, m] of records of these levels [K, n]."""
        strides, offsets = (jnp.asarray(one, levels.dtype) for one in (self.strides, self.offsets))
        return jnp.tensordot(levels, strides, (0, 0)) + offsets[None]

    def counts(self, levels: Array) -> Array:
        """How many of these records each cell has [num_cells]."""
        return count_cells(self(levels), self.num_cells)


class Elimination(NamedTuple):
    """An order in which columns are summed out, and what that takes; hashable, as programs are compiled for it.

    Attributes
    ----------
    sizes
        How many levels each column has.
    tables
        The columns of each table, increasing.
    buckets
        For each step the columns of its bucket, of which the last is summed out.
    """

    sizes: tuple[int, ...]
    tables: tuple[tuple[int, ...], ...]
    buckets: tuple[tuple[int, ...], ...]

    @property
    def largest(self) -> tuple[int, ...]:
        """The columns of the largest bucket."""
        return max(self.buckets, key=self.num_entries)

    def num_entries(self, columns: Sequence[int]) -> int:
        """How many entries a table of these columns has."""
        return prod(self.sizes[column] for column in columns)

    def shape(self, columns: Sequence[int]) -> tuple[int, ...]:
        """The shape of such a table."""
        return tuple(self.sizes[column] for column in columns)

    @property
    def places(self) -> CellPlaces:
        """The cells of records in all tables."""
        return places_of(self.sizes, self.tables)


@lru_cache(maxsize=256)
def places_of(sizes: tuple[int, ...], tables: tuple[tuple[int, ...], ...]) -> CellPlaces:
    """The places of the cells of tables of some columns."""
    strides = np.zeros((len(sizes), len(tables)), int)
    for place, table in enumerate(tables):
        for axis, column in enumerate(table):
            strides[column, place] = prod(sizes[other] for other in table[axis + 1 :])
    ends = np.cumsum([prod(sizes[column] for column in table) for table in tables])
    return CellPlaces(np.append(0, ends[:-1]), strides, int(ends[-1]))


@lru_cache(maxsize=256)
def plan_elimination(sizes: tuple[int, ...], tables: tuple[tuple[int, ...], ...]) -> Elimination:
    """The order by minimum fill: the next column is the one whose neighbours miss the fewest links between them.

    Nothing is computed yet, so that `Elimination.largest` tells the cost before it arises.
    """
    neighbours: dict[int, set[int]] = {column: set() for column in range(len(sizes))}
    for table in tables:
        for column in table:
            neighbours[column] |= set(table) - {column}

    def cost(column: int) -> tuple[int, int]:
        missing = sum(right not in neighbours[left] for left, right in combinations(neighbours[column], 2))
        return missing, prod(sizes[other] for other in neighbours[column])

    buckets = []
    while neighbours:
        column = min(neighbours, key=cost)
        others = neighbours.pop(column)
        buckets.append((*sorted(others), column))
        for other in others:
            neighbours[other] = (neighbours[other] | others) - {other, column}
    return Elimination(sizes, tables, tuple(buckets))


def eliminate(plan: Elimination, weights: Sequence[Array]) -> tuple[Array, list[Array]]:
    """log Z [], and the buckets: log-weights of their columns with all columns summed out that were before them."""
    waiting = list(zip(plan.tables, weights, strict=True))
    buckets = []
    for bucket in plan.buckets:
        column = bucket[-1]
        mine = [spread(plan, *one, bucket) for one in waiting if column in one[0]]
        buckets.append(jnp.broadcast_to(reduce(add, mine, jnp.zeros(())), plan.shape(bucket)))
        message = log_sum(buckets[-1])
        waiting = [one for one in waiting if column not in one[0]] + [(bucket[:-1], message)]
    return reduce(add, (number for _, number in waiting)), buckets


def log_sum(table: Array) -> Array:
    """log Σ exp over the last axis, of finite numbers."""
    largest = jax.lax.stop_gradient(jnp.max(table, axis=-1, keepdims=True))
    return jnp.log(jnp.sum(jnp.exp(table - largest), axis=-1)) + largest[..., 0]


def spread(plan: Elimination, columns: tuple[int, ...], table: Array, bucket: tuple[int, ...]) -> Array:
    """The table of some columns of a bucket as one that broadcasts to the whole bucket."""
    order = sorted(range(len(columns)), key=lambda axis: bucket.index(columns[axis]))
    return jnp.transpose(table, order).reshape([plan.sizes[one] if one in columns else 1 for one in bucket])


def log_normaliser(plan: Elimination, weights: Sequence[Array]) -> Array:
    """log Z [] = log Σ_x exp(Σ_C w_C(x_C)), for log-weights of the plan's tables."""
    return eliminate(plan, weights)[0]


def margins(plan: Elimination, weights: Sequence[Array]) -> list[Array]:
    """The probabilities of the cells of each of the plan's tables; a table of weights 0 has margins like any other."""
    return jax.grad(lambda given: log_normaliser(plan, given))(list(weights))


def cell_moments(plan: Elimination, weights: Sequence[Array], of: Sequence[int]) -> tuple[Array, Array]:
    """The probabilities [d] and the covariance [d, d] of the indicators of all cells of some tables, one after another.

    Parameters
    ----------
    of
        The places of these tables in the plan.
    """
    zeros, unravel = ravel_pytree([jnp.zeros_like(weights[place]) for place in of])

    def log_weighted(added: Array) -> Array:
        extra = dict(zip(of, unravel(added), strict=True))
        return log_normaliser(plan, [one + extra.get(place, 0) for place, one in enumerate(weights)])

    mean, derivative = jax.linearize(jax.grad(log_weighted), zeros)
    at_once = max(1, min(zeros.size, AT_ONCE // plan.num_entries(plan.largest)))
    return mean, jax.lax.map(derivative, jnp.eye(zeros.size, dtype=zeros.dtype), batch_size=at_once)


def draw_levels(plan: Elimination, weights: Sequence[Array], uniforms: Array) -> Array:
    """The levels [K, n] of records by uniform numbers [K, n]: a draw from p for each column of numbers."""
    _, buckets = eliminate(plan, weights)
    levels: dict[int, Array] = {}
    for bucket, table in zip(reversed(plan.buckets), reversed(buckets), strict=True):
        *others, column = bucket
        # The inner edges of the levels [rows, levels - 1], one row for each combination of the other columns.
        shares = jnp.cumsum(jax.nn.softmax(table, axis=-1), axis=-1).reshape(-1, plan.sizes[column])
        row = jnp.zeros(uniforms.shape[1], int)
        for other in others:
            row = row * plan.sizes[other] + levels[other]
        edges = shares[row, :-1] / shares[row, -1:]
        levels[column] = jnp.sum(uniforms[column][:, None] >= edges, axis=-1, dtype=int)
    return jnp.stack([levels[column] for column in range(len(plan.sizes))])


def without_table(plan: Elimination) -> tuple[int, int] | None:
    """The table whose absence makes the largest bucket smallest, and the size it then has; None if none helps."""
    found = []
    for place in range(len(plan.tables)):
        rest = plan_elimination(plan.sizes, plan.tables[:place] + plan.tables[place + 1 :])
        found.append((rest.num_entries(rest.largest), place))
    size, place = min(found, default=(plan.num_entries(plan.largest), 0))
    return (place, size) if size < plan.num_entries(plan.largest) else None
