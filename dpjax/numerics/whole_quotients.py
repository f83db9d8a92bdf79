"""Densities of quotients of two independent noisy numbers, of which one has integer noise.

Given the noisy denominator b, a whole number, the quotient has the density |b| f(value b − top), f that of the
numerator's noise: its density is a sum over whole numbers. It lacks the mass of b = 0, where there is no quotient.
"""

from collections.abc import Callable
from math import log, pi, sqrt

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp

from dpjax.base import Array
from dpjax.numerics.quotients import DROP, kink, line, root_of
from dpjax.numerics.theta import log_theta

__all__ = [
    "MAX_TERMS",
    "gaussian_by_whole_gaussian",
    "laplace_by_whole_gaussian",
    "laplace_by_whole_laplace",
    "num_terms",
    "of_whole",
]

Density = Callable[..., Array]

REACH = sqrt(2 * DROP)
"""The distance from its mode, in standard deviations, at which the log of a Gaussian density is `DROP` lower."""

MAX_TERMS = 1_024
"""Largest number of terms of a sum."""

SHORT = 0.1
"""Rates below which 1 / (exp(x) − 1) − 1 / x is a power series, whose next term is below rounding."""


def num_terms(scale: float) -> int:
    """The number of terms, a power of two, that hold a sum over discrete Gaussian noise of this scale.

    The log of a term, without its factor |b|, is concave with a curvature of at least 1 / scale².
    """
    least = 2 * (REACH * scale + 2)
    return max(32, 1 << int(np.ceil(np.log2(least))))


def of_whole(density: Density, value: Array, top: Array, bottom: Array, top_scale: Array, bottom_scale: Array) -> Array:
    """The log-density [] of (top + u) / (bottom + v), if u is whole, at a value other than 0.

    The reciprocal is of the other kind. A numerator of 0 has a probability, not a density: that of the quotient 0.

    Parameters
    ----------
    density
        The log-density of the reciprocal, such as `laplace_by_whole_laplace`.
    """
    nonzero = jnp.where(value == 0, 1.0, value)
    return density(1 / nonzero, bottom, top, bottom_scale, top_scale) - 2 * jnp.log(jnp.abs(nonzero))


def gaussian_by_whole_gaussian(
    value: Array, top: Array, bottom: Array, top_scale: Array, bottom_scale: Array, terms: int
) -> Array:
    """The log-density [] of (top + u) / (bottom + v), u Gaussian and v discrete Gaussian, by so many terms."""
    width = jnp.hypot(top_scale, value * bottom_scale)
    mode = (top - value * bottom) * (value * (bottom_scale / width) ** 2)
    whole, noise = whole_numbers(bottom, mode, terms)
    logs = -jnp.square(line_near(bottom, value, top, noise) / top_scale) / 2 - jnp.square(noise / bottom_scale) / 2
    return logsumexp(logs, b=jnp.abs(whole)) - jnp.log(top_scale) - log(2 * pi) / 2 - log_theta(bottom_scale)


def laplace_by_whole_gaussian(
    value: Array, top: Array, bottom: Array, top_scale: Array, bottom_scale: Array, terms: int
) -> Array:
    """The log-density [] of (top + u) / (bottom + v), u Laplace and v discrete Gaussian, by so many terms."""
    distance = kink(top, value, bottom, bottom_scale) - bottom
    most = jnp.abs(value) * bottom_scale**2 / top_scale
    whole, noise = whole_numbers(bottom, jnp.clip(distance, -most, most), terms)
    logs = -jnp.abs(line_near(bottom, value, top, noise)) / top_scale - jnp.square(noise / bottom_scale) / 2
    return logsumexp(logs, b=jnp.abs(whole)) - jnp.log(2 * top_scale) - log_theta(bottom_scale)


def whole_numbers(start: Array, mode: Array, terms: int) -> tuple[Array, Array]:
    """So many whole numbers [terms] around start + mode [], and what they are above the start.

    The latter are counted from there: floats do not hold every large whole number.
    """
    base = jnp.round(start)
    steps = jax.lax.stop_gradient(jnp.round(mode + (start - base))) + jnp.arange(terms, dtype=mode.dtype) - terms // 2
    return base + steps, steps + (base - start)


