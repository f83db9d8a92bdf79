"""The sum of two independent binomial counts of different probabilities: its exact log-probability for any numbers."""

from math import log, pi

import jax.numpy as jnp
from jax.scipy.special import xlog1py, xlogy

from dpjax.base import Array
from dpjax.numerics.counts import deviance, stirling_error

__all__ = ["log_binomial", "log_binomial_sum"]

HALF_NODES = 64
"""Nodes on either side of the mode."""

STEPS_PER_DEVIATION = 3.0
"""Nodes in a standard deviation of the terms, for wide sums: the rule is then exact to rounding."""


def log_binomial_sum(total: Array, first: Array, second: Array, p: Array, q: Array, most_trials: int) -> Array:
    """log P(X + Y = total) of X ~ Binomial(first, p) and Y ~ Binomial(second, q), elementwise; ``-inf`` if impossible.

    Parameters
    ----------
    most_trials
        The largest number of trials of both together: of few trials there are few terms.

    Notes
    -----
    The terms P(X = j) P(Y = total - j) are log-concave in j. If their standard deviation is small, all are added that
    are above rounding. If it is large, they are added in steps of a third of it at most. By Poisson's summation
    formula the error of such a sum of a nearly Normal function is below rounding.
    """
    # The odds ratio is at least 1 if p >= q; otherwise failures are counted in the place of successes.
    few, half = p < q, min(HALF_NODES, most_trials)
    total = jnp.where(few, first + second - total, total)
    p, q = jnp.where(few, 1 - p, p), jnp.where(few, 1 - q, q)
    least, most = jnp.maximum(total - second, 0), jnp.minimum(first, total)
    mode = jnp.clip(jnp.round(likeliest(total, first, second, p, q)), least, jnp.maximum(most, least))
    gaps = (mode, first - mode, total - mode, second - total + mode)
    deviation = sum(1 / (1 + jnp.maximum(gap, 0)) for gap in gaps) ** -0.5
    step = jnp.maximum(jnp.floor(deviation / STEPS_PER_DEVIATION), 1)

    def log_terms(place: Array) -> Array:
        rest = total[..., None] - place
        return log_binomial(place, first[..., None], p[..., None]) + log_binomial(rest, second[..., None], q[..., None])

    peak = log_terms(mode[..., None])[..., 0]
    nodes = jnp.arange(-half, half + 1, dtype=mode.dtype).reshape((1,) * mode.ndim + (-1,))
    place = mode[..., None] + step[..., None] * nodes
    inside = (place >= least[..., None]) & (place <= most[..., None])
    terms = log_terms(jnp.where(inside, place, mode[..., None]))
    sums = jnp.sum(jnp.where(inside, jnp.exp(terms - peak[..., None]), 0), axis=-1)
    possible = (least <= most) & (total == jnp.round(total))
    return jnp.where(possible, peak + jnp.log(jnp.where(possible, sums * step, 1)), -jnp.inf)


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
