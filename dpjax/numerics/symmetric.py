"""Distribution functions on the log scale, where neither tail is rounded away, and Normal scores through them.

A probability near 1 has no digits left: in single precision a uniform number ends at 1 - 6e-8, a Normal score of 5.3.
Its logarithm, and that of the other tail, keep all of theirs.
"""

from collections.abc import Callable
from math import log, pi
from typing import NamedTuple

import jax.numpy as jnp
from jax.scipy.special import erf, erfinv, ndtr, ndtri

from dpjax.base import Array, NormalScores

__all__ = [
    "CAUCHY",
    "HALF_CAUCHY_SCORES",
    "HALF_NORMAL_SCORES",
    "LAPLACE",
    "LOGISTIC",
    "NORMAL",
    "SOFT_LAPLACE",
    "Symmetric",
    "both_tails",
    "log_complement",
    "score_of_log",
]

LOG_HALF = -log(2)


class Symmetric(NamedTuple):
    """A law that is symmetric about 0, through its lower half.

    log_tail, inverse
        ``x -> log P(X ≤ x)`` for x ≤ 0, and its inverse for values up to log(1/2).
    """

    log_tail: Callable[[Array], Array]
    inverse: Callable[[Array], Array]

    def log_cdf(self, value: Array) -> Array:
        """log P(X ≤ value), which keeps its digits also where it is next to 0."""
        tail = self.log_tail(-jnp.abs(value))
        return jnp.where(value <= 0, tail, log_complement(tail))

    def quantile(self, log_probability: Array) -> Array:
        """The value with this log P(X ≤ value)."""
        lower = log_probability <= LOG_HALF
        upper = jnp.maximum(log_complement(log_probability), smallest_log(log_probability))
        place = self.inverse(jnp.where(lower, log_probability, upper))
        return jnp.where(lower, place, -place)

    def scores(self) -> NormalScores:
        """Normal scores of noise from this law."""
        return NormalScores(lambda noise: carry(self, NORMAL, noise), lambda normals: carry(NORMAL, self, normals))


def carry(source: Symmetric, target: Symmetric, value: Array) -> Array:
    """The value of the target law with the distribution function that `value` has under the source."""
    place = target.inverse(jnp.minimum(source.log_tail(-jnp.abs(value)), LOG_HALF))
    return jnp.where(value <= 0, place, -place)


def log_complement(log_probability: Array) -> Array:
    """log(1 - p) of log p."""
    safe = jnp.minimum(log_probability, 0.0)
    small = safe < LOG_HALF
    return jnp.where(small, jnp.log1p(-jnp.exp(safe)), jnp.log(-jnp.expm1(jnp.where(small, LOG_HALF, safe))))


def score_of_log(log_lower: Array, log_upper: Array) -> Array:
    """The Normal score of a value from the logarithms of both its tails, through the smaller."""
    lower = log_lower <= log_upper
    place = normal_inverse(jnp.minimum(jnp.minimum(log_lower, log_upper), LOG_HALF))
    return jnp.where(lower, place, -place)


def normal_tail(value: Array) -> Array:
    """log P(X ≤ x) of a Normal number for x ≤ 0: JAX's own, which holds for all x, takes far longer to compile."""
    end = -((0.9 * smallest_log(value) * -2) ** 0.5)
    far = value < end
    return jnp.where(far, far_tail(jnp.minimum(value, end)), jnp.log(ndtr(jnp.where(far, end, value))))


def far_tail(value: Array) -> Array:
    """The asymptotic series of `normal_tail`, whose terms are below rounding at 12 in float32 and at 35 in float64."""
    square = 1 / value**2
    series = -square * (1 - 3 * square * (1 - 5 * square * (1 - 7 * square * (1 - 9 * square))))
    return -(value**2) / 2 - jnp.log(-value) - log(2 * pi) / 2 + jnp.log1p(series)


def normal_inverse(log_probability: Array) -> Array:
    """The inverse of `normal_tail`; -inf of -inf. Where the probability is too small a number, by two Newton steps."""
    limit = 0.9 * smallest_log(log_probability)
    far = log_probability < limit
    deep = jnp.where(far, jnp.maximum(log_probability, jnp.finfo(log_probability.dtype).min / 4), limit)
    place = -jnp.sqrt(-2 * deep)
    for _ in range(2):
        place = place + (far_tail(place) - deep) / (place + 1 / place)
    return jnp.where(far, place, ndtri(jnp.exp(jnp.where(far, limit, log_probability))))


def smallest_log(value: Array) -> float:
    """The logarithm of the smallest positive number of an array's type."""
    return log(jnp.finfo(value.dtype).tiny)


def both_tails(score: Array) -> tuple[Array, Array]:
    """log P(X ≤ score) and log P(X > score) of a Normal number."""
    tail = normal_tail(-jnp.abs(score))
    other = log_complement(tail)
    return jnp.where(score <= 0, tail, other), jnp.where(score <= 0, other, tail)


def logistic_tail(value: Array) -> Array:
    """-log(1 + exp(-x))."""
    return value - jnp.log1p(jnp.exp(value))


def soft_laplace_tail(value: Array) -> Array:
    """The logarithm of 2 / π arctan(exp(x)), which is near 2 / π exp(x) far out."""
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


def score_of_half_normal(noise: Array) -> Array:
    """The score of the absolute value of a Normal number."""
    return score_of_log(jnp.log(erf(noise / jnp.sqrt(2.0).astype(noise.dtype))), normal_tail(-noise) - LOG_HALF)


def half_normal_of_score(score: Array) -> Array:
    """The inverse of `score_of_half_normal`."""
    upper = -normal_inverse(jnp.minimum(normal_tail(-jnp.abs(score)) + LOG_HALF, LOG_HALF))
    lower = jnp.sqrt(2.0).astype(score.dtype) * erfinv(ndtr(-jnp.abs(score)))
    return jnp.where(score > 0, upper, lower)


def score_of_half_cauchy(noise: Array) -> Array:
    """The score of the absolute value of a Cauchy number."""
    lower, upper = jnp.arctan(noise), jnp.arctan2(jnp.ones_like(noise), noise)
    return score_of_log(jnp.log(2 / pi * lower), jnp.log(2 / pi * upper))


def half_cauchy_of_score(score: Array) -> Array:
    """The inverse of `score_of_half_cauchy`."""
    tangent = jnp.tan(pi / 2 * ndtr(-jnp.abs(score)))
    return jnp.where(score > 0, 1 / tangent, tangent)


HALF_NORMAL_SCORES = NormalScores(score_of_half_normal, half_normal_of_score)
HALF_CAUCHY_SCORES = NormalScores(score_of_half_cauchy, half_cauchy_of_score)
