"""Densities of quotients of two independent noisy numbers, by Gaussian and Laplace noise."""

from math import factorial, log, pi, sqrt

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import erf, logsumexp

from dpjax.base import Array

__all__ = ["gaussian_by_gaussian", "gaussian_by_laplace", "laplace_by_gaussian", "laplace_by_laplace"]

DROP = 40.0
"""How far below its largest on a side the log of an integrand is followed: what is left out is exp(-40) of it."""

NODES, WEIGHTS = (tuple(float(each) for each in rule) for rule in np.polynomial.legendre.leggauss(24))
"""Gauss-Legendre nodes on [-1, 1]: exact to rounding for exp(-40 s) and exp(-40 s²) on [0, 1], times a line."""

FAR = 1e12
"""The number of scales at which a kink that is further away is taken to lie."""

SHORT = 0.5
"""Exponents below which integrals of the exponential function over [0, 1] are power series."""

TERMS = 16
"""Terms of the series, whose next term at 1/2 is below rounding."""


def gaussian_by_gaussian(value: Array, top: Array, bottom: Array, top_scale: Array, bottom_scale: Array) -> Array:
    """The log-density of (top + u) / (bottom + v), u and v Gaussian, elementwise.

    Notes
    -----
    The density of u − value v at value bottom − top, times the mean of |bottom + v| given it (Hinkley 1969).
    """
    width = jnp.hypot(top_scale, value * bottom_scale)
    distance = (value * bottom - top) / width
    share, tilt = top_scale / width, bottom_scale / width
    mean, spread = bottom * share * share + value * top * tilt * tilt, share * bottom_scale
    ratio = jnp.abs(mean) / spread
    size = jnp.abs(mean) * erf(ratio * sqrt(0.5)) + spread * sqrt(2 / pi) * jnp.exp(-ratio * ratio / 2)
    return jnp.log(size) - jnp.log(width) - distance * distance / 2 - log(2 * pi) / 2


def laplace_by_laplace(value: Array, top: Array, bottom: Array, top_scale: Array, bottom_scale: Array) -> Array:
    """The log-density [] of (top + u) / (bottom + v), u and v Laplace.

    Notes
    -----
    The integral over v of |bottom + v| exp(−|value v − e| / top_scale − |v| / bottom_scale), e = top − value bottom, in
    four pieces between v = 0, −bottom and e / value, on each of which the exponent is a line.
    """
    excess = top - value * bottom
    kinks = jnp.sort(jnp.stack([jnp.zeros_like(excess), -bottom, kink(excess, value, bottom_scale)]))
    heights = -jnp.abs(value * kinks - excess) / top_scale - jnp.abs(kinks) / bottom_scale
    sizes = jnp.abs(bottom + kinks)
    slope = jnp.abs(value) / top_scale + 1 / bottom_scale
    outside = sizes[jnp.array([0, 2])] / slope + 1 / slope**2
    first = heights[1:] >= heights[:-1]
    near, far = jnp.where(first, sizes[1:], sizes[:-1]), jnp.where(first, sizes[:-1], sizes[1:])
    falling, rest = line_integrals(jnp.abs(jnp.diff(heights)))
    inside = jnp.diff(kinks) * (near * falling + far * rest)
    logs = jnp.concatenate([heights[jnp.array([0, 2])], jnp.maximum(heights[1:], heights[:-1])])
    total = logsumexp(logs, b=jnp.concatenate([outside, inside]))
    return total - jnp.log(2 * jnp.asarray(top_scale)) - jnp.log(2 * jnp.asarray(bottom_scale))


def gaussian_by_laplace(value: Array, top: Array, bottom: Array, top_scale: Array, bottom_scale: Array) -> Array:
    """The log-density [] of (top + u) / (bottom + v), u Gaussian and v Laplace."""
    excess = top - value * bottom
    curved = value / top_scale, excess / top_scale
    bent = 1 / bottom_scale, jnp.zeros_like(excess)
    integral = curved_integral(curved, bent, bottom, bottom_scale)
    return integral - jnp.log(top_scale) - log(2 * pi) / 2 - jnp.log(2 * bottom_scale)


