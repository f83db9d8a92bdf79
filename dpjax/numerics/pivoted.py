"""Least squares with few unknowns for each of many records, by Householder's reflections with complete pivoting.

Equations of very different accuracy keep the digits of the less accurate ones (Cox and Higham 1998): those that are
known well are eliminated first. A matrix of cross products would have lost them.
"""

from typing import NamedTuple

import jax.numpy as jnp

from dpjax.base import Array

__all__ = ["Triangle", "triangularize"]


class Triangle(NamedTuple):
    """The equations A x = b of m records as R x = y, rotated: |A x - b|² is |R x - y|² + rest.

    Attributes
    ----------
    rows
        The rows of R [f, f, m], with the unknowns where they were. Each has zeros at the pivots of the rows before.
    right
        The right-hand sides y [f, m].
    rest
        The sum of squares [m] that no x removes.
    chosen
        Which unknown [f, f, m] is the pivot of each row.
    """

    rows: Array
    right: Array
    rest: Array
    chosen: Array

    @property
    def pivots(self) -> Array:
        """The pivots [f, m] of the rows."""
        return jnp.sum(jnp.where(self.chosen, self.rows, 0), axis=1)

    def solve(self, right: Array) -> Array:
        """The x [f, m] with R x = right."""
        found = jnp.zeros_like(right)
        for row, chosen, pivot, entry in reversed(list(zip(self.rows, self.chosen, self.pivots, right, strict=True))):
            found = jnp.where(chosen, ((entry - jnp.sum(row * found, axis=0)) / pivot)[None], found)
        return found

    def solve_transposed(self, right: Array) -> Array:
        """The u [f, m] with Rᵀ u = right."""
        found = []
        for row, chosen, pivot in zip(self.rows, self.chosen, self.pivots, strict=True):
            found.append(jnp.sum(jnp.where(chosen, right, 0), axis=0) / pivot)
            right = right - found[-1][None] * row
        return jnp.stack(found)


def triangularize(matrix: Array, right: Array) -> Triangle:
    """The triangular form of equations [k, f, m] with right-hand sides [k, m], at least as many as unknowns.

    A record whose equations leave an unknown open has a pivot that is not finite.
    """
    table, size = jnp.concatenate([matrix, right[:, None]], axis=1), matrix.shape[1]
    rows, picked = [], []
    for _ in range(size):
        chosen = is_largest(jnp.max(jnp.abs(table[:, :size]), axis=0))
        column = jnp.sum(jnp.where(chosen[None], table[:, :size], 0), axis=1)
        first = is_largest(jnp.abs(column))
        column = to_front(column, first)
        table = to_front(table, jnp.broadcast_to(first[:, None], table.shape))
        # The reflection turns the column into its length, against its first entry, by which all is divided.
        direction = column[1:] / column[:1]
        length = jnp.sqrt(1 + jnp.sum(direction**2, axis=0))
        direction = jnp.concatenate([jnp.ones_like(length)[None], direction / (1 + length)[None]])
        along = (1 + length)[None] / length[None] * jnp.sum(direction[:, None] * table, axis=0)
        table = table - direction[:, None] * along[None]
        table = jnp.concatenate([jnp.where(chosen[None], 0, table[:, :size]), table[:, size:]], axis=1)
        pivot = jnp.where(chosen, -(column[0] * length)[None], table[0, :size])
        rows.append(jnp.concatenate([pivot, table[0, size:]]))
        picked.append(chosen)
        table = table[1:]
    reduced = jnp.stack(rows)
    return Triangle(reduced[:, :size], reduced[:, size], jnp.sum(table[:, size] ** 2, axis=0), jnp.stack(picked))


def is_largest(sizes: Array) -> Array:
    """Whether an entry [k, m] is the first of the largest ones of its column."""
    return jnp.argmax(sizes, axis=0)[None] == jnp.arange(len(sizes))[:, None]


def to_front(table: Array, first: Array) -> Array:
    """The table [k, ...] with its first row exchanged for the one marked [k, ...], of each record."""
    front = jnp.sum(jnp.where(first, table, 0), axis=0)
    return jnp.concatenate([front[None], jnp.where(first, table[:1], table)[1:]])
