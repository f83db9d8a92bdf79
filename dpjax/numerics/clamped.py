"""Moments of Normal numbers clamped to intervals.

With u = m + s z and bounds at z = α and β, the clamped number is u + s ((α - z)₊ - (z - β)₊): all is written as the
moment of u and a correction by what lies beyond the bounds, so that nothing is lost where little does. Distribution
functions are evaluated once for all columns, as each evaluation is long to compile, and columns are picked by products
with matrices of zeros and ones, whose derivatives are products again.
"""

from math import pi, sqrt
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dpjax.base import Array
from dpjax.numerics.linear_algebra import product

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
    mean: Array, factor: Array, lower: Array, upper: Array, pairs: tuple[np.ndarray, np.ndarray]
) -> ClampedMoments:
    """The moments of jointly Normal columns, each clamped to its interval.

    A clamped column times the other one itself is closed, by Stein's lemma; its product with the correction of the
    other is an integral over what lies beyond that one's bounds, of a function that is smooth there.

    Parameters
    ----------
    mean : [k]
    lower : [k]
    upper : [k]
    factor : [k, k]
        Of the covariance, ``factor @ factor.T``.
    pairs
        The first and second columns [m] of each pair; of the first the correction is integrated over.
    """
    scale = jnp.sqrt(jnp.sum(jnp.square(factor), axis=1))
    bounds = jnp.stack(distances(mean, scale, lower, upper))
    correction, probability = excess(bounds)
    shift = scale * (correction[0] - correction[1])
    clamped, free = mean + shift, 1 - jnp.sum(probability, axis=0)
    squares = (1 - jnp.square(bounds)) * probability - bounds * (correction - bounds * probability)
    square = mean**2 + scale**2 * (1 - jnp.sum(squares, axis=0)) + 2 * mean * shift
    table = jnp.concatenate([jnp.stack([mean, scale, *bounds, clamped, free, lower, upper]), factor.T])
    one, other = (product(table, jnp.asarray(np.eye(mean.size)[:, columns], mean.dtype)) for columns in pairs)
    shared = jnp.sum(one[8:] * other[8:], axis=0)
    slope = shared / one[1]
    left = jnp.sqrt(jnp.square(other[1]) - jnp.square(slope))
    beyond = product_beyond(one[2:4], other[0], slope, left, other[6], other[7])
    return ClampedMoments(clamped, square, one[0] * other[4] + shared * other[5] + one[1] * beyond)


@jax.custom_jvp
def product_beyond(bounds: Array, mean: Array, slope: Array, left: Array, lower: Array, upper: Array) -> Array:
    """E ((α - z)₊ - (z - β)₊) clip(v) for v ~ N(mean + slope z, left²) [m], at bounds α and -β [2, m]."""
    return with_slopes(bounds, mean, slope, left, lower, upper)[0]


@product_beyond.defjvp
def product_beyond_jvp(primals: tuple[Array, ...], tangents: tuple[Array, ...]) -> tuple[Array, Array]:
    """The integral and its derivative by integrals at the same nodes: far fewer programs than those of each step."""
    value, (by_bound, *slopes) = with_slopes(*primals)
    changes = [slope * tangent for slope, tangent in zip(slopes, tangents[1:], strict=True)]
    return value, sum(changes, start=jnp.sum(by_bound * tangents[0], axis=0))


def with_slopes(
    bounds: Array, mean: Array, slope: Array, left: Array, lower: Array, upper: Array
) -> tuple[Array, tuple[Array, ...]]:
    """`product_beyond` [m], and its partial derivatives by each argument, [2, m] and five times [m].

    Of E clip(v) these are P(v within) by the mean, the difference of the densities at the bounds by the standard
    deviation, and P(v beyond) by a bound.
    """
    nodes, weights = (jnp.asarray(part, mean.dtype)[:, None, None] for part in (NODES, WEIGHTS))
    half = jnp.clip(bounds + FAR, 0.0, 2 * FAR)[None] / 2
    score = (nodes + 1) * half - FAR  # z below, and -z above
    side = jnp.asarray([1.0, -1.0], mean.dtype)[None, :, None]
    weight = side * weights * half * density(score)
    centre = mean[None, None] + side * slope[None, None] * score
    reach = jnp.stack(distances(centre, *(part[None, None] for part in (left, lower, upper))))
    correction, probability = excess(reach)
    clamped = centre + left[None, None] * (correction[0] - correction[1])
    within, ends = 1 - probability[0] - probability[1], density(reach)
    values = jnp.stack([clamped, within, side * score * within, ends[0] - ends[1], probability[0], probability[1]])
    sums = jnp.sum((weight * jnp.maximum(bounds[None] - score, 0.0))[None] * values, axis=(1, 2))
    return sums[0], (jnp.sum(weight * clamped, axis=0), *sums[1:])


def distances(mean: Array, scale: Array, lower: Array, upper: Array) -> tuple[Array, Array]:
    """α and -β: the bounds in standard deviations from the mean, both positive where they are beyond it."""
    return in_deviations(lower - mean, scale), in_deviations(mean - upper, scale)


def in_deviations(distance: Array, scale: Array) -> Array:
    """A distance over the scale, from -9 on; an infinite one has no derivative that is a number, and is left out."""
    finite = jnp.isfinite(distance)
    return jnp.where(finite, jnp.clip(jnp.where(finite, distance, 0.0) / scale, -FAR, None), -FAR)


@jax.custom_jvp
def excess(bound: Array) -> tuple[Array, Array]:
    """E (bound - z)₊ and P(z ≤ bound) for z standard Normal."""
    probability = jax.lax.erfc(-bound * sqrt(0.5)) / 2
    return bound * probability + density(bound), probability


@excess.defjvp
def excess_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """The derivative of the first is the second, and that of the second the density."""
    values = excess(*primals)
    return values, (values[1] * tangents[0], density(primals[0]) * tangents[0])


def density(score: Array) -> Array:
    """The standard Normal density."""
    return jnp.exp(-jnp.square(score) / 2) / sqrt(2 * pi)
