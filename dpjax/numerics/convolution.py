"""Sums of products of two sequences at shifted places, such as the distribution of a sum of two numbers."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from dpjax.base import Array

__all__ = ["convolve", "piece"]

BLOCK = 16
"""Products of one entry that are added up in one loop over all entries, which the compiler vectorises."""


@partial(jax.custom_vjp, nondiff_argnums=(3,))
def convolve(one: Array, other: Array, start: Array, size: int) -> Array:
    """The sums Σ_j one[start + s − j] other[j] [size], for s = 0, ..., size − 1; entries beyond the ends count as 0.

    All are sums of products, so that results are accurate to rounding also where they are small, if no entry is
    negative. It can be differentiated in reverse, and the gradient forwards.

    Parameters
    ----------
    one : [m]
        The first sequence.
    other : [k]
        The second one. The work is in proportion to k times the size.
    start : []
        The place of the first sum, a whole number.
    size
        How many sums.
    """
    return keep(one, other, start, size)[0]


def keep(one: Array, other: Array, start: Array, size: int) -> tuple[Array, Any]:
    """The sums, and what their gradient needs."""
    around = piece(one, start - len(other) + 1, size + len(other) - 1)
    return slide(around, other[::-1]), (one, other, start)


def pull_back(size: int, kept: Any, slopes: Array) -> tuple[Array, Array, None]:
    """The gradient of Σ slopes · sums in both sequences: sums of products of the same kind."""
    one, other, start = kept
    k = len(other)
    around = piece(one, start - k + 1, size + k - 1)
    spread = slide(jnp.pad(slopes, (k - 1, k - 1)), other)
    return piece(spread, k - 1 - start, len(one)), slide(around, slopes)[::-1], None


convolve.defvjp(keep, pull_back)


def piece(values: Array, start: Array, size: int) -> Array:
    """The entries [size] from a place on, which may lie before the first one or after the last; 0 beyond the ends."""
    padded = jnp.pad(values, (size, size))
    return jax.lax.dynamic_slice_in_dim(padded, jnp.clip(start + size, 0, len(values) + size), size)


def slide(values: Array, factors: Array) -> Array:
    """The sums Σ_i values[s + i] factors[i] for all s [m − k + 1] at which all of them exist."""
    k = len(factors)
    size = len(values) - k + 1
    if k <= 2 * BLOCK:
        return add_products(jnp.zeros(size, values.dtype), values, factors)
    blocks = -(-k // BLOCK)
    rest = blocks * BLOCK - k
    values = jnp.pad(values, (0, rest))

    def add_block(sums: Array, block: tuple[Array, Array]) -> tuple[Array, None]:
        place, some = block
        return add_products(sums, jax.lax.dynamic_slice_in_dim(values, place, size + BLOCK - 1), some), None

    given = BLOCK * jnp.arange(blocks), jnp.pad(factors, (0, rest)).reshape(blocks, BLOCK)
    return jax.lax.scan(add_block, jnp.zeros(size, values.dtype), given)[0]


def add_products(sums: Array, values: Array, factors: Array) -> Array:
    """The sums with Σ_i values[s + i] factors[i] added, for a few factors."""
    for place in range(len(factors)):
        sums = sums + values[place : place + len(sums)] * factors[place]
    return sums
