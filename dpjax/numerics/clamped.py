"""Moments of clamped Normal columns, in closed form or by accurate quadrature."""

from math import pi, sqrt
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtr

from dpjax.base import Array
from dpjax.numerics.linear_algebra import product

__all__ = ["bin_probabilities", "clamped_mean", "clamped_moments", "gram_mean", "scales_of"]

FAR = 9.0
"""Distance in standard deviations from which a bound is treated as infinite."""

NODES, WEIGHTS = np.polynomial.legendre.leggauss(48)
"""A Gauss-Legendre rule on [-1, 1], for the part of a product beyond a bound."""


def scales_of(factor: Array) -> Array:
    """The standard deviations [k] of columns, from a factor [k, k] of their covariance."""
    return jnp.sqrt(jnp.sum(jnp.square(factor), axis=1))


def bin_probabilities(mean: Array, scale: Array, edges: tuple[float, ...]) -> Array:
    """The probabilities [d] of bins of N(mean, scale²), of which the first and the last are unbounded."""
    bounds = (jnp.asarray(edges[1:-1], mean.dtype) - mean) / scale
    left, right = jnp.append(-jnp.inf, bounds), jnp.append(bounds, jnp.inf)
    return jnp.where(left > 0, ndtr(-left) - ndtr(-right), ndtr(right) - ndtr(left))  # from the smaller tail


def gram_mean(mean: Array, factor: Array, lower: Array, upper: Array, with_response: bool) -> Array:
    """The means [d] of all products of two of the columns and 1, each clamped and rescaled to [-1, 1].

    Parameters
    ----------
    mean : [k]
        The means of jointly Normal columns, the response last if there is one.
    factor : [k, k]
        A factor of their covariance.
    lower : [k]
        The lower bounds.
    upper : [k]
        The upper bounds.
    with_response
        Whether the last column is a response, whose products come first.
    """
    middle, half = (lower + upper) / 2, (upper - lower) / 2
    mean, factor = (mean - middle) / half, factor / half[:, None]
    size, last = mean.size, mean.size - 1
    second, first = np.tril_indices(size, -1)  # the earlier column is integrated over
    one = jnp.ones_like(mean)
    moments = clamped_moments(mean, factor, -one, one, (first, second))

    def row(j: int) -> list[int]:
        """The places of column j's products with the columns before it, after all means and squares."""
        return [2 * size + j * (j - 1) // 2 + k for k in range(j)]

    triangle = [place for j in range(last) for place in (j, *row(j), size + j)]
    response = [last, *row(last), size + last] if with_response else []
    order = np.eye(size * (size + 3) // 2)[[*response, *triangle]]
    return product(jnp.asarray(order, mean.dtype), jnp.concatenate(moments))


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

    The mean of a clamped column times an unclamped one has a closed form, by Stein's lemma. The correction for clamping
    the other is an integral over the tails beyond its bounds, where the integrand is smooth.

    Parameters
    ----------
    mean : [k]
        The means.
    lower : [k]
        The lower bounds.
    upper : [k]
        The upper bounds.
    factor : [k, k]
        A factor of the covariance, ``factor @ factor.T``.
    pairs
        The first and second columns [m] of each pair; the integral is over the first.
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
    """The integral and its derivative, with one pass over the nodes: a smaller program than differentiation."""
    value, (by_bound, *slopes) = with_slopes(*primals)
    changes = [slope * tangent for slope, tangent in zip(slopes, tangents[1:], strict=True)]
    return value, sum(changes, start=jnp.sum(by_bound * tangents[0], axis=0))


def with_slopes(
    bounds: Array, mean: Array, slope: Array, left: Array, lower: Array, upper: Array
) -> tuple[Array, tuple[Array, ...]]:
    """`product_beyond` [m], and its partial derivatives by each argument, [2, m] and five times [m].

    The derivatives of E clip(v) are P(v within) by the mean, the difference of the densities at the bounds by the
    standard deviation, and P(v beyond) by a bound.
    """
    nodes, weights = (jnp.asarray(part, mean.dtype)[None, None] for part in (NODES, WEIGHTS))
    # [side, pair, node]: processors work on several neighbours at once, of which there are many only along nodes.
    half = jnp.clip(bounds + FAR, 0.0, 2 * FAR)[..., None] / 2
    score = (nodes + 1) * half - FAR  # z below, and -z above
    side = jnp.asarray([1.0, -1.0], mean.dtype)[:, None, None]
    weight = side * weights * half * density(score)
    mean, slope, left, lower, upper = (part[None, :, None] for part in (mean, slope, left, lower, upper))
    centre = mean + side * slope * score
    below, above = distances(centre, left, lower, upper)
    (first, under), (second, over) = excess(below), excess(above)
    clamped, within = centre + left * (first - second), 1 - under - over
    values = (clamped, within, side * score * within, density(below) - density(above), under, over)
    reach = weight * jnp.maximum(bounds[..., None] - score, 0.0)
    total, *slopes = (jnp.sum(reach * value, axis=(0, 2)) for value in values)
    return total, (jnp.sum(weight * clamped, axis=2), *slopes)


def distances(mean: Array, scale: Array, lower: Array, upper: Array) -> tuple[Array, Array]:
    """α and -β: the bounds in standard deviations from the mean, positive for bounds on the other side of it."""
    return in_deviations(lower - mean, scale), in_deviations(mean - upper, scale)


def in_deviations(distance: Array, scale: Array) -> Array:
    """A distance over the scale, at least -9; an infinite one is replaced, as its derivative would be NaN."""
    finite = jnp.isfinite(distance)
    return jnp.where(finite, jnp.clip(jnp.where(finite, distance, 0.0) / scale, -FAR, None), -FAR)


@jax.custom_jvp
def excess(bound: Array) -> tuple[Array, Array]:
    """E (bound - z)₊ and P(z ≤ bound) for z standard Normal."""
    probability = jax.lax.erfc(-bound * sqrt(0.5)) / 2
    return bound * probability + density(bound), probability


@excess.defjvp
def excess_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """The derivatives: of the expectation the probability, and of the probability the density."""
    values = excess(*primals)
    return values, (values[1] * tangents[0], density(primals[0]) * tangents[0])


def density(score: Array) -> Array:
    """The standard Normal density."""
    return jnp.exp(-jnp.square(score) / 2) / sqrt(2 * pi)
