"""Clipped gradients of a Poisson sample of the records, in blocks of a fixed size."""

from itertools import count, takewhile
from math import ceil, exp, expm1
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dpjax.base import Array, Key
from dpjax.private.fixed_point import LARGEST_BLOCK, FixedPoint, FloatingPoint, Limbs, arithmetic
from dpjax.private.sums.clipped import ClippedSum, clip_rows, gradients_of
from dpjax.private.targets.target import Target

__all__ = ["SampledSum", "choose_block", "gap_thresholds", "gaps", "sampled_gradients", "successes"]

SLACK = 2.0**-22
"""By how much of itself a hazard is reduced: more than the rounding of the chances of bits."""

LONGEST = 2.0**-40
"""The chance of a longer gap than is distinguished, if the records do not end before: after it none takes part."""


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
    Amplification by sampling requires an unpredictable sample: it is as secret as `key`. Each record takes part with a
    probability that is never above the rate, and less than a millionth of it below, in float32 as in float64.
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
    thresholds = gap_thresholds(rate, num_records)
    words = jax.random.bits(key, (len(thresholds) + 1, block), jnp.uint32)
    # On one core several times as fast as `jnp.cumsum`.
    return last + jax.lax.associative_scan(jnp.add, gaps(words, thresholds, num_records))


def gap_thresholds(rate: float, num_records: int) -> list[int]:
    """The chances, times 2⁶⁴, of each bit of a gap less 1, from the lowest on; last that of no more bits.

    Bits of a geometric number are independent: of s^x the bit of 2^j is 1 with probability t / (1 + t), t = s^(2^j).
    The chances are accurate to 2⁻²³ of themselves, and no record takes part with more than the rate, given the others.
    """
    with np.errstate(divide="ignore"):
        hazard = -np.log1p(-np.float64(rate)) * (1 - SLACK)
    bits = list(takewhile(lambda bit: 2**bit <= num_records and exp(-hazard * 2**bit) >= LONGEST, count()))
    stays = [exp(-hazard * 2**bit) for bit in bits]
    waits = hazard * 2 ** len(bits)
    # Rounded down, and from the end to which it is nearer.
    ends = 2**64 - max(ceil(exp(-waits) * 2**64), 1) if waits > 1 else int(-expm1(-waits) * 2**64)
    return [*(int(stay / (1 + stay) * 2**64) for stay in stays), ends]


def gaps(words: Array, thresholds: list[int], num_records: int) -> Array:
    """The gaps [block] between successes, geometric, from words [k + 1, block] of 32 random bits; at most n + 1.

    Each is in integers, with the same chances in float32. The last word decides where another one is the first half of
    its threshold: twice in one gap that happens once in 2⁶⁴.
    """
    high, low = np.array([divmod(threshold, 2**32) for threshold in thresholds], np.uint32).T[:, :, None]
    *bits, ends = (words[:-1] < high) | ((words[:-1] == high) & (words[-1:] < low))
    waited = sum((bit.astype(jnp.int32) << place for place, bit in enumerate(bits)), jnp.zeros_like(ends, jnp.int32))
    return jnp.where(ends, jnp.minimum(waited, num_records), num_records) + 1


def add_block(
    running: Running, adder: FixedPoint | FloatingPoint, target: Target, vector: Array, places: Array, bound: float
) -> Running:
    """The sums with the clipped gradients of the records at these places; those beyond the last record add nothing."""
    rows = jnp.minimum(places, target.num_records - 1)
    records = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:])[rows], target.records)
    weights = (places < target.count).astype(target.dtype)
    values, longer = clip_rows(gradients_of(target, vector, records), weights, bound)
    return Running(
        adder.add(running.total, adder.sum(values)), running.clipped + longer, running.size + jnp.sum(weights)
    )


def choose_block(rate: float, num_records: int, block: int | None) -> int:
    """The block asked for, or one that holds nearly every sample; one whose places fit into an int32 in any case."""
    mean = rate * num_records
    wanted = int(mean + 4 * mean**0.5) + 1 if block is None else block
    return max(1, min(wanted, LARGEST_BLOCK, 2**31 // (num_records + 1) - 2))
