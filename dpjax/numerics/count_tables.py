"""Counts that share one distribution: draws, cells and sums by tables of its probabilities.

A table has the probabilities of `WIDTH` consecutive counts. It is made once for all records, and each record finds its
place in the running sums by a binary search. If one table is too short, others follow.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from dpjax.base import Array, Key
from dpjax.numerics.counts import (
    LARGEST_MEAN,
    SMALL_MEAN,
    draw_negative_binomial,
    negative_binomial_log_probability,
    poisson_log_probability,
    reject_poisson,
)

__all__ = [
    "CountDistribution",
    "cells_of",
    "count_below",
    "counts_at",
    "draw_counts",
    "is_reached",
    "negative_binomial_counts",
    "poisson_counts",
    "sort_uniforms",
    "sum_over_counts",
    "unless",
]

WIDTH, DRAWN = 128, 256
"""Number of counts of a table for searches, and of one for draws."""

MAX_TABLES = 8_192
"""Largest number of tables for one distribution, a million counts."""

NEGLECTED = 36.0
"""Minus the log of a probability that is neglected, 2e-16: one of float64's rounding errors."""

UNREACHED = int(LARGEST_MEAN)
"""What stands for a count that no table reaches."""


class CountDistribution(NamedTuple):
    """A Poisson or negative binomial distribution, perhaps with zeros added.

    Attributes
    ----------
    log_probability
        The log-probability of counts, elementwise, without the added zeros.
    mean
        The mean [] of that distribution.
    variance
        Its variance [], at least the mean.
    zeros
        The probability [] of an added zero.
    draw
        ``(key, n) -> counts [n]``, draws from the distribution without the added zeros, for any parameters.
    """

    log_probability: Callable[[Array], Array]
    mean: Array
    variance: Array
    zeros: Array
    draw: Callable[[Key, int], Array]

    @property
    def is_known(self) -> Array:
        """Whether counts fit into integers []; false for parameters that are not numbers."""
        return (self.mean >= 0) & (self.mean <= LARGEST_MEAN) & (self.variance >= 0)

    @property
    def first(self) -> Array:
        """A count [] below which there is no more than a neglected probability, beside the added zeros.

        For variance v and t > 0, P(X ≤ mean − t) ≤ exp(−t² / 2v): Chernoff's bound.
        """
        lowest = jnp.floor(self.mean - jnp.sqrt(2 * NEGLECTED * self.variance))
        return jnp.where(self.is_known, jnp.clip(lowest, 0, LARGEST_MEAN), 0).astype(int)

    @property
    def last(self) -> Array:
        """A count [] above which there is no more than a neglected probability, or the last one of all tables.

        Let g = v / mean − 1/2. Then P(X ≥ mean + t) ≤ exp(−t² / 2 (v + g t)). For size r, log(1 + y) ≥ 2y / (2 + y) is
        used in the exponent of Chernoff's bound, k log(k / mean) − (k + r) log((k + r) / (mean + r)).
        """
        shift = NEGLECTED * (self.variance / jnp.where(self.mean > 0, self.mean, 1) - 0.5)
        reach = jnp.maximum(shift, 0) + jnp.sqrt(shift**2 + 2 * NEGLECTED * self.variance)
        span = jnp.minimum(self.mean - self.first.astype(reach.dtype) + reach + 1, float(WIDTH * MAX_TABLES - 1))
        return jnp.where(self.is_known, self.first + jnp.ceil(span).astype(int), -1)

    @property
    def below(self) -> Array:
        """The probability [] of zeros that are not in the first table."""
        return jnp.where(self.first > 0, self.zeros, 0.0)

    def log_density(self, counts: Array) -> Array:
        """The log-probability of counts, elementwise, with the added zeros."""
        log_density = jnp.log1p(-self.zeros) + self.log_probability(counts)
        return jnp.where(counts == 0, jnp.logaddexp(jnp.log(self.zeros), log_density), log_density)

    def table(self, start: Array, width: int = WIDTH) -> Array:
        """The probabilities of the counts from `start` [] on [width]."""
        counts = start + jnp.arange(width)
        probabilities = (1 - self.zeros) * jnp.exp(self.log_probability(counts))
        return probabilities + jnp.where(counts == 0, self.zeros, 0.0)


