"""Clipped gradients of a Poisson sample of the records, in blocks of a fixed size."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from dpjax.base import Array, Key
from dpjax.private.clipped import ClippedSum, clip_rows, gradients_of
from dpjax.private.target import Target

__all__ = ["SampledSum", "choose_block", "sampled_gradients", "successes"]


class SampledSum(NamedTuple):
    """A sum over sampled records, before any noise: **not private**.

    value
        The sum [d].
    clipped, size
        How many of the sampled records' gradients were clipped, and how many records were sampled [].
    """

    value: Array
    clipped: Array
    size: Array


def sampled_gradients(target: Target, key: Key, vector: Array, *, rate: float, bound: float, block: int) -> SampledSum:
    """The clipped gradients summed over records that take part with probability `rate` each, independently.

    The gaps between the records that take part are geometric, so that a sample of m records costs O(m) and not O(n).
    They are drawn in blocks of a fixed size. A sample that is larger than a block **is not cut short**: further blocks
    are drawn until the last record is passed. Dropping what does not fit would be another mechanism than the one
    accounted for.

    Notes
    -----
    Amplification by sampling needs a sample that nobody can guess: it is as secret as `key`. In float32 each record's
    probability is right to about 1e-7, in float64 to rounding.
    """

    def body(carry: tuple[SampledSum, Array, Array]) -> tuple[SampledSum, Array, Array]:
        total, last, number = carry
        places = successes(jax.random.fold_in(key, number), last, rate, block, target.num_records)
        return jax.tree.map(jnp.add, total, sum_block(target, vector, places, bound)), places[-1], number + 1

    def unfinished(carry: tuple[SampledSum, Array, Array]) -> Array:
        return carry[1] < target.num_records - 1

    zero = jnp.zeros((), vector.dtype)
    start = (SampledSum(jnp.zeros_like(vector), zero, zero), jnp.asarray(-1, jnp.int32), jnp.asarray(0, jnp.int32))
    return jax.lax.while_loop(unfinished, body, start)[0]


def successes(key: Key, last: Array, rate: float, block: int, num_records: int) -> Array:
    """The next `block` places of successes after `last` in Bernoulli trials of probability `rate`; int32 [block]."""
    uniforms = jax.random.uniform(key, (block,))
    gaps = jnp.floor(jnp.log1p(-uniforms) / jnp.log1p(jnp.asarray(-rate, uniforms.dtype))) + 1
    steps = jnp.minimum(gaps, num_records + 1).astype(jnp.int32)
    # On one core several times as fast as `jnp.cumsum`.
    return last + jax.lax.associative_scan(jnp.add, steps)


def sum_block(target: Target, vector: Array, places: Array, bound: float) -> SampledSum:
    """The clipped gradients summed over the records at these places; those beyond the last record count nothing."""
    inside = places < target.num_records
    rows = jnp.minimum(places, target.num_records - 1)
    records = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:])[rows], target.records)
    weights = inside.astype(vector.dtype)
    # Fused with the gather, each gradient would be computed anew for its norm and for the sum.
    gradients = jax.lax.optimization_barrier(gradients_of(target, vector, records))
    total: ClippedSum = clip_rows(gradients, weights, bound)
    return SampledSum(total.value, total.clipped, jnp.sum(weights))


def choose_block(rate: float, num_records: int) -> int:
    """A block that holds nearly every sample, and whose places fit into an int32."""
    mean = rate * num_records
    return max(1, min(int(mean + 4 * mean**0.5) + 1, 2**31 // (num_records + 1) - 2))
