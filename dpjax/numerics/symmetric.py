"""Laws that are symmetric about 0, through the logarithm of one tail, where no digits are rounded away.

A probability near 1 has no digits left: in single precision a uniform number ends at 1 - 6e-8, a Normal score of 5.3.
Its logarithm, and that of the other tail, keep all of theirs.
"""

from collections.abc import Callable
from math import log, pi
from typing import NamedTuple

import jax.numpy as jnp

from dpjax.base import Array, NormalScores
from dpjax.numerics.normal_tails import LOG_HALF, log_complement, normal_inverse, normal_tail, smallest_log

__all__ = ["CAUCHY", "LAPLACE", "LOGISTIC", "NORMAL", "SOFT_LAPLACE", "Symmetric"]


class Symmetric(NamedTuple):
    """A law that is symmetric about 0, through its lower half.

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
