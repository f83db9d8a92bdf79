"""Clipped gradients of a Poisson sample of the records, in blocks of a fixed size."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dpjax.base import Array, Key
from dpjax.private.fixed_point import LARGEST_BLOCK, FixedPoint, FloatingPoint, Limbs, arithmetic
from dpjax.private.sums.clipped import ClippedSum, clip_rows, gradients_of
from dpjax.private.targets.target import Target

__all__ = ["SampledSum", "choose_block", "gaps", "sampled_gradients", "successes"]

MARGIN = 16
"""Units in the last place by which a rate is reduced: more than the rounding of its logarithms."""


class SampledSum(NamedTuple):
    """A sum over sampled records, before any noise: **not private**.

    Attributes
    ----------
    gradients
        The sum [d], and how many of the sampled records' gradients were clipped.
    size
        How many records were sampled [].
    """

    gradients: ClippedSum
    size: Array


class Running(NamedTuple):
    """The running sums: the total in steps [d], the number of clipped gradients, and of sampled records."""

    total: Limbs
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
    Amplification by sampling requires an unpredictable sample: it is as secret as `key`. The relative error of each
    record's probability is a few millionths in float32, and never above the rate; in float64 it is rounding.
    """
    adder = arithmetic(bound, vector.dtype)

    def body(carry: tuple[Running, Array, Array]) -> tuple[Running, Array, Array]:
        running, last, number = carry
        places = successes(jax.random.fold_in(key, number), last, rate, block, target.num_records)
        return add_block(running, adder, target, vector, places, bound), places[-1], number + 1

    def unfinished(carry: tuple[Running, Array, Array]) -> Array:
        return carry[1] < target.num_records - 1

    zero = jnp.zeros((), vector.dtype)
    start = (
        Running(adder.zeros(vector.shape), zero, zero),
        jnp.asarray(-1, jnp.int32),
        jnp.asarray(0, jnp.int32),
    )
    running = jax.lax.while_loop(unfinished, body, start)[0]
    return SampledSum(ClippedSum(adder.floats(running.total), adder.unit, running.clipped), running.size)


def successes(key: Key, last: Array, rate: float, block: int, num_records: int) -> Array:
    """The next `block` places of successes after `last` in Bernoulli trials of probability `rate`; int32 [block]."""
    steps = gaps(jax.random.bits(key, (2, block), jnp.uint32), rate, num_records)
    # On one core several times as fast as `jnp.cumsum`.
    return last + jax.lax.associative_scan(jnp.add, steps)


def gaps(words: Array, rate: float, num_records: int) -> Array:
    """The gaps [block] between successes, geometric, from words [2, block] of 32 random bits; at most n + 1.

    A uniform number of 64 bits keeps its relative precision next to 0 and to 1, where small rates and long gaps are
    decided; rates are made smaller by some units in the last place, so that no record takes part more often than paid
    for.
    """
    kind = jnp.result_type(float)
    low, high = (fraction(words, kind), fraction(~words, kind))
    exponential = jnp.where(low < 0.5, -jnp.log1p(-low), -jnp.log(high))
    with np.errstate(divide="ignore"):
        hazard = -np.log1p(-np.float64(rate)) * (1 - MARGIN * float(jnp.finfo(kind).eps))
    least = jnp.finfo(kind).tiny
    waited = jnp.floor(exponential / jnp.maximum(jnp.asarray(hazard, kind), least))
    return (jnp.minimum(waited, num_records) + 1).astype(jnp.int32)


def fraction(words: Array, kind: Any) -> Array:
    """The number in (0, 1] whose first 64 binary digits are those of the words [2, block]."""
    first, second = (word.astype(kind) for word in words)
    return (first + (second + 0.5) * 2.0**-32) * 2.0**-32


def add_block(
    running: Running, adder: FixedPoint | FloatingPoint, target: Target, vector: Array, places: Array, bound: float
) -> Running:
    """The sums with the clipped gradients of the records at these places; those beyond the last record add nothing."""
    inside = places < target.num_records
    rows = jnp.minimum(places, target.num_records - 1)
    records = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:])[rows], target.records)
    weights = inside.astype(vector.dtype)
    values, longer = clip_rows(gradients_of(target, vector, records), weights, bound)
    return Running(
        adder.add(running.total, adder.sum(values)), running.clipped + longer, running.size + jnp.sum(weights)
    )


def choose_block(rate: float, num_records: int, block: int | None) -> int:
    """The block asked for, or one that holds nearly every sample; one whose places fit into an int32 in any case."""
    mean = rate * num_records
    wanted = int(mean + 4 * mean**0.5) + 1 if block is None else block
    return max(1, min(wanted, LARGEST_BLOCK, 2**31 // (num_records + 1) - 2))
