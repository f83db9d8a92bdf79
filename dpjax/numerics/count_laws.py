"""The Poisson and the negative Binomial law of whole numbers, to rounding in both float types up to 10^8 and beyond.

Their probabilities are differences of log-gammas, which at n = 10^8 leave nothing in float32. The saddle-point form of
Loader (2000, "Fast and accurate computation of binomial probabilities", equations 4 to 6) has no such difference: it
needs the distance of n from the mean, which is taken in whole numbers.
"""

import jax
import jax.numpy as jnp
from jax.scipy.special import gammaln, xlogy
from jax.typing import ArrayLike

from dpjax.base import Array, Key
from dpjax.numerics.gamma import draw_gamma
from dpjax.numerics.linear_algebra import LOG_TWO_PI

__all__ = [
    "LARGEST_MEAN",
    "draw_negative_binomial",
    "draw_poisson",
    "negative_binomial_log_probability",
    "poisson_log_probability",
]

LARGEST_MEAN = 2.0**30
"""Means up to here leave room for draws above them in int32."""

SMALL_MEAN, SMALL_NUMBERS = 10.0, 64
"""Below this mean numbers are drawn by inversion: one of as many or more has a probability below 1e-27."""


def poisson_log_probability(n: ArrayLike, mean: ArrayLike) -> Array:
    """log P(n) of the Poisson law, elementwise for whole numbers [...]; −inf below 0."""
    value, mean = positive(n), jnp.asarray(mean, float)
    distance = distance_from(n, mean)
    above = -(LOG_TWO_PI + jnp.log(value)) / 2 - stirling_error(value) - deviance(value, mean, distance)
    return within(n, -mean, above)


def negative_binomial_log_probability(n: ArrayLike, mean: ArrayLike, size: ArrayLike) -> Array:
    """log P(n) of the law of variance mean + mean² / size, elementwise for whole numbers [...]; −inf below 0."""
    value, mean, size = positive(n), jnp.asarray(mean, float), jnp.asarray(size, float)
    total, share = value + size, mean / (size + mean)
    # How far n is above, and the size below, what each would be at its expected share of their total.
    distance = distance_from(n, mean) * (size / (size + mean))
    errors = stirling_error(total) - stirling_error(value) - stirling_error(size)
    deviances = deviance(value, total * share, distance) + deviance(size, total * (size / (size + mean)), -distance)
    above = jnp.log(size / total) + errors - deviances - (LOG_TWO_PI + jnp.log(size) + jnp.log(value / total)) / 2
    return within(n, -size * jnp.log1p(mean / size), above)


def positive(n: ArrayLike) -> Array:
    """Whole numbers as floats of at least 1: there is a form of its own for 0."""
    return jnp.maximum(jnp.asarray(n, int), 1).astype(float)


def distance_from(n: ArrayLike, mean: Array) -> Array:
    """n − mean, exact where n has more digits than a float."""
    whole = jnp.floor(mean)
    return (jnp.asarray(n, int) - whole.astype(int)).astype(float) - (mean - whole)


def within(n: ArrayLike, at_zero: Array, above: Array) -> Array:
    """The log-probability at 0 or above it, and −inf below."""
    number = jnp.asarray(n, int)
    return jnp.where(number > 0, above, jnp.where(number == 0, at_zero, -jnp.inf))


def stirling_error(value: Array) -> Array:
    """log Γ(x + 1) − (x + 1/2) log x + x − log(2π) / 2 of numbers x above 0: Stirling's series from 16 on."""
    large, small = jnp.maximum(value, 16.0), jnp.minimum(value, 16.0)
    square = large**-2
    series = 1 / 12 - square * (1 / 360 - square * (1 / 1260 - square * (1 / 1680 - square / 1188)))
    direct = gammaln(small + 1) - (small + 0.5) * jnp.log(small) + small - LOG_TWO_PI / 2
    return jnp.where(value >= 16.0, series / large, direct)


def deviance(value: Array, mean: Array, difference: Array) -> Array:
    """value log(value / mean) + mean − value, where the difference value − mean is known better than the two."""
    ratio = difference / (value + mean)
    near = jnp.where(jnp.abs(ratio) < 0.1, ratio, 0.0)
    square, series = near**2, jnp.zeros_like(near)
    for order in range(17, 1, -2):
        series = square * (series + 1 / order)
    close = difference * near + 2 * value * near * series
    return jnp.where(jnp.abs(ratio) < 0.1, close, xlogy(value, value / mean) - difference)


def draw_poisson(key: Key, mean: ArrayLike) -> Array:
    """A Poisson draw, int [], of a mean [] up to `LARGEST_MEAN`: by inversion, or by rejection (Hörmann 1993, PTRS)."""
    small_key, large_key = jax.random.split(key)
    mean = jnp.asarray(mean, float)
    few = jnp.minimum(mean, SMALL_MEAN)
    ends = jnp.cumsum(jnp.exp(poisson_log_probability(jnp.arange(SMALL_NUMBERS), few)))
    small = jnp.sum(ends <= jax.random.uniform(small_key, (), float))
    return jnp.where(mean < SMALL_MEAN, small, reject_poisson(large_key, jnp.maximum(mean, SMALL_MEAN)))


def reject_poisson(key: Key, mean: Array) -> Array:
    """The same for means of at least 10, by Hörmann's transformed rejection; numbers are counted from ⌊mean⌋."""
    b = 0.931 + 2.53 * jnp.sqrt(mean)
    a = -0.059 + 0.02483 * b
    log_inverse_alpha, sure = jnp.log(1.1239 + 1.1328 / (b - 3.4)), 0.9277 - 3.6624 / (b - 2)
    whole = jnp.floor(mean)

    def propose(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        number = carry[0] + 1
        place_key, accept_key = jax.random.split(jax.random.fold_in(key, number))
        place = jax.random.uniform(place_key, (), float) - 0.5
        height = jax.random.uniform(accept_key, (), float)
        inside = jnp.maximum(0.5 - jnp.abs(place), jnp.finfo(place.dtype).tiny ** 0.25)
        step = jnp.floor((2 * a / inside + b) * place + (mean - whole) + 0.43)
        n = whole.astype(int) + jnp.clip(step, -whole - 1, LARGEST_MEAN / 2).astype(int)
        log_height = jnp.log(height) + log_inverse_alpha - jnp.log(a / inside**2 + b)
        accepted = ((inside >= 0.07) & (height <= sure)) | (log_height <= poisson_log_probability(n, mean))
        return number, n, accepted

    start = (jnp.array(0), jnp.array(0), jnp.array(False))
    return jax.lax.while_loop(lambda carry: ~carry[2], propose, start)[1]


def draw_negative_binomial(key: Key, mean: ArrayLike, size: ArrayLike) -> Array:
    """A draw, int []: Poisson of a Gamma mean; none beyond twice `LARGEST_MEAN`."""
    mean_key, number_key = jax.random.split(key)
    size = jnp.asarray(size, float)
    return draw_poisson(number_key, jnp.minimum(draw_gamma(mean_key, size, size / mean), LARGEST_MEAN))
