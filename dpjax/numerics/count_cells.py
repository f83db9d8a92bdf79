"""Counts that have a distribution each: their cells, and the count in whose cell a uniform lies, at any mean.

The cell of x is the interval from P(X < x) to P(X ≤ x). For counts below `TABLED` these are sums of probabilities. For
others they are incomplete gamma and beta functions, by a quadrature with a fixed number of nodes. JAX's own functions
take O(√mean) steps, of which they make at most 2,000: their errors are 1e-9 at a mean of 10⁶, and 3e-6 and more at 10⁸.
A search begins at the quantile of a shifted Gamma distribution with the same three moments, and ends after a few steps.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtri

from dpjax.base import Array
from dpjax.numerics.count_tables import UNREACHED, unless
from dpjax.numerics.counts import (
    LARGEST_MEAN,
    binomial_log_probability,
    distance_from,
    divergence,
    negative_binomial_log_probability,
    poisson_log_probability,
)

__all__ = ["CountCells", "binomial_cells", "negative_binomial_cells", "poisson_cells"]

TABLED, BLOCK = 32, 8
"""Number of counts whose distribution function is a sum, and of those that are added at once."""

SMALLEST = -80.0
"""The log-probability of no event below which it is no sum: its terms would be too small for float32."""

RAISED = 16
"""By how much the first shape of a Beta function is raised, by as many terms of its series, so that what is left is
smooth enough for the quadrature."""

NODES = {4: 12, 8: 20}
"""Number of nodes for floats of 4 and 8 bytes; the error is that of rounding."""

NEGLIGIBLE = {4: 18.0, 8: 38.0}
"""Minus the logarithm of what integrands fall to at the end of the interval."""

FREE_STEPS = 6
"""Steps of a search after which it halves the interval."""


class CountCells(NamedTuple):
    """Distributions of counts 0, 1, 2, ..., one for each entry [...].

    Attributes
    ----------
    mean
        The means [...] of the distributions.
    deviation
        Their standard deviations [...].
    skewness
        Their skewnesses [...].
    last
        The largest counts, int [...].
    log_first
        log P(X = 0) [...].
    ratio
        ``j -> [...]``, P(X = j + 1) / P(X = j), of a float j [].
    distribution
        ``counts -> [...]``, P(X ≤ x) of counts below the last, exact where its probability is none of a sum.
    """

    mean: Array
    deviation: Array
    skewness: Array
    last: Array
    log_first: Array
    ratio: Callable[[Array], Array]
    distribution: Callable[[Array], Array]

    @property
    def is_known(self) -> Array:
        """Whether counts fit into integers [...]; false for parameters that are not numbers."""
        return (self.mean >= 0) & (self.mean <= LARGEST_MEAN) & (self.deviation >= 0)

    @property
    def is_tabled(self) -> Array:
        """Whether the probabilities of the first counts are added up [...]."""
        return self.log_first >= SMALLEST

    def add_up(
        self, take: Callable[[Any, Array, Array, Array], Any], found: Any, unfinished: Callable[[Array, Array], Array]
    ) -> tuple[Array, Array, Any]:
        """Walk over the first counts j, while some entry is unfinished, with ``take(found, j, P(X < j), P(X ≤ j))``.

        Returns
        -------
        tuple
            The probability [...] of the next count, that of all that were passed, and what was taken.
        """

        def block(carry: tuple[Array, Array, Array, Any]) -> tuple[Array, Array, Array, Any]:
            start, term, total, found = carry
            for step in range(BLOCK):
                count, below = start + step, total
                total = jnp.where(count >= self.last, 1.0, jnp.minimum(total + term, 1.0))
                found, term = take(found, count, below, total), term * self.ratio(count.astype(term.dtype))
            return start + BLOCK, term, total, found

        def goes_on(carry: tuple[Array, Array, Array, Any]) -> Array:
            return (carry[0] < TABLED) & jnp.any(self.is_tabled & unfinished(carry[0], carry[2]))

        first = jnp.exp(jnp.maximum(self.log_first, SMALLEST))
        start = (jnp.zeros((), int), first, jnp.zeros_like(first), found)
        return jax.lax.while_loop(goes_on, block, start)[1:]

    def at_large(self, counts: Array) -> Array:
        """P(X ≤ x) of counts, 0 below 0 and 1 from the last on."""
        inside = jnp.clip(self.distribution(jnp.clip(counts, 0, self.last)), 0.0, 1.0)
        return jnp.where(counts < 0, 0.0, jnp.where(counts >= self.last, 1.0, inside))

    def edges(self, counts: Array) -> tuple[Array, Array]:
        """The ends P(X < x) and P(X ≤ x) of the cells of counts [...]."""

        def take(found: tuple[Array, Array], count: Array, below: Array, total: Array) -> tuple[Array, Array]:
            return jnp.where(counts == count, below, found[0]), jnp.where(counts == count, total, found[1])

        zeros = jnp.zeros(counts.shape, self.mean.dtype)
        _, below, (lower, upper) = self.add_up(take, (zeros, zeros), lambda start, total: counts >= start)
        summed = self.is_tabled & (counts < TABLED)

        def beyond(turn: Array) -> tuple[Array, Array]:
            here = counts + turn.astype(counts.dtype)
            lowest, highest = jax.vmap(self.at_large)(jnp.stack([here - 1, here]))
            lowest = jnp.where(self.is_tabled & (counts == TABLED), below, lowest)
            return jnp.where(summed, lower, lowest), jnp.where(summed, upper, highest)

        return unless(jnp.all(summed), (lower, upper), beyond)

    def counts_at(self, uniforms: Array) -> Array:
        """The counts whose cells contain uniforms [...]; `UNREACHED` where the mean is not that of integers."""
        uniforms = jnp.minimum(uniforms, 1 - jnp.finfo(uniforms.dtype).epsneg)

        def take(found: Array, count: Array, below: Array, total: Array) -> Array:
            return jnp.where((below <= uniforms) & (below < total), count, found)

        none = jnp.zeros(uniforms.shape, int)
        term, below, found = self.add_up(take, none, lambda start, total: total <= uniforms)
        # A uniform above the sum of all, which by rounding is below 1, belongs to the last count that adds to it.
        ends = (below + term <= below) & (self.mean < TABLED)
        done = (self.is_tabled & ((uniforms < below) | ends)) | ~self.is_known
        lowest = jnp.where(self.is_tabled, TABLED - 1, -1)
        found = self.search(uniforms, jnp.where(done, found - 1, lowest), jnp.where(done, found, self.last))
        return jnp.where(self.is_known, found, UNREACHED)

    def search(self, uniforms: Array, low: Array, high: Array) -> Array:
        """The least counts [...] above `low` of which the distribution function exceeds uniforms, at most `high`."""
        goal = self.quantile(ndtri(uniforms))

        def unfinished(carry: tuple[Array, Array, Array, Array]) -> Array:
            return jnp.any(carry[1] - carry[0] > 1)

        def step(carry: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
            low, high, guess, number = carry
            tried = jnp.clip(guess, low + 1, jnp.maximum(high - 1, low + 1))
            reached = self.at_large(tried)
            above = reached > uniforms
            high = jnp.where(above & (tried < high), tried, high)
            low = jnp.where(above | (tried >= high), low, tried)
            # What separates the quantile of the moments from the exact one is nearly the same at the goal.
            left = goal - self.quantile(ndtri(reached))
            usable = jnp.isfinite(left) & (number < FREE_STEPS)
            following = jnp.where(usable, tried + whole(jnp.floor(left)) + 1, low + (high - low) // 2)
            return low, high, following, number + 1

        start = (low, high, whole(jnp.round(goal)), jnp.zeros((), int))
        return jax.lax.while_loop(unfinished, step, start)[1]

    def quantile(self, scores: Array) -> Array:
        """The quantiles at Normal scores by three moments, with Wilson and Hilferty's cube for a Gamma distribution."""
        bend = self.skewness / 6
        scaled = bend * (scores - bend)
        return self.mean + self.deviation * (scores - bend) * (1 + scaled + scaled**2 / 3)


