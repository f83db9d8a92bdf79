"""Moments of Normal numbers clamped to intervals.

With u = m + s z and bounds at z = α and β, the clamped number is u + s ((α - z)₊ - (z - β)₊): all is written as the
moment of u and a correction by what lies beyond the bounds, so that nothing is lost where little does.
"""

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtr
from jax.scipy.stats import norm

from dpjax.base import Array

__all__ = ["clamped_mean", "clamped_product", "clamped_square"]

FAR = 9.0
"""A bound that is so many standard deviations away is never reached: it stands for one at infinity."""

NODES, WEIGHTS = np.polynomial.legendre.leggauss(48)
"""Of a Gauss-Legendre rule on [-1, 1], for the part of a product beyond a bound."""


def clamped_mean(mean: Array, scale: Array, lower: Array, upper: Array) -> Array:
    """E clip(u, lower, upper) for u ~ N(mean, scale²), elementwise."""
    below, above = distances(mean, scale, lower, upper)
    return mean + scale * (excess(below) - excess(above))


def clamped_square(mean: Array, scale: Array, lower: Array, upper: Array) -> Array:
    """E clip(u, lower, upper)² for u ~ N(mean, scale²), elementwise."""
    below, above = distances(mean, scale, lower, upper)
    beyond = square_excess(below) - 2 * below * excess(below) + square_excess(above) - 2 * above * excess(above)
    return mean**2 + scale**2 * (1 - beyond) + 2 * mean * scale * (excess(below) - excess(above))


def clamped_product(mean: Array, scale: Array, correlation: Array, lower: Array, upper: Array) -> Array:
    """E clip(u, ...) clip(v, ...) for jointly Normal u and v.

    The clamped v times u itself is closed, by Stein's lemma; its product with the correction of u is an integral over
    what lies beyond the bounds of u, of a function that is smooth there.

    Parameters
    ----------
    mean, scale, lower, upper : [2, m]
        Of u and of v.
    correlation : [m]
    """
    below, above = distances(mean, scale, lower, upper)
    free = ndtr(-above[1]) - ndtr(below[1])
    whole = mean[0] * clamped_mean(mean[1], scale[1], lower[1], upper[1])
    whole += correlation * scale[0] * scale[1] * free
    nodes, weights = jnp.asarray(NODES, mean.dtype)[:, None], jnp.asarray(WEIGHTS, mean.dtype)[:, None]

    def beyond(bound: Array, side: float) -> Array:
        """E (bound - z)₊ clip(v) for z = ± (u - m) / s."""
        half = jnp.clip(bound + FAR, 0.0, 2 * FAR)[None] / 2
        score = (nodes + 1) * half - FAR
        given = mean[1] + side * correlation * scale[1] * score
        left = scale[1] * jnp.sqrt(1 - correlation**2)
        values = clamped_mean(given, jnp.broadcast_to(left, given.shape), lower[1][None], upper[1][None])
        return jnp.sum(half * weights * jnp.maximum(bound[None] - score, 0.0) * norm.pdf(score) * values, axis=0)

    return whole + scale[0] * (beyond(below[0], 1.0) - beyond(above[0], -1.0))


def distances(mean: Array, scale: Array, lower: Array, upper: Array) -> tuple[Array, Array]:
    """α and -β: the bounds in standard deviations from the mean, both positive where they are beyond it."""
    return jnp.clip((lower - mean) / scale, -FAR, None), jnp.clip((mean - upper) / scale, -FAR, None)


def excess(bound: Array) -> Array:
    """E (bound - z)₊ for z standard Normal."""
    return bound * ndtr(bound) + norm.pdf(bound)


def square_excess(bound: Array) -> Array:
    """E (bound - z)₊² for z standard Normal."""
    return (1 + bound**2) * ndtr(bound) + bound * norm.pdf(bound)
