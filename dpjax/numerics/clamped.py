"""Moments of Normal numbers clamped to intervals.

With u = m + s z and bounds at z = α and β, the clamped number is u + s ((α - z)₊ - (z - β)₊): all is written as the
moment of u and a correction by what lies beyond the bounds, so that nothing is lost where little does. Distribution
functions are evaluated once for all columns, as each evaluation is long to compile.
"""

from math import sqrt
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm

from dpjax.base import Array

__all__ = ["ClampedMoments", "clamped_mean", "clamped_moments"]

FAR = 9.0
"""A bound that is so many standard deviations away is never reached: it stands for one at infinity."""

NODES, WEIGHTS = np.polynomial.legendre.leggauss(48)
"""Of a Gauss-Legendre rule on [-1, 1], for the part of a product beyond a bound."""


class ClampedMoments(NamedTuple):
    """Means [k] and squares [k] of clamped columns, and the means [m] of the products of some pairs of them."""

    mean: Array
    square: Array
    product: Array


def clamped_mean(mean: Array, scale: Array, lower: Array, upper: Array) -> Array:
    """E clip(u, lower, upper) for u ~ N(mean, scale²), elementwise."""
    below, above = distances(mean, scale, lower, upper)
    correction, _ = excess(jnp.stack([below, above]))
    return mean + scale * (correction[0] - correction[1])


def clamped_moments(
    mean: Array, covariance: Array, lower: Array, upper: Array, pairs: tuple[np.ndarray, np.ndarray]
) -> ClampedMoments:
    """The moments of jointly Normal columns, each clamped to its interval.

    A clamped column times the other one itself is closed, by Stein's lemma; its product with the correction of the
    other is an integral over what lies beyond that one's bounds, of a function that is smooth there.

    Parameters
    ----------
    mean, lower, upper : [k]
    covariance : [k, k]
    pairs
        The first and second columns [m] of each pair; of the first the correction is integrated over.
    """
    scale = jnp.sqrt(jnp.diagonal(covariance))
    bounds = jnp.stack(distances(mean, scale, lower, upper))
    correction, probability = excess(bounds)
    clamped = mean + scale * (correction[0] - correction[1])
    squares = (1 - jnp.square(bounds)) * probability - bounds * (correction - bounds * probability)
    square = mean**2 + scale**2 * (1 - jnp.sum(squares, axis=0)) + 2 * mean * scale * (correction[0] - correction[1])
    first, second = pairs
    free = 1 - jnp.sum(probability, axis=0)
    shared = covariance[first, second]
    whole = mean[first] * clamped[second] + shared * free[second]
    slope = shared / scale[first]
    left = jnp.sqrt(scale[second] ** 2 - slope**2)
    given = (mean[second], slope, left, lower[second], upper[second])
    return ClampedMoments(clamped, square, whole + scale[first] * product_beyond(bounds[:, first], *given))


def product_beyond(bounds: Array, mean: Array, slope: Array, left: Array, lower: Array, upper: Array) -> Array:
    """E ((α - z)₊ - (z - β)₊) clip(v) for v ~ N(mean + slope z, left²) [m], at bounds α and -β [2, m]."""
    nodes, weights = (jnp.asarray(part, mean.dtype)[:, None, None] for part in (NODES, WEIGHTS))
    half = jnp.clip(bounds + FAR, 0.0, 2 * FAR)[None] / 2
    score = (nodes + 1) * half - FAR  # z below, and -z above
    side = jnp.asarray([1.0, -1.0], mean.dtype)[:, None]
    centre = mean[None, None] + (side * slope[None])[None] * score
    scale, low, high = (jnp.broadcast_to(part, centre.shape) for part in (left, lower, upper))
    values = weights * half * jnp.maximum(bounds[None] - score, 0.0) * norm.pdf(score)
    return jnp.sum(values * side[None] * clamped_mean(centre, scale, low, high), axis=(0, 1))


def distances(mean: Array, scale: Array, lower: Array, upper: Array) -> tuple[Array, Array]:
    """α and -β: the bounds in standard deviations from the mean, both positive where they are beyond it."""
    return jnp.clip((lower - mean) / scale, -FAR, None), jnp.clip((mean - upper) / scale, -FAR, None)


def excess(bound: Array) -> tuple[Array, Array]:
    """E (bound - z)₊ and P(z ≤ bound) for z standard Normal."""
    probability = jax.lax.erfc(-bound * sqrt(0.5)) / 2
    return bound * probability + norm.pdf(bound), probability
