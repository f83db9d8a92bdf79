"""Tails of the standard Normal and other symmetric distributions and their inverses, accurate at any distance."""

from collections.abc import Callable
from functools import cache
from math import log, pi, sqrt
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import scipy
from jax.scipy.special import ndtr, ndtri
from numpy.polynomial import chebyshev

from dpjax.base import Array, NormalScores

__all__ = [
    "CAUCHY",
    "LAPLACE",
    "LOGISTIC",
    "LOG_HALF",
    "NORMAL",
    "SOFT_LAPLACE",
    "Symmetric",
    "both_tails",
    "erfcx",
    "log_complement",
    "log_mills",
    "normal_excess",
    "normal_inverse",
    "normal_tail",
    "normal_upper",
    "score_of_log",
]

LOG_HALF = -log(2)

NEWTON_STEPS = 3
"""Number of Newton steps; the errors are 2e-1, 2e-3, 4e-7, and then rounding."""

NEAR = 2.0
"""Threshold below which inverting the distribution function is accurate."""

DEGREES = {4: 10, 8: 24}
"""Degree of the polynomial that is exact to rounding, for floats of 4 and 8 bytes."""


@cache
def _fit_tail(size: int) -> tuple[float, ...]:
    """The coefficients of log(erfcx(x) / t) as a polynomial in s, for x >= 0, t = 1 / (1 + x / 2) and s = 2 t - 1.

    Exact for floats of `size` bytes. Both erfcx(x) and t decrease like 1 / x: their ratio is smooth on [0, ∞].
    """

    def log_ratio(s: Any) -> Any:
        t = (s + 1) / 2
        return np.log(scipy.special.erfcx(2 * (1 / t - 1)) / t)

    return tuple(float(c) for c in chebyshev.cheb2poly(chebyshev.chebinterpolate(log_ratio, DEGREES[size])))


def tail_factors(x: Array) -> tuple[Array, Array]:
    """Factors t and log(erfcx(x) / t) of the scaled complementary error function exp(x²) erfc(x), for x >= 0.

    A few multiplications and one division instead of the branches of a general routine.
    """
    t = 2 / (2 + x)
    s = 2 * t - 1
    polynomial = jnp.zeros_like(x)
    for coefficient in reversed(_fit_tail(x.dtype.itemsize)):
        polynomial = polynomial * s + coefficient
    return t, polynomial


def erfcx(x: Array) -> Array:
    """The scaled complementary error function exp(x²) erfc(x), elementwise, for x >= 0."""
    t, log_rest = tail_factors(x)
    return t * jnp.exp(log_rest)


def log_mills(threshold: Array) -> Array:
    """The log of Mills' ratio P(X > c) / φ(c), elementwise.

    Differences of log Mills' ratios replace those of log-probabilities, in which the terms c² / 2 would cancel.
    """
    t, log_rest = tail_factors(jnp.abs(threshold) * sqrt(0.5))
    log_far = jnp.log(t) + log_rest + log(pi / 2) / 2
    half_square = threshold**2 / 2
    log_near = half_square + log(2 * pi) / 2 + jnp.log1p(-jnp.exp(log_rest - half_square) * t / 2)
    return jnp.where(threshold < 0, log_near, log_far)


def normal_upper(value: Array) -> Array:
    """log P(X > x) of a standard Normal X for x >= 0, in a few multiplications, at any distance."""
    t, log_rest = tail_factors(value * sqrt(0.5))
    return jnp.log(t) + log_rest - value**2 / 2 + LOG_HALF


def normal_excess(exponential: Array, threshold: Array) -> Array:
    """The e >= 0 with P(X > c + e | X > c) = exp(-exponential) for X ~ N(0, 1), elementwise.

    A standard Exponential variable gives a draw of X - c given X > c. The excess is returned rather than X, because far
    in the tail the sum would round it away.

    Parameters
    ----------
    exponential : [...]
        Standard Exponential draws.
    threshold : [...]
        The truncation point c, of any sign and size.
    """
    near = _excess_by_inversion(exponential, jnp.minimum(threshold, NEAR))
    far = _excess_by_newton(exponential, jnp.maximum(threshold, NEAR))
    return jnp.where(threshold < NEAR, near, far)


def _excess_by_inversion(exponential: Array, threshold: Array) -> Array:
    """The excess by the inverse distribution function, finite where a probability rounds to 0 or 1."""
    probability = jnp.exp(-exponential) * ndtr(-threshold)
    precision = jnp.finfo(probability.dtype)
    inside = jnp.clip(probability, precision.tiny, 1 - precision.epsneg)
    return jnp.maximum(-ndtri(inside) - threshold, 0)


def _excess_by_newton(exponential: Array, threshold: Array) -> Array:
    """The excess by Newton's method, which converges from above: the log-survival is concave."""
    excess = 2 * exponential / (threshold + jnp.sqrt(threshold**2 + 2 * exponential))
    start = log_mills(threshold)
    for _ in range(NEWTON_STEPS):
        mills = log_mills(threshold + excess)
        survival = mills - start - excess * (threshold + excess / 2)
        excess = jnp.maximum(excess + (survival + exponential) * jnp.exp(mills), 0)
    return excess


def normal_tail(value: Array) -> Array:
    """log P(X ≤ x) of a standard Normal X for x ≤ 0, exact to rounding; JAX's is off by 2e-11 of it in float64."""
    end = -((0.9 * smallest_log(value) * -2) ** 0.5)
    far = value < end
    return jnp.where(far, far_tail(jnp.minimum(value, end)), jnp.log(ndtr(jnp.where(far, end, value))))