def whole(place: Array) -> Array:
    """Floats as integers; too large ones, and what is no number, as some integer."""
    return jnp.clip(jnp.nan_to_num(place), -LARGEST_MEAN / 2, LARGEST_MEAN / 2).astype(int)


def poisson_cells(mean: Array) -> CountCells:
    """Poisson distributions with means [...]."""
    rate = jnp.where(mean > 0, mean, 1.0)

    def distribution(counts: Array) -> Array:
        """Q(x + 1, mean): for x below the mean its integral, and else 1 − P."""
        number, distance = counts.astype(rate.dtype), distance_from(counts, rate)
        sign = jnp.where(distance < 0, 1.0, -1.0)
        tail = integrate(
            lambda place: distance * sign * place - number * excess(sign * place),
            jnp.zeros_like,
            jnp.abs(distance),
            number,
            jnp.where(sign > 0, jnp.inf, 1.0),
        )
        tail = tail * rate * jnp.exp(poisson_log_probability(counts, rate))
        return jnp.where(sign > 0, tail, 1 - tail)

    deviation = jnp.sqrt(mean)
    last = jnp.full(mean.shape, UNREACHED)
    return CountCells(mean, deviation, rate**-0.5, last, -mean, lambda count: mean / (count + 1), distribution)


def negative_binomial_cells(mean: Array, size: Array) -> CountCells:
    """Negative binomial distributions with means [...] and variances mean + mean² / size."""
    rate = jnp.where(mean > 0, mean, 1.0)
    share = mean / (size + mean)
    deviation = jnp.sqrt(mean * (1 + mean / size))

    def distribution(counts: Array) -> Array:
        log_probability = negative_binomial_log_probability(counts, rate, size)
        first = jnp.exp(log_probability) * (rate / (size + rate)) * (1 + counts.astype(rate.dtype) / size)
        return beta_function(size, counts, size / rate, first, distance_from(counts, rate))

    def ratio(count: Array) -> Array:
        return share * (size + count) / (count + 1)

    skewness = (1 + 2 * rate / size) / jnp.sqrt(rate * (1 + rate / size))
    last, log_first = jnp.full(mean.shape, UNREACHED), -size * jnp.log1p(mean / size)
    return CountCells(mean, deviation, skewness, last, log_first, ratio, distribution)