def laplace_by_gaussian(value: Array, top: Array, bottom: Array, top_scale: Array, bottom_scale: Array) -> Array:
    """The log-density [] of (top + u) / (bottom + v), u Laplace and v Gaussian."""
    excess = top - value * bottom
    curved = 1 / bottom_scale, jnp.zeros_like(excess)
    bent = value / top_scale, excess / top_scale
    integral = curved_integral(curved, bent, bottom, bottom_scale)
    return integral - jnp.log(2 * top_scale) - jnp.log(bottom_scale) - log(2 * pi) / 2


def curved_integral(curved: tuple[Array, Array], bent: tuple[Array, Array], bottom: Array, scale: Array) -> Array:
    """The log of ∫ |bottom + v| exp(−(a v − c)² / 2 − |b v − d|) dv for curved = (a, c) and bent = (b, d).

    The line is cut at v = −bottom and d / b into pieces where the integrand is smooth, and each piece at its mode.
    """
    (a, c), (b, d) = curved, bent
    place = kink(d, b, scale)
    cuts = jnp.sort(jnp.stack([place, -bottom]))
    ends = jnp.concatenate([jnp.full_like(cuts[:1], -jnp.inf), cuts, jnp.full_like(cuts[:1], jnp.inf)])
    lower, upper = ends[:-1], ends[1:]
    side = jnp.where(upper <= place, -1.0, 1.0).astype(cuts.dtype) * jnp.abs(b)
    curvature = a * a
    mode = (a * c - side) / jnp.maximum(curvature, jnp.finfo(cuts.dtype).tiny)
    mode = jnp.clip(mode, lower, upper)
    slope = jnp.abs(a * (a * mode - c) + side)
    reach = 2 * DROP / (slope + jnp.sqrt(slope**2 + 2 * DROP * curvature))
    lengths = jnp.stack([-jnp.minimum(reach, mode - lower), jnp.minimum(reach, upper - mode)])
    steps = (jnp.asarray(NODES, cuts.dtype)[None, None] + 1) / 2
    points = mode[None, :, None] + lengths[:, :, None] * steps
    logs = -jnp.square(a * points - c) / 2 - jnp.abs(b * points - d)
    weights = (
        jnp.abs(lengths)[:, :, None] * jnp.abs(bottom + points) * (jnp.asarray(WEIGHTS, cuts.dtype)[None, None] / 2)
    )
    return logsumexp(logs, b=weights)


def kink(distance: Array, slope: Array, scale: Array) -> Array:
    """The place at which a line of this slope has covered a distance, at most `FAR` scales from 0."""
    level = slope == 0
    return jnp.where(level, 0.0, jnp.clip(distance / jnp.where(level, 1.0, slope), -FAR * scale, FAR * scale))


def line_integrals(rate: Array) -> tuple[Array, Array]:
    """∫ (1 − s) exp(−rate s) ds and ∫ s exp(−rate s) ds over [0, 1], elementwise, for rates of at least 0."""
    near, far = jnp.minimum(rate, SHORT), jnp.maximum(rate, SHORT)
    falling = jnp.where(rate < SHORT, series(near, 2), (1 + jnp.expm1(-far) / far) / far)
    rising = (1 - (1 + far) * jnp.exp(-far)) / far / far
    return falling, jnp.where(rate < SHORT, series(near, 1) - series(near, 2), rising)


def series(rate: Array, order: int) -> Array:
    """Σ (−rate)^k / (k + order)! over k, by Horner's scheme."""
    total = jnp.zeros_like(rate)
    for k in reversed(range(TERMS)):
        total = (1 - rate * total) / (k + order) if k else (1 - rate * total) / factorial(order)
    return total