def far_tail(value: Array) -> Array:
    """The asymptotic series of `normal_tail`, whose terms are below rounding at 12 in float32 and at 35 in float64."""
    square = 1 / value**2
    series = -square * (1 - 3 * square * (1 - 5 * square * (1 - 7 * square * (1 - 9 * square))))
    return -(value**2) / 2 - jnp.log(-value) - log(2 * pi) / 2 + jnp.log1p(series)


def normal_inverse(log_probability: Array) -> Array:
    """The inverse of `normal_tail`, -inf at -inf; by two Newton steps if the probability underflows."""
    limit = 0.9 * smallest_log(log_probability)
    far = log_probability < limit
    deep = jnp.where(far, jnp.maximum(log_probability, jnp.finfo(log_probability.dtype).min / 4), limit)
    place = -jnp.sqrt(-2 * deep)
    for _ in range(2):
        place = place + (far_tail(place) - deep) / (place + 1 / place)
    return jnp.where(far, place, ndtri(jnp.exp(jnp.where(far, limit, log_probability))))


def smallest_log(value: Array) -> float:
    """The logarithm of the smallest positive normal number of an array's type."""
    return log(jnp.finfo(value.dtype).tiny)


def both_tails(score: Array) -> tuple[Array, Array]:
    """log P(X ≤ score) and log P(X > score) of a standard Normal X."""
    tail = normal_tail(-jnp.abs(score))
    other = log_complement(tail)
    return jnp.where(score <= 0, tail, other), jnp.where(score <= 0, other, tail)


def log_complement(log_probability: Array) -> Array:
    """log(1 - p) from log p."""
    safe = jnp.minimum(log_probability, 0.0)
    small = safe < LOG_HALF
    return jnp.where(small, jnp.log1p(-jnp.exp(safe)), jnp.log(-jnp.expm1(jnp.where(small, LOG_HALF, safe))))


def score_of_log(log_lower: Array, log_upper: Array) -> Array:
    """The Normal score of a value from the logarithms of its two tail probabilities, through the smaller one."""
    lower = log_lower <= log_upper
    place = normal_inverse(jnp.minimum(jnp.minimum(log_lower, log_upper), LOG_HALF))
    return jnp.where(lower, place, -place)


class Symmetric(NamedTuple):
    """A distribution symmetric about 0, given by its lower tail.

    Attributes
    ----------
    log_tail
        ``x -> log P(X ≤ x)`` for x ≤ 0.
    inverse
        Its inverse for values up to log(1/2).
    """

    log_tail: Callable[[Array], Array]
    inverse: Callable[[Array], Array]

    def log_cdf(self, value: Array) -> Array:
        """log P(X ≤ value), accurate also close to 0."""
        tail = self.log_tail(-jnp.abs(value))
        return jnp.where(value <= 0, tail, log_complement(tail))

    def quantile(self, log_probability: Array) -> Array:
        """The value with this log P(X ≤ value)."""
        lower = log_probability <= LOG_HALF
        upper = jnp.maximum(log_complement(log_probability), smallest_log(log_probability))
        place = self.inverse(jnp.where(lower, log_probability, upper))
        return jnp.where(lower, place, -place)

    def scores(self) -> NormalScores:
        """Normal scores of noise from this distribution."""
        return NormalScores(
            lambda noise: match_quantile(self, NORMAL, noise), lambda normals: match_quantile(NORMAL, self, normals)
        )


def match_quantile(source: Symmetric, target: Symmetric, value: Array) -> Array:
    """The target quantile of the source probability of `value`."""
    place = target.inverse(jnp.minimum(source.log_tail(-jnp.abs(value)), LOG_HALF))
    return jnp.where(value <= 0, place, -place)


def logistic_tail(value: Array) -> Array:
    """log P(X ≤ x) = -log(1 + exp(-x)) of the Logistic distribution for x ≤ 0."""
    return value - jnp.log1p(jnp.exp(value))


def soft_laplace_tail(value: Array) -> Array:
    """The logarithm of 2 / π arctan(exp(x)), about 2 / π exp(x) for small x."""
    far = value < -10
    near = jnp.log(jnp.arctan(jnp.exp(jnp.where(far, 0.0, value))))
    return jnp.where(far, value, near) - log(pi / 2)


def soft_laplace_inverse(log_probability: Array) -> Array:
    """The logarithm of tan(π / 2 p)."""
    far = log_probability < -10
    angle = pi / 2 * jnp.exp(jnp.where(far, LOG_HALF, log_probability))
    return jnp.where(far, log_probability + log(pi / 2), jnp.log(jnp.tan(angle)))


NORMAL = Symmetric(normal_tail, normal_inverse)
LAPLACE = Symmetric(lambda value: value + LOG_HALF, lambda log_probability: log_probability - LOG_HALF)
LOGISTIC = Symmetric(logistic_tail, lambda log_probability: log_probability - log_complement(log_probability))
CAUCHY = Symmetric(
    lambda value: jnp.log(jnp.arctan2(jnp.ones_like(value), -value) / pi),
    lambda log_probability: -1 / jnp.tan(pi * jnp.exp(log_probability)),
)
SOFT_LAPLACE = Symmetric(soft_laplace_tail, soft_laplace_inverse)