def poisson_counts(mean: Array, zeros: Array) -> CountDistribution:
    """The Poisson distribution of a mean [], with zeros added with a probability []."""

    def draw(key: Key, n: int) -> Array:
        # Smaller means have a table.
        usable = jnp.where(mean <= LARGEST_MEAN, jnp.maximum(mean, SMALL_MEAN), SMALL_MEAN)
        return jax.vmap(lambda key: reject_poisson(key, usable))(jax.random.split(key, n))

    return CountDistribution(lambda counts: poisson_log_probability(counts, mean), mean, mean, zeros, draw)


def negative_binomial_counts(mean: Array, size: Array, zeros: Array) -> CountDistribution:
    """The negative binomial distribution of variance mean + mean² / size, with zeros added with a probability []."""
    variance = mean + mean * (mean / size)

    def draw(key: Key, n: int) -> Array:
        usable = (mean <= LARGEST_MEAN) & (size > 0)
        arguments = (jnp.where(usable, argument, 1.0) for argument in (mean, size))
        return jax.vmap(draw_negative_binomial, (0, None, None))(jax.random.split(key, n), *arguments)

    return CountDistribution(
        lambda counts: negative_binomial_log_probability(counts, mean, size), mean, variance, zeros, draw
    )


def count_below(table: Array, values: Array, strictly: bool = False) -> Array:
    """How many entries of an ascending table [m] are at most, or strictly below, each value [...]."""
    size = table.shape[0]
    found = jnp.zeros(values.shape, jnp.int32)
    for level in reversed(range(size.bit_length())):
        ahead = found + 2**level
        entry = table.at[jnp.minimum(ahead, size) - 1].get(mode="promise_in_bounds")
        passed = (entry < values) if strictly else (entry <= values)
        found = jnp.where(passed & (ahead <= size), ahead, found)
    return found.astype(int)


def draw_counts(key: Key, distribution: CountDistribution, n: int) -> Array:
    """Independent draws [n] from a distribution, also far in its tails.

    By a table of its probabilities if that leaves out no more than a neglected one, and else by the
    `draw` of the distribution. A draw is found from the tail in which it is, so that float32 has all digits of small
    probabilities. It is -1 where counts do not fit into integers.
    """
    zero_key, place_key, draw_key = jax.random.split(key, 3)
    base = distribution._replace(zeros=jnp.zeros_like(distribution.zeros))
    probabilities = base.table(base.first, DRAWN)
    places = jax.random.bits(place_key, (2, n), jnp.uint32)
    drawn = base.first + invert_tails(probabilities, *split_uniforms(places, probabilities.dtype))
    covered = is_covered(base, probabilities)
    drawn = unless(covered, drawn, lambda turn: base.draw(jax.random.fold_in(draw_key, turn), n))
    drawn = jnp.where(jax.random.uniform(zero_key, (n,), float) < distribution.zeros, 0, drawn)
    return jnp.where(distribution.is_known, drawn, -1)


def is_covered(distribution: CountDistribution, probabilities: Array) -> Array:
    """Whether the first table leaves out no more than a neglected probability [].

    Above the mean the ratio of one probability to the last is monotone, and tends to 1 − mean / variance.
    """
    ratio = probabilities[-1] / jnp.where(probabilities[-2] > 0, probabilities[-2], 1)
    ratio = jnp.maximum(ratio, 1 - distribution.mean / jnp.where(distribution.variance > 0, distribution.variance, 1))
    rest = jnp.where(probabilities[-1] > 0, probabilities[-1] * ratio / (1 - ratio), 0.0)
    return (
        distribution.is_known
        & (distribution.mean < (distribution.first + DRAWN).astype(distribution.mean.dtype))
        & (rest < jnp.exp(-NEGLECTED))
    )


