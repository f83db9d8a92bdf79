"""Binomial, multinomial, Poisson and negative binomial counts, accurate in float32 as in float64.

A count of 10⁸ is not a float32 number, and its log-factorial has no digits left for the ratio of two probabilities. So
counts stay integers of up to 2³¹ - 1, are measured by their distance from the mean, and ratios of probabilities are
computed from that distance without cancellation. The remaining error is the rounding of the given probabilities, 6e-8
in float32.
"""

from collections.abc import Callable
from math import factorial, log, pi

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln, xlogy
from jax.typing import ArrayLike

from dpjax.base import Array, Key
from dpjax.numerics.gamma import draw_gamma
from dpjax.numerics.linear_algebra import LOG_TWO_PI

__all__ = [
    "LARGEST_MEAN",
    "binomial_log_probability",
    "draw_binomial",
    "draw_multinomial",
    "draw_negative_binomial",
    "draw_poisson",
    "negative_binomial_log_probability",
    "poisson_log_probability",
]

FEW = 10.0
"""Mean below which binomial counts are drawn by inversion, above which by transformed rejection."""

LAST = 80
"""Upper bound of counts drawn by inversion; larger ones have a probability of 1e-40."""

FARTHEST = 2.0**30
"""Largest distance of a count from its mean, for probabilities up to 1/2."""

TABLED = 10
GAPS = np.array([log(factorial(k)) - k * log(k or 1) + k for k in range(TABLED)])
"""Table of log k! - (k log k - k)."""

BLOCK = 256
"""Number of nodes of a tree that are drawn at once."""

LARGEST_MEAN = 2.0**30
"""Largest mean for which draws fit in int32."""

SMALL_MEAN, SMALL_NUMBERS = 10.0, 64
"""Mean below which Poisson counts are drawn by inversion, and the upper bound of these; P(exceeding it) < 1e-27."""


def draw_binomial(key: Key, n: ArrayLike, probability: ArrayLike) -> Array:
    """Independent Binomial(n, probability) draws, as integers of the shape that both arguments broadcast to.

    Parameters
    ----------
    n : [...]
        Whole numbers of trials from 0 to 2³¹ - 1.
    probability : [...]
        Their probabilities of success; exactly 0 gives 0, and exactly 1 gives n.

    Notes
    -----
    Counts with means below 10 are drawn by inversion, others by transformed rejection: algorithm BTRS of Hörmann
    (1993), "The generation of binomial random variates", J. Stat. Comput. Simul. 46, without its squeezes. All draws
    share rounds of proposals until the last is accepted.
    """
    n, probability = jnp.broadcast_arrays(jnp.asarray(n, int), jnp.asarray(probability, float))
    rare = jnp.clip(jnp.minimum(probability, 1 - probability), 0, 0.5)
    many = n.astype(rare.dtype) * rare >= FEW
    proposal_few = few_proposals(jnp.where(many, 0, n), rare)
    # Entries of the other method get arguments that this one can handle.
    proposal_many = many_proposals(jnp.where(many, n, int(4 * FEW)), jnp.where(many, rare, 0.5))

    def unfinished(carry: tuple[Key, Array, Array]) -> Array:
        return ~jnp.all(carry[2])

    def one_round(carry: tuple[Key, Array, Array]) -> tuple[Key, Array, Array]:
        key, count, done = carry
        key, proposal_key = jax.random.split(key)
        bits = jax.random.bits(proposal_key, (2, *n.shape), jnp.uint32)
        proposals = zip(proposal_many(bits), proposal_few(bits, done | many), strict=True)
        proposed, accepted = (jnp.where(many, one, other) for one, other in proposals)
        return key, jnp.where(done, count, proposed), done | accepted

    # Counts that are certainly 0 need no round.
    start = (key, jnp.zeros_like(n), (n == 0) | (rare == 0))
    count = jax.lax.while_loop(unfinished, one_round, start)[1]
    return jnp.where(probability > 0.5, n - count, count)