def line_near(start: Array, slope: Array, shift: Array, noise: Array) -> Array:
    """slope (start + noise) − shift, elementwise, by the place where it is 0."""
    root, has_root = root_of(slope, shift)
    return jnp.where(has_root, slope * (noise - (root - start)), slope * (start + noise) - shift)


def laplace_by_whole_laplace(value: Array, top: Array, bottom: Array, top_scale: Array, bottom_scale: Array) -> Array:
    """The log-density [] of (top + u) / (bottom + v), u Laplace and v discrete Laplace, if `bottom` is whole.

    Notes
    -----
    Between b = bottom, 0 and top / value the log of a term is a line. So each of four pieces is the sum of a line times
    a geometric sequence.
    """
    crossing = kink(top, value, bottom, bottom_scale)
    ends = jax.lax.stop_gradient(jnp.floor(jnp.sort(jnp.stack([jnp.zeros_like(bottom), bottom, crossing]))))
    # Terms at b = 0 are left out: they are 0, and may be too far above the rest of their pieces for the float type.
    first, last = ends + 1, jnp.where(ends == 0, -1.0, ends)

    def log_term(whole: Array) -> Array:
        return -jnp.abs(line(value, top, whole)) / top_scale - jnp.abs(whole - bottom) / bottom_scale

    begin, end = log_term(first), log_term(last)
    slope = jnp.abs(value) / top_scale + 1 / bottom_scale
    outside = geometric_line(slope, jnp.abs(jnp.stack([last[0], first[2]])))
    steps = jnp.maximum(last[1:] - first[:2], -1.0)
    inside = bounded_line(begin[:2], end[1:], jnp.abs(first[:2]), jnp.abs(last[1:]), steps)
    logs = jnp.concatenate([jnp.stack([end[0], begin[2]]), jnp.maximum(begin[:2], end[1:])])
    rate = 1 / bottom_scale
    total = logsumexp(logs, b=jnp.concatenate([outside, inside]))
    return total - jnp.log(2 * top_scale) + jnp.log(-jnp.expm1(-rate)) - jnp.log1p(jnp.exp(-rate))


def geometric_line(rate: Array, size: Array) -> Array:
    """Σ (size + j) exp(−rate j) over j = 0, 1, ..., elementwise."""
    ratio = -jnp.expm1(-rate)
    return (size + jnp.exp(-rate) / ratio) / ratio


def bounded_line(first: Array, last: Array, first_size: Array, last_size: Array, steps: Array) -> Array:
    """The sum of sizes, on a line, times exp(heights less the higher end), on another; 0 for −1 steps, elementwise.

    Parameters
    ----------
    first
        The height at the first end.
    last
        That at the last.
    first_size
        The size at the first end.
    last_size
        That at the last.
    steps
        The number of steps from one end to the other.
    """
    ahead = first >= last
    near, far = jnp.where(ahead, first_size, last_size), jnp.where(ahead, last_size, first_size)
    length = jnp.maximum(steps, 1.0)
    rate = jnp.abs(first - last) / length
    is_level = rate == 0
    safe = jnp.where(is_level, 1.0, rate)
    number = steps + 1
    whole = jnp.where(is_level, number, jnp.expm1(-number * safe) / jnp.expm1(-safe))
    # The mean of j under weights exp(−rate j), as a share of the length.
    share = (excess(rate) - number * excess(number * rate)) / length
    return whole * (near * (1 - share) + far * share)


def excess(rate: Array) -> Array:
    """1 / (exp(rate) − 1) − 1 / rate for rates of at least 0, elementwise."""
    small, large = jnp.minimum(rate, SHORT), jnp.maximum(rate, SHORT)
    rest = jnp.exp(-large) / -jnp.expm1(-large)
    square = small * small
    series = -1 / 2 + small * (1 / 12 - square * (1 / 720 - square * (1 / 30_240 - square / 1_209_600)))
    return jnp.where(rate < SHORT, series, rest - 1 / large)