def split_uniforms(bits: Array, dtype: Any) -> tuple[Array, Array]:
    """Which tail, and a uniform below 1/2 within it, from words [2, n]; the smallest uniforms are near 2⁻⁶⁴."""
    upper = bits[0] >> 31 == 1
    large = (bits[0] & 0x7FFFFFFF).astype(dtype)
    return upper, large * 2.0**-32 + (bits[1].astype(dtype) + 0.5) * 2.0**-64


def invert_tails(probabilities: Array, upper: Array, uniforms: Array) -> Array:
    """The places of counts in a table [m] whose probability from below, or from above, a uniform below 1/2 reaches."""
    size = probabilities.shape[0]
    lower_sums = jnp.cumsum(probabilities[:-1])
    upper_sums = jnp.cumsum(probabilities[:0:-1])
    sums = jnp.stack([lower_sums, upper_sums]).ravel()
    offset = (size - 1) * upper.astype(jnp.int32)
    found = jnp.zeros(uniforms.shape, jnp.int32)
    for level in reversed(range((size - 1).bit_length())):
        ahead = found + 2**level
        entry = sums.at[offset + jnp.minimum(ahead, size - 1) - 1].get(mode="promise_in_bounds")
        found = jnp.where((entry <= uniforms) & (ahead <= size - 1), ahead, found)
    return jnp.where(upper, size - 1 - found, found).astype(int)


def unless(condition: Array, value: Any, other: Callable[[Array], Any]) -> Any:
    """The value if the condition [] holds, else that of a function, which is called only if some chain needs it.

    The function takes the number of the turn [], 0, and has to use it. Otherwise the compiler would move what does not
    depend on it out of the loop, and compute it in any case.
    """

    def call(carry: tuple[Array, Any]) -> tuple[Array, Any]:
        return carry[0] + 1, other(carry[0])

    return jax.lax.while_loop(lambda carry: carry[0] < 1, call, (condition.astype(jnp.int32), value))[1]


class TableSearch(NamedTuple):
    """The state of a search over tables.

    Attributes
    ----------
    start
        The first count of the next table [].
    below
        The probability [] of all counts before it.
    lost
        What rounding has taken from that [].
    tip
        The last count [] so far that has added to the sum.
    found
        What was found.
    """

    start: Array
    below: Array
    lost: Array
    tip: Array
    found: Any


def begin(distribution: CountDistribution, found: Any) -> TableSearch:
    """The state before the first table."""
    below = distribution.below.astype(float)
    return TableSearch(distribution.first, below, jnp.zeros_like(below), jnp.zeros_like(distribution.first), found)


def sums_of(distribution: CountDistribution, search: TableSearch) -> tuple[Array, Array]:
    """The distribution function at the counts of the next table [WIDTH], and what rounding takes from the last [].

    The loss is carried along (Kahan 1965), so that the errors of many tables do not add up.
    """
    within = search.lost + jnp.cumsum(distribution.table(search.start))
    # Sums that are computed in parallel may fall by a last bit.
    sums = jnp.maximum(jax.lax.cummax(search.below + within), search.below)
    return sums, within[-1] - (sums[-1] - search.below)


def after_table(search: TableSearch, sums: Array, lost: Array, found: Any) -> TableSearch:
    """The state after a table with these sums."""
    grown = search.start + count_below(sums, sums[-1], strictly=True)
    tip = jnp.where(sums[-1] > search.below, grown, search.tip)
    return TableSearch(search.start + WIDTH, sums[-1], lost, tip, found)


def counts_at(distribution: CountDistribution, uniforms: Array) -> Array:
    """The counts whose cells contain uniforms [...]; `UNREACHED` where tables end before.

    The cell of x is the interval from P(X < x) to P(X ≤ x). A uniform above the sum of all probabilities, which by
    rounding is below 1, belongs to the last count that adds to it.
    """

    def unfinished(search: TableSearch) -> Array:
        return (search.start <= distribution.last) & jnp.any(uniforms >= search.below)

    def look(search: TableSearch) -> TableSearch:
        sums, lost = sums_of(distribution, search)
        place = search.start + count_below(sums, uniforms)
        return after_table(search, sums, lost, jnp.where(uniforms >= search.below, place, search.found))

    search = jax.lax.while_loop(unfinished, look, begin(distribution, jnp.zeros(uniforms.shape, int)))
    return jnp.where(uniforms >= search.below, last_count(distribution, search), search.found)


