"""The sum of two independent binomial counts of different probabilities: its exact log-probability for any numbers."""

from math import ceil, log, pi, sqrt

import jax
import jax.numpy as jnp
from jax.scipy.special import xlog1py, xlogy

from dpjax.base import Array
from dpjax.numerics.counts import deviance, stirling_error

__all__ = ["log_binomial", "log_binomial_sum"]

FEWEST_TERMS = 64
"""Terms on either side of the largest one, if there are so many."""

TERMS_PER_DEVIATION = 11.0
"""The same in the largest standard deviation that terms can have: what is left out is below rounding."""


def log_binomial_sum(total: Array, first: Array, second: Array, p: Array, q: Array, most_trials: int) -> Array:
    """log P(X + Y = total) of X ~ Binomial(first, p) and Y ~ Binomial(second, q), elementwise; ``-inf`` if impossible.

    Parameters
    ----------
    most_trials
        The largest number of trials of both together: of few trials there are few terms.

    Notes
    -----
    The terms P(X = j) P(Y = total - j) are log-concave in j. The largest has its logarithm computed. The others
    follow from it, as neighbours have a simple ratio. The largest standard deviation is a quarter of the root of the
    number of trials.
    """
    # The odds ratio is at least 1 if p >= q; otherwise failures are counted in the place of successes.
    few = p < q
    total = jnp.where(few, first + second - total, total)
    p, q = jnp.where(few, 1 - p, p), jnp.where(few, 1 - q, q)
    least, most = jnp.maximum(total - second, 0), jnp.minimum(first, total)
    mode = jnp.clip(jnp.round(likeliest(total, first, second, p, q)), least, jnp.maximum(most, least))
    peak = log_binomial(mode, first, p) + log_binomial(total - mode, second, q)
    possible = (least <= most) & (total == jnp.round(total))
    odds = p * (1 - q) / ((1 - p) * q)
    sums = add_terms(mode, total, first, second, odds, num_terms(most_trials))
    return jnp.where(possible, peak + jnp.log(jnp.where(possible, sums, 1)), -jnp.inf)


def num_terms(most_trials: int) -> int:
    """How many terms are added on either side of the largest one."""
    return min(most_trials, max(FEWEST_TERMS, ceil(TERMS_PER_DEVIATION * sqrt(most_trials + 4) / 4)))


def add_terms(mode: Array, total: Array, first: Array, second: Array, odds: Array, number: int) -> Array:
    """The sum of the terms in units of that at the mode, by their ratios outwards from it."""

    def add(away: Array | int, carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        above, below, sums = carry
        up, down = mode + away, mode - away
        above = above * (odds * (first - up + 1) * (total - up + 1) / (up * (second - total + up)))
        below = below * ((down + 1) * (second - total + down + 1) / (odds * (first - down) * (total - down)))
        return above, below, sums + above + below

    one = jnp.ones_like(mode)
    return jax.lax.fori_loop(1, number + 1, add, (one, one, one))[2]


def likeliest(total: Array, first: Array, second: Array, p: Array, q: Array) -> Array:
    """The place where neighbouring terms of the sum are equal: a quadratic's root, without cancellation for p >= q."""
    odds = p * (1 - q) / ((1 - p) * q)
    middle = odds * (first + total) + (second - total) + 2
    constant = odds * first * total - (second - total + 1)
    root = jnp.sqrt(jnp.maximum(jnp.square(middle) - 4 * (odds - 1) * constant, 0))
    return 2 * constant / (middle + root)


def log_binomial(count: Array, n: Array, p: Array) -> Array:
    """log P(count) of Binomial(n, p), elementwise for whole numbers as floats, by Loader's saddle point (2000)."""
    rest = n - count
    inside = (count > 0) & (rest > 0)
    number, successes, failures = (jnp.where(inside, one, 2.0) for one in (n, count, rest))
    number = jnp.where(inside, number, 4.0)
    distance = successes - number * p
    errors = stirling_error(number) - stirling_error(successes) - stirling_error(failures)
    deviances = deviance(successes, number * p, distance) + deviance(failures, number * (1 - p), -distance)
    middle = errors - deviances + jnp.log(number / (successes * failures)) / 2 - log(2 * pi) / 2
    return jnp.where(inside, middle, xlogy(count, p) + xlog1py(rest, -p))
