"""Sums of products of two sequences at shifted places, such as the distribution of a sum of two numbers."""

from functools import partial

import jax
import jax.numpy as jnp

from dpjax.base import Array
from dpjax.numerics.linear_algebra import product

__all__ = ["convolve", "cut", "piece"]


def convolve(one: Array, other: Array, start: Array, size: int) -> Array:
    """The sums Σ_j one[start + s − j] other[j] [size], for s = 0, ..., size − 1; entries beyond the ends count as 0.

    All are sums of products, so that results are accurate to rounding also where they are small, if no entry is
    negative. It can be differentiated in reverse, and the gradient forwards.

    The second sequence is cut into about as many blocks as a block is long. A product of matrices has the sums of each
    block, which are then added up where they belong. So programs are short, however long the sequences are.

    Parameters
    ----------
    one : [m]
        The first sequence.
    other : [k]
        The second one. The work is in proportion to k times the size and k together.
    start : []
        The place of the first sum, a whole number.
    size
        How many sums.
    """
    k = len(other)
    if size == 1:
        return jnp.sum(cut(one, start - k + 1, k) * other[::-1], keepdims=True)
    length = 2 ** (k.bit_length() // 2)
    blocks = -(-k // length)
    around = cut(one, start - k + 1, size + blocks * length - 1)
    factors = jnp.pad(other[::-1], (0, blocks * length - k)).reshape(blocks, length)
    near = shift_rows(jnp.broadcast_to(around, (length, len(around))), 1)
    return jnp.sum(shift_rows(product(factors, near), length), axis=0)


def shift_rows(rows: Array, step: int) -> Array:
    """Each row of a matrix [r, m] begun so many steps later than the one above: [r, m − (r − 1) step]."""
    count, length = rows.shape
    flat = jnp.pad(rows.reshape(-1), (0, count * step))
    return flat.reshape(count, length + step)[:, : length - (count - 1) * step]


def piece(values: Array, start: Array, size: int) -> Array:
    """The entries [size] from a place on, which may lie before the first one or after the last; 0 beyond the ends."""
    padded = jnp.pad(values, (size, size))
    return jax.lax.dynamic_slice_in_dim(padded, jnp.clip(start + size, 0, len(values) + size), size)


@partial(jax.custom_vjp, nondiff_argnums=(2,))
def cut(values: Array, start: Array, size: int) -> Array:
    """As `piece`, with a gradient in reverse that is a piece, too: it compiles to less than sums at given places."""
    return piece(values, start, size)


cut.defvjp(
    lambda values, start, size: (piece(values, start, size), (values, start)),
    lambda size, kept, slopes: (piece(slopes, -kept[1], len(kept[0])), None),
)