def last_count(distribution: CountDistribution, search: TableSearch) -> Array:
    """The count [] of uniforms above all sums: the tip, if the tables end with the distribution."""
    ends = distribution.is_known & (search.start - distribution.first < WIDTH * MAX_TABLES)
    return jnp.where(ends, search.tip, UNREACHED)


def is_reached(counts: Array) -> Array:
    """Whether counts are some that tables reach."""
    return counts < UNREACHED


def cells_of(distribution: CountDistribution, counts: Array) -> tuple[Array, Array]:
    """The ends P(X < x) and P(X ≤ x) of the cells of counts [...]; equal where tables do not reach them."""
    highest = jnp.minimum(jnp.max(counts), distribution.last)

    def look(search: TableSearch) -> TableSearch:
        sums, lost = sums_of(distribution, search)
        edges = jnp.concatenate([search.below[None], sums])
        place = counts - search.start
        inside = (place >= 0) & (place < WIDTH)
        safe = jnp.clip(place, 0, WIDTH - 1)
        ends = (jnp.where(inside, edges[safe + step], end) for step, end in enumerate(search.found))
        return after_table(search, sums, lost, tuple(ends))

    zeros = jnp.zeros(counts.shape, float)
    start = begin(distribution, (zeros, jnp.where(counts == 0, distribution.below, zeros)))
    lower, upper = jax.lax.while_loop(lambda search: search.start <= highest, look, start).found
    return lower, jnp.minimum(upper, 1.0)


def sort_uniforms(uniforms: Array) -> Array:
    """Uniforms [n] in ascending order, NaN last, by their bits: integers are sorted several times faster."""
    kind = jnp.int64 if uniforms.dtype == jnp.float64 else jnp.int32
    bits = jnp.sort(jax.lax.bitcast_convert_type(jnp.abs(uniforms), kind))
    return jax.lax.bitcast_convert_type(bits, uniforms.dtype)


def sum_over_counts(
    distribution: CountDistribution, uniforms: Array, terms: Callable[[Array], Array]
) -> tuple[Array, Array]:
    """The sum [d] of ``terms(counts) [d, m]`` over the counts of ascending uniforms [n], and whether all have one [].

    They have none if they are NaN, or tables end before.

    Notes
    -----
    Each count's term is taken once. The distribution function at each count is looked up among the uniforms: O(log n)
    for each of the counts.
    """
    n = uniforms.shape[0]

    def weigh(counts: Array, times: Array) -> Array:
        each = terms(counts)
        weights = jnp.broadcast_to(times.astype(each.dtype), each.shape)
        return jnp.sum(jnp.where(weights > 0, each * weights, 0), axis=1)

    def unfinished(search: TableSearch) -> Array:
        return (search.start <= distribution.last) & (search.found[0] < n)

    def look(search: TableSearch) -> TableSearch:
        done, total = search.found
        sums, lost = sums_of(distribution, search)
        reached = count_below(uniforms, sums, strictly=True)
        total = total + weigh(search.start + jnp.arange(WIDTH), jnp.diff(reached, prepend=done))
        return after_table(search, sums, lost, (reached[-1], total))

    zeros = count_below(uniforms, distribution.below[None].astype(uniforms.dtype), strictly=True)
    start = begin(distribution, (zeros[0], weigh(jnp.zeros(1, int), zeros)))
    search = jax.lax.while_loop(unfinished, look, start)
    done, total = search.found
    end = last_count(distribution, search)
    total = total + weigh(end[None], (n - done)[None])
    return total, ((done == n) | is_reached(end)) & ~jnp.isnan(uniforms[-1])
