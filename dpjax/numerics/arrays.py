"""Arrays and pytrees of arrays: selection, pieces, and non-finite numbers."""

from collections.abc import Callable
from functools import reduce
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from dpjax.base import Array

__all__ = [
    "Piece",
    "all_finite",
    "are_many",
    "for_pieces",
    "leading_size",
    "proper_density",
    "put_piece",
    "take_entry",
    "take_piece",
    "tree_where",
]

Carry = TypeVar("Carry")

PIECE = 2**16
"""Largest number of records in a piece."""


def leading_size(tree: Any) -> int:
    """The length of the common leading axis of a tree of arrays."""
    return int(np.shape(jax.tree.leaves(tree)[0])[0])


def take_entry(tree: Any, index: int) -> Any:
    """One entry of the common leading axis of a tree of arrays."""
    return jax.tree.map(lambda leaf: leaf[index], tree)


def proper_density(log_density: Array) -> Array:
    """The log-density with NaN and +∞ replaced by −∞, so that a non-finite density is rejected."""
    return jnp.where(log_density < jnp.inf, log_density, -jnp.inf)


def all_finite(tree: Any) -> Array:
    """Whether every number in a tree of arrays is finite []."""
    leaves = [leaf for leaf in jax.tree.leaves(tree) if jnp.issubdtype(jnp.result_type(leaf), jnp.floating)]
    return reduce(jnp.logical_and, [jnp.all(jnp.isfinite(leaf)) for leaf in leaves], jnp.array(True))


def tree_where(condition: Array, new: Any, old: Any) -> Any:
    """The new tree of arrays if the condition holds, else the old: as a whole [], or row by row [n]."""

    def choose(one: Array, other: Array) -> Array:
        missing = (1,) * (jnp.ndim(other) - condition.ndim)
        return jnp.where(condition.reshape(condition.shape + missing), one, other)

    return jax.tree.map(choose, new, old)


class Piece(NamedTuple):
    """A slice of `size` records from `start` [] on."""

    start: Array | int
    size: int


def are_many(n: int) -> bool:
    """Whether n records are more than one piece."""
    return n > PIECE


def for_pieces(function: Callable[[Carry, Array | int, Piece], Carry], carry: Carry, n: int, unit: int = 1) -> Carry:
    """The carry after ``function(carry, index, piece)`` for every piece of n records, in order.

    Parameters
    ----------
    unit
        A number of which the start of every piece is a multiple.
    """
    size = min(n, PIECE // unit * unit or unit)
    full = n // size

    def body(index: Array, carry: Carry) -> Carry:
        return function(carry, index, Piece(index * size, size))

    carry = jax.lax.fori_loop(0, full, body, carry)
    rest = n - full * size
    return function(carry, full, Piece(full * size, rest)) if rest else carry


def take_piece(records: Any, piece: Piece) -> Any:
    """The records of a piece, from a tree of arrays with leading axis [n]."""
    return jax.tree.map(lambda leaf: jax.lax.dynamic_slice_in_dim(leaf, piece.start, piece.size), records)


def put_piece(records: Any, new: Any, piece: Piece) -> Any:
    """All records, with those of a piece replaced."""

    def put(leaf: Array, part: Array) -> Array:
        return jax.lax.dynamic_update_slice_in_dim(leaf, part, piece.start, 0)

    return jax.tree.map(put, records, new)