def draw_multinomial(key: Key, n: ArrayLike, probabilities: ArrayLike) -> Array:
    """A Multinomial(n, probabilities) draw of counts [c], integers that sum to n.

    Parameters
    ----------
    n : []
        The whole number of trials, from 0 to 2³¹ - 1.
    probabilities : [c]
        They are divided by their sum. A cell of probability exactly 0 gets 0.

    Notes
    -----
    Trials are divided down a binary tree over the cells, by one binomial draw at each node. The children of node i are
    2 i and 2 i + 1, the root is 1. A block of nodes is drawn at once; their counts have to be known, so a block ends at
    the latest before the children of its first node.
    """
    sums = sums_of_nodes(jnp.asarray(probabilities, float))
    leaves = sums.size // 2
    width = min(BLOCK, max(leaves // 2, 1))
    starts = np.concatenate([2 ** np.arange(width.bit_length() - 1), np.arange(width, leaves, width)])
    pairs = jnp.pad(sums, (0, 2 * width)).reshape(-1, 2)

    def one_block(counts: Array, given: tuple[Array, Array]) -> tuple[Array, None]:
        block, start = given
        left, right = jax.lax.dynamic_slice_in_dim(pairs, start, width).T
        parents = jax.lax.dynamic_slice_in_dim(counts, start, width)
        # The rarer side is drawn: a probability close to 1 would be rounded to 1.
        share = jnp.where(left + right > 0, jnp.minimum(left, right) / (left + right), 0)
        rarer = draw_binomial(jax.random.fold_in(key, block), parents, share)
        first = jnp.where(left < right, rarer, parents - rarer)
        children = jnp.stack([first, parents - first], axis=1).ravel()
        return jax.lax.dynamic_update_slice_in_dim(counts, children, 2 * start, 0), None

    counts = jnp.zeros(2 * leaves + 2 * width, int).at[1].set(n)
    blocks = jnp.arange(len(starts)), jnp.asarray(starts)
    return jax.lax.scan(one_block, counts, blocks)[0][leaves : leaves + np.shape(probabilities)[0]]


def sums_of_nodes(probabilities: Array) -> Array:
    """Sums of probabilities [c] over a tree: 0s, the root [1], the level below it [2], ..., the leaves [2ᵐ ≥ c]."""
    size = probabilities.size
    levels = [jnp.pad(probabilities, (0, (1 << (size - 1).bit_length()) - size))]
    while levels[0].size > 1:
        levels.insert(0, levels[0][0::2] + levels[0][1::2])
    return jnp.concatenate([jnp.zeros_like(levels[0]), *levels])


def few_proposals(n: Array, probability: Array) -> Callable[[Array, Array], tuple[Array, Array]]:
    """Proposals of counts with means below `FEW`, by inversion; 0 where done.

    P(X = 1), P(X = 2), ... are subtracted from a uniform below P(X > 0), which has high resolution near 0.
    """
    trials, log_failure = n.astype(probability.dtype), jnp.log1p(-probability)
    positive = -jnp.expm1(trials * log_failure)
    first = trials * probability * jnp.exp((trials - 1) * log_failure)
    odds = probability / (1 - probability)

    def unfinished(carry: tuple[Array, Array, Array]) -> Array:
        count, rest, mass = carry
        return jnp.any((rest > mass) & (count < LAST))

    def subtract(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        count, rest, mass = carry
        more = (rest > mass) & (count < LAST)
        following = mass * odds * (trials - count) / (count + 1)
        return jnp.where(more, count + 1, count), jnp.where(more, rest - mass, rest), jnp.where(more, following, mass)

    def proposal(bits: Array, done: Array) -> tuple[Array, Array]:
        uniform = bits[0].astype(first.dtype) * 2.0**-32 + uniforms(bits[1], first.dtype) * 2.0**-32
        some = (uniform <= positive) & ~done
        start = jnp.ones_like(first), jnp.where(some, uniform, 0), first
        count = jax.lax.while_loop(unfinished, subtract, start)[0]
        # No count was found because of rounding, in one of 10⁶ draws in float32.
        return jnp.where(some, count, 0).astype(n.dtype), count < LAST

    return proposal


def many_proposals(n: Array, probability: Array) -> Callable[[Array], tuple[Array, Array]]:
    """Proposals of counts with means of at least `FEW` and probabilities up to 1/2, by transformed rejection."""
    whole, part = mean_of(n, probability)
    mean = n.astype(part.dtype) * probability
    spread = jnp.sqrt(mean * (1 - probability))
    width = 1.15 + 2.53 * spread
    bend = -0.0873 + 0.0248 * width + 0.01 * probability
    height = (2.83 + 5.1 / width) * spread

    def log_weight(distance: Array) -> Array:
        """The log-probability [...] of the count at a distance from `whole`, up to a constant."""
        return log_mass(n, whole + distance, distance.astype(part.dtype) - part, mean)

    highest = log_weight(jnp.floor(part + probability).astype(n.dtype))

    def proposal(bits: Array) -> tuple[Array, Array]:
        place = uniforms(bits[0], part.dtype) - 0.5
        margin = 0.5 - jnp.abs(place)
        point = (2 * bend / margin + width) * place + part + 0.5
        distance = jnp.clip(jnp.floor(point), -FARTHEST, FARTHEST).astype(n.dtype)
        possible = (distance >= -whole) & (distance <= n - whole)
        distance = jnp.where(possible, distance, 0)
        log_hat = jnp.log(uniforms(bits[1], part.dtype) * height / (bend / jnp.square(margin) + width))
        return whole + distance, possible & (log_hat <= log_weight(distance) - highest)

    return proposal


def uniforms(bits: Array, dtype: jnp.dtype) -> Array:
    """Uniforms in (0, 1], the midpoints of 2³² intervals."""
    return (bits.astype(dtype) + 0.5) * 2.0**-32


def mean_of(n: Array, probability: Array) -> tuple[Array, Array]:
    """n · probability as an integer and a fraction in [0, 1), without rounding: products of halves of their digits."""
    limits = jnp.finfo(probability.dtype)
    upper = jax.lax.reduce_precision(probability, exponent_bits=limits.nexp, mantissa_bits=limits.nmant // 2)
    whole, part = jnp.zeros_like(n), jnp.zeros_like(probability)
    for shift in (0, 11, 22):
        digits = ((n >> shift) & (2**11 - 1)).astype(probability.dtype) * 2.0**shift
        for half in (upper, probability - upper):
            product = digits * half
            whole, part = whole + jnp.floor(product).astype(n.dtype), part + (product - jnp.floor(product))
    return whole + jnp.floor(part).astype(n.dtype), part - jnp.floor(part)


def log_mass(n: Array, count: Array, deviation: Array, mean: Array) -> Array:
    """The log-probability of a count with this deviation from the mean, up to a constant (Loader 2000)."""
    rest = n.astype(mean.dtype) - mean
    exponent = mean * divergence(deviation / mean) + rest * divergence(-deviation / rest)
    return -exponent - factorial_gap(count, mean.dtype) - factorial_gap(n - count, mean.dtype)


def divergence(ratio: Array) -> Array:
    """(1 + t) log(1 + t) - t for t ≥ -1, by a series in t / (2 + t) if that would cancel."""
    near = jnp.where(jnp.abs(ratio) < 0.1, ratio, 0)
    v = near / (2 + near)
    w = jnp.square(v)
    tail = 1 / 3 + w * (1 / 5 + w * (1 / 7 + w * (1 / 9 + w * (1 / 11 + w / 13))))
    series = 2 / (1 - v) * w * (1 + (1 + v) * v * tail)
    return jnp.where(jnp.abs(ratio) < 0.1, series, xlogy(1 + ratio, 1 + ratio) - ratio)


def factorial_gap(count: Array, dtype: jnp.dtype) -> Array:
    """log k! - (k log k - k), by a table and Stirling's series."""
    large = jnp.maximum(count, TABLED).astype(dtype)
    square = jnp.square(large)
    series = jnp.log(2 * pi * large) / 2 + (1 / 12 - (1 / 360 - 1 / 1260 / square) / square) / large
    return jnp.where(count < TABLED, jnp.asarray(GAPS, dtype)[jnp.minimum(count, TABLED - 1)], series)


def poisson_log_probability(n: ArrayLike, mean: ArrayLike) -> Array:
    """log P(n) of the Poisson distribution, elementwise for integers [...]; −inf below 0."""
    value, mean = positive(n), jnp.asarray(mean, float)
    distance = distance_from(n, mean)
    above = -(LOG_TWO_PI + jnp.log(value)) / 2 - stirling_error(value) - deviance(value, mean, distance)
    return within(n, -mean, above)


def negative_binomial_log_probability(n: ArrayLike, mean: ArrayLike, size: ArrayLike) -> Array:
    """log P(n) of the negative binomial distribution with variance mean + mean² / size, elementwise; −inf below 0."""
    value, mean, size = positive(n), jnp.asarray(mean, float), jnp.asarray(size, float)
    total, share = value + size, mean / (size + mean)
    # The distance of n above, and of the size below, its expected share of their total.
    distance = distance_from(n, mean) * (size / (size + mean))
    errors = stirling_error(total) - stirling_error(value) - stirling_error(size)
    deviances = deviance(value, total * share, distance) + deviance(size, total * (size / (size + mean)), -distance)
    above = jnp.log(size / total) + errors - deviances - (LOG_TWO_PI + jnp.log(size) + jnp.log(value / total)) / 2
    return within(n, -size * jnp.log1p(mean / size), above)


def binomial_log_probability(n: ArrayLike, trials: ArrayLike, probability: ArrayLike) -> Array:
    """log P(n) of the binomial distribution, elementwise for probabilities between 0 and 1; −inf outside 0..trials."""
    probability = jnp.asarray(probability, float)
    rest = jnp.asarray(trials, int) - jnp.asarray(n, int)
    number, value, other = positive(trials), positive(n), positive(rest)
    mean = number * probability
    distance = distance_from(n, mean)
    errors = stirling_error(number) - stirling_error(value) - stirling_error(other)
    deviances = deviance(value, mean, distance) + deviance(other, number - mean, -distance)
    between = errors - deviances - (LOG_TWO_PI + jnp.log(value) + jnp.log(other / number)) / 2
    above = jnp.where(rest > 0, between, number * jnp.log(probability))
    return jnp.where(rest < 0, -jnp.inf, within(n, number * jnp.log1p(-probability), above))


def positive(n: ArrayLike) -> Array:
    """Integers as floats of at least 1; 0 is treated separately."""
    return jnp.maximum(jnp.asarray(n, int), 1).astype(float)


def distance_from(n: ArrayLike, mean: Array) -> Array:
    """n − mean, exact if n has more digits than a float."""
    whole = jnp.floor(mean)
    return (jnp.asarray(n, int) - whole.astype(int)).astype(float) - (mean - whole)


def within(n: ArrayLike, at_zero: Array, above: Array) -> Array:
    """The log-probability at 0 or above it, and −inf below."""
    number = jnp.asarray(n, int)
    return jnp.where(number > 0, above, jnp.where(number == 0, at_zero, -jnp.inf))


def stirling_error(value: Array) -> Array:
    """log Γ(x + 1) − (x + 1/2) log x + x − log(2π) / 2 for x > 0, by Stirling's series from 16 on."""
    large, small = jnp.maximum(value, 16.0), jnp.minimum(value, 16.0)
    square = large**-2
    series = 1 / 12 - square * (1 / 360 - square * (1 / 1260 - square * (1 / 1680 - square / 1188)))
    direct = gammaln(small + 1) - (small + 0.5) * jnp.log(small) + small - LOG_TWO_PI / 2
    return jnp.where(value >= 16.0, series / large, direct)


def deviance(value: Array, mean: Array, difference: Array) -> Array:
    """value log(value / mean) + mean − value, where the difference value − mean is more accurate than the two."""
    ratio = difference / (value + mean)
    near = jnp.where(jnp.abs(ratio) < 0.1, ratio, 0.0)
    square, series = near**2, jnp.zeros_like(near)
    for order in range(17, 1, -2):
        series = square * (series + 1 / order)
    close = difference * near + 2 * value * near * series
    return jnp.where(jnp.abs(ratio) < 0.1, close, xlogy(value, value / mean) - difference)


def draw_poisson(key: Key, mean: ArrayLike) -> Array:
    """A Poisson draw, int [], with mean [] up to `LARGEST_MEAN`, by inversion or rejection (Hörmann 1993, PTRS)."""
    small_key, large_key = jax.random.split(key)
    mean = jnp.asarray(mean, float)
    few = jnp.minimum(mean, SMALL_MEAN)
    ends = jnp.cumsum(jnp.exp(poisson_log_probability(jnp.arange(SMALL_NUMBERS), few)))
    small = jnp.sum(ends <= jax.random.uniform(small_key, (), float))
    return jnp.where(mean < SMALL_MEAN, small, reject_poisson(large_key, jnp.maximum(mean, SMALL_MEAN)))


def reject_poisson(key: Key, mean: Array) -> Array:
    """A Poisson draw, int [], with mean of at least 10, by Hörmann's transformed rejection relative to ⌊mean⌋."""
    b = 0.931 + 2.53 * jnp.sqrt(mean)
    a = -0.059 + 0.02483 * b
    log_inverse_alpha, sure = jnp.log(1.1239 + 1.1328 / (b - 3.4)), 0.9277 - 3.6624 / (b - 2)
    whole = jnp.floor(mean)

    def propose(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        number = carry[0] + 1
        place_key, accept_key = jax.random.split(jax.random.fold_in(key, number))
        place = jax.random.uniform(place_key, (), float) - 0.5
        height = jax.random.uniform(accept_key, (), float)
        inside = jnp.maximum(0.5 - jnp.abs(place), jnp.finfo(place.dtype).tiny ** 0.25)
        step = jnp.floor((2 * a / inside + b) * place + (mean - whole) + 0.43)
        n = whole.astype(int) + jnp.clip(step, -whole - 1, LARGEST_MEAN / 2).astype(int)
        log_height = jnp.log(height) + log_inverse_alpha - jnp.log(a / inside**2 + b)
        accepted = ((inside >= 0.07) & (height <= sure)) | (log_height <= poisson_log_probability(n, mean))
        return number, n, accepted

    start = (jnp.array(0), jnp.array(0), jnp.array(False))
    return jax.lax.while_loop(lambda carry: ~carry[2], propose, start)[1]


def draw_negative_binomial(key: Key, mean: ArrayLike, size: ArrayLike) -> Array:
    """A negative binomial draw, int [], as Poisson with a Gamma mean; at most about twice `LARGEST_MEAN`."""
    mean_key, number_key = jax.random.split(key)
    size = jnp.asarray(size, float)
    return draw_poisson(number_key, jnp.minimum(draw_gamma(mean_key, size, size / mean), LARGEST_MEAN))
