"""Sums over many records of a few functions of each, in one loop over the records.

XLA's CPU compiler has a loop for each sum, and computes in it anew what the sums have in common.
"""

from collections.abc import Callable, Sequence
from functools import reduce
from operator import add
from typing import Any

import jax
import jax.numpy as jnp

from dpjax.base import Array
from dpjax.numerics.arrays import Piece, are_many, for_pieces, leading_size, take_piece

__all__ = ["MAX_ROWS", "are_summed_at_once", "sum_each", "sum_records", "sum_rows", "zero_if_finite"]

MAX_ROWS = 64
"""Largest number of rows that are added one by one; the program grows with each."""

MAX_BLOCK = 128
"""Most numbers that are added one after another."""


def sum_rows(row: Callable[[Any], Array], num_rows: int) -> Array:
    """The sum of row(0), row(1), ... as one expression, which XLA's CPU compiler vectorises better than a reduction."""
    if num_rows > MAX_ROWS:
        return jnp.sum(jax.vmap(row)(jnp.arange(num_rows)), axis=0)
    return reduce(add, map(row, range(num_rows)))


def sum_records(rows: Callable[[Any], Array | Sequence[Array]], records: Any) -> Array:
    """The sums [d] of d rows [m] that are functions of m records, a piece after another if there are many."""
    n = leading_size(records)
    if not are_many(n):
        return sum_each(rows(records))

    def add_piece(total: Array, index: Array | int, piece: Piece) -> Array:
        del index
        return total + sum_records(rows, take_piece(records, piece))

    shape = jax.eval_shape(lambda: sum_each(rows(take_piece(records, Piece(0, 1)))))
    return for_pieces(add_piece, jnp.zeros(shape.shape, shape.dtype), n)


def are_summed_at_once(num_rows: int) -> bool:
    """Whether so many rows are summed in one loop over their columns."""
    return num_rows <= MAX_ROWS and jax.default_backend() == "cpu"


def sum_each(rows: Array | Sequence[Array]) -> Array:
    """The sums [d] of d rows [m]."""
    if are_summed_at_once(len(rows)):
        return sum_at_once(tuple(rows))
    return jnp.sum(rows if isinstance(rows, jax.Array) else jnp.stack(rows), axis=1)


@jax.custom_jvp
def sum_at_once(rows: tuple[Array, ...]) -> Array:
    """The sums [d] of d rows [m] in one loop, with the sums of blocks apart: float32 loses less in these."""
    length = block_length(rows[0].size)
    num_blocks = rows[0].size // length
    blocks = sum_blocks(tuple(row[: num_blocks * length].reshape(num_blocks, length) for row in rows))
    rest = tuple(row[None, num_blocks * length :] for row in rows)
    return jnp.sum(jnp.concatenate([blocks, sum_blocks(rest)], axis=1) if rest[0].size else blocks, axis=1)


@sum_at_once.defjvp
def sum_tangents(primals: tuple[Any], tangents: tuple[Any]) -> tuple[Array, Array]:
    """The sums are linear; in JAX a reduction of several arrays cannot be transposed."""
    return sum_at_once(*primals), jnp.stack([jnp.sum(row) for row in tangents[0]])


def sum_blocks(rows: tuple[Array, ...]) -> Array:
    """The sums [d, k] over the last axis of d arrays [k, m]."""

    def plus(totals: tuple[Array, ...], terms: tuple[Array, ...]) -> tuple[Array, ...]:
        return tuple(map(add, totals, terms))

    zeros = tuple(jnp.zeros((), row.dtype) for row in rows)
    return jnp.stack(jax.lax.reduce(rows, zeros, plus, (1,)))


def block_length(m: int) -> int:
    """A length for blocks of m numbers, of which m is a multiple if it can be."""
    lengths = range(min(m, MAX_BLOCK), MAX_BLOCK // 4, -1)
    return next((length for length in lengths if m % length == 0), min(max(m, 1), MAX_BLOCK))


def zero_if_finite(tree: Any, dtype: Any) -> Array:
    """For each row 0 [m], but NaN if one of its numbers is not finite, in a tree of arrays with leading axis [m]."""
    leaves = [leaf for leaf in jax.tree.leaves(tree) if jnp.issubdtype(jnp.result_type(leaf), jnp.floating)]
    columns = [column.astype(dtype) for leaf in leaves for column in leaf.reshape(len(leaf), -1).T]
    return reduce(add, [0 * column for column in columns], jnp.zeros(leading_size(tree), dtype))
