"""The upper tail of the standard normal law, accurate at any distance and in any float dtype."""

from math import log, pi

import jax.numpy as jnp
from jax.scipy.special import log_ndtr, ndtr, ndtri

from dpjax.base import Array

FAR = 10.0  # beyond it the asymptotic series of Mills' ratio is exact to 3e-13
SERIES_TERMS = 12
NEWTON_STEPS = 5
NEAR = 2.0  # below it the inverse distribution function loses nothing


def log_mills(threshold: Array) -> Array:
    """The log of Mills' ratio P(X > c) / φ(c), elementwise.

    Differences of it replace differences of log-probabilities, in which the terms c² / 2 would cancel.
    """
    near = jnp.minimum(threshold, FAR)
    far = jnp.maximum(threshold, FAR)
    series = jnp.ones_like(far)
    for order in reversed(range(1, SERIES_TERMS + 1)):
        series = 1 - (2 * order - 1) * series / far**2
    log_near = log_ndtr(-near) + near**2 / 2 + log(2 * pi) / 2
    return jnp.where(threshold < FAR, log_near, jnp.log(series) - jnp.log(far))


def normal_excess(exponential: Array, threshold: Array) -> Array:
    """The e >= 0 with P(X > c + e | X > c) = exp(-exponential) for X ~ N(0, 1), elementwise.

    A unit exponential gives a draw of X - c given X > c. The excess is returned rather than X itself, because
    far in the tail it is lost in the sum.

    Parameters
    ----------
    exponential : [...]
        Draws of the unit exponential law.
    threshold : [...]
        The truncation point c, of any sign and size.
    """
    near = _excess_by_inversion(exponential, jnp.minimum(threshold, NEAR))
    far = _excess_by_newton(exponential, jnp.maximum(threshold, NEAR))
    return jnp.where(threshold < NEAR, near, far)


def _excess_by_inversion(exponential: Array, threshold: Array) -> Array:
    """The excess from the inverse of the distribution function, kept finite where a probability rounds to 0 or 1."""
    probability = jnp.exp(-exponential) * ndtr(-threshold)
    precision = jnp.finfo(probability.dtype)
    inside = jnp.clip(probability, precision.tiny, 1 - precision.epsneg)
    return jnp.maximum(-ndtri(inside) - threshold, 0)


def _excess_by_newton(exponential: Array, threshold: Array) -> Array:
    """The excess by Newton's method, which descends to it: the log-survival is concave and the start is above."""
    excess = 2 * exponential / (threshold + jnp.sqrt(threshold**2 + 2 * exponential))
    start = log_mills(threshold)
    for _ in range(NEWTON_STEPS):
        mills = log_mills(threshold + excess)
        survival = mills - start - excess * (threshold + excess / 2)
        excess = jnp.maximum(excess + (survival + exponential) * jnp.exp(mills), 0)
    return excess
