"""Very many records a piece at a time, so that what is made of them takes the memory of one piece and fits caches."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import jax

from dpjax.base import Array

__all__ = ["Piece", "are_many", "for_pieces", "put_piece", "take_piece"]

Carry = TypeVar("Carry")

PIECE = 2**16
"""The records of a piece; fewer are not cut."""


class Piece(NamedTuple):
    """The records from `start` [] on, `size` of them."""

    start: Array | int
    size: int


def are_many(n: int) -> bool:
    """Whether n records are more than a piece."""
    return n > PIECE


def for_pieces(function: Callable[[Carry, Array | int, Piece], Carry], carry: Carry, n: int, unit: int = 1) -> Carry:
    """The carry after ``function(carry, index, piece)`` for every piece of n records, in order.

    Parameters
    ----------
    unit
        Pieces begin at multiples of it.
    """
    size = min(n, PIECE // unit * unit or unit)
    full = n // size

    def body(index: Array, carry: Carry) -> Carry:
        return function(carry, index, Piece(index * size, size))

    carry = jax.lax.fori_loop(0, full, body, carry)
    rest = n - full * size
    return function(carry, full, Piece(full * size, rest)) if rest else carry


def take_piece(records: Any, piece: Piece) -> Any:
    """The records of a piece, of a tree of arrays with leading axis [n]."""
    return jax.tree.map(lambda leaf: jax.lax.dynamic_slice_in_dim(leaf, piece.start, piece.size), records)


def put_piece(records: Any, new: Any, piece: Piece) -> Any:
    """All records, with those of a piece replaced."""

    def put(leaf: Array, part: Array) -> Array:
        return jax.lax.dynamic_update_slice_in_dim(leaf, part, piece.start, 0)

    return jax.tree.map(put, records, new)