def binomial_cells(number: Array, probability: Array) -> CountCells:
    """Binomial distributions with whole numbers of trials, int [...], and their probabilities of success [...]."""
    limits = jnp.finfo(probability.dtype)
    inside = jnp.clip(probability, limits.tiny, 1 - limits.epsneg)
    trials, failure = number.astype(inside.dtype), 1 - inside
    mean, variance = trials * inside, trials * inside * failure

    def distribution(counts: Array) -> Array:
        counts = jnp.minimum(counts, number - 1)
        rest = (number - counts).astype(inside.dtype)
        first = jnp.exp(binomial_log_probability(counts, number, inside)) * inside
        return beta_function(rest, counts, failure / inside, first, distance_from(counts, mean) / failure)

    def ratio(count: Array) -> Array:
        return jnp.maximum(trials - count, 0.0) / (count + 1) * (inside / failure)

    skewness = (failure - inside) / jnp.sqrt(jnp.maximum(variance, limits.tiny))
    return CountCells(mean, jnp.sqrt(variance), skewness, number, trials * jnp.log1p(-inside), ratio, distribution)


def beta_function(shape: Array, counts: Array, odds: Array, first: Array, excess_count: Array) -> Array:
    """The regularised incomplete Beta function I_p(shape, counts + 1) at p = odds / (1 + odds).

    Parameters
    ----------
    first
        The first term of its series in the shape, p^a (1 − p)^(x + 1) Γ(a + x + 1) / (Γ(a + 1) x!).
    excess_count
        counts − shape / odds, which may be more accurate than these.
    """
    number, share = counts.astype(odds.dtype), odds / (1 + odds)
    term, total = first, jnp.zeros_like(first)
    for step in range(RAISED):
        term, total = term * share * ((shape + number + step + 1) / (shape + step + 1)), total + term
    raised, distance = shape + RAISED, excess_count - RAISED / odds
    sign = jnp.where(distance < 0, 1.0, -1.0)
    tail = integrate(
        lambda place: distance * sign * place - number * excess(sign * place) - raised * excess(-sign * place / odds),
        lambda place: jnp.log1p(-sign * place / odds),
        jnp.abs(distance),
        number + raised / odds / odds,
        jnp.where(sign > 0, odds, 1.0),
    )
    tail = tail * term * raised / share
    return jnp.where(sign > 0, total + tail, 1 - (tail - total))


def integrate(
    exponent: Callable[[Array], Array],
    log_divisor: Callable[[Array], Array],
    slope: Array,
    curvature: Array,
    end: Array,
) -> Array:
    """∫ exp(g(y) − d(y)) dy from 0 to an end [...], for an exponent g that is concave and falls from 0.

    Parameters
    ----------
    exponent
        The function g.
    log_divisor
        The function d, which matters little for where the integrand ends.
    slope
        −g'(0) [...].
    curvature
        −g''(0) [...].
    end
        Where the integrand is 0; infinity if nowhere.
    """
    reach = NEGLIGIBLE[slope.dtype.itemsize]
    length = 2 * reach / (slope + jnp.sqrt(slope**2 + 2 * curvature * reach))
    length = jnp.minimum(length, 0.95 * end)
    # Where the exponent is less than quadratic, the interval has to be longer.
    longer = jnp.clip(jnp.sqrt(reach / -exponent(length)), 0.9, 3.0)
    length = jnp.minimum(length * longer, 0.98 * end)

    def term(node: Array, weight: Array) -> Array:
        place = node * length
        return weight * jnp.exp(exponent(place) - log_divisor(place))

    return jnp.sum(jax.vmap(term)(*rule(length.dtype)), axis=0) * length


def rule(dtype: Any) -> tuple[Array, Array]:
    """Nodes and weights of Gauss and Legendre on [0, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(NODES[dtype.itemsize])
    return jnp.asarray((nodes + 1) / 2, dtype), jnp.asarray(weights / 2, dtype)


def excess(ratio: Array) -> Array:
    """t − log(1 + t) for t > −1, without cancellation near 0."""
    return (1 + ratio) * divergence(-ratio / (1 + ratio))
