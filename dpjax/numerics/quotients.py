"""Densities of quotients of two independent noisy numbers, by Gaussian and Laplace noise, also of whole numbers.

A quotient of whole numbers is p / q in lowest terms if the two are m p and m q for some whole m other than 0. Its
probability is the sum over m of the probabilities of both. The log of such a product is a concave function of m, of
slopes that change at m = top / p and m = bottom / q.
"""

from collections.abc import Callable
from fractions import Fraction
from math import factorial, isfinite, log, pi, sqrt
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import erf, logsumexp

from dpjax.base import Array

__all__ = [
    "by_geometric_sums",
    "by_window",
    "gaussian_by_gaussian",
    "gaussian_by_laplace",
    "kink",
    "laplace_by_gaussian",
    "laplace_by_laplace",
    "log_sum_over_whole",
    "to_fraction",
]

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

MOST_DENOMINATOR = 10_000_000

AMBIGUOUS = 1e-3
"""The probability, at most about, with which a real number would have so small a denominator by chance."""


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
    The integral over w = bottom + v of |w| exp(−|value w − top| / top_scale − |w − bottom| / bottom_scale), in pieces
    between w = 0, bottom and top / value, on each of which the exponent is a line.
    """
    kinks = jnp.sort(jnp.stack([jnp.zeros_like(top), bottom, kink(top, value, bottom, bottom_scale)]))
    heights = -jnp.abs(line(value, top, kinks)) / top_scale - jnp.abs(kinks - bottom) / bottom_scale
    sizes = jnp.abs(kinks)
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
    curved = value / top_scale, top / top_scale
    bent = 1 / bottom_scale, bottom / bottom_scale
    integral = curved_integral(curved, bent, bottom, bottom_scale)
    return integral - jnp.log(top_scale) - log(2 * pi) / 2 - jnp.log(2 * bottom_scale)


def laplace_by_gaussian(value: Array, top: Array, bottom: Array, top_scale: Array, bottom_scale: Array) -> Array:
    """The log-density [] of (top + u) / (bottom + v), u Laplace and v Gaussian."""
    curved = 1 / bottom_scale, bottom / bottom_scale
    bent = value / top_scale, top / top_scale
    integral = curved_integral(curved, bent, bottom, bottom_scale)
    return integral - jnp.log(2 * top_scale) - jnp.log(bottom_scale) - log(2 * pi) / 2


def curved_integral(curved: tuple[Array, Array], bent: tuple[Array, Array], bottom: Array, scale: Array) -> Array:
    """The log of ∫ |w| exp(−(a w − c)² / 2 − |b w − d|) dw for curved = (a, c) and bent = (b, d).

    The line is cut at w = 0 and d / b into pieces where the integrand is smooth, and each piece at its mode. Places are
    distances from d / b if the exponent is largest there, else from c / a: a w and c may be large and alike.
    """
    (a, c), (b, d) = curved, bent
    (middle, is_curved), place = root_of(a, c), kink(d, b, bottom, scale)
    at_bend = ~is_curved | (jnp.abs(a * line(a, c, place)) <= jnp.abs(b))
    origin = jnp.where(at_bend, place, middle)
    rest = jnp.where(at_bend, -line(a, c, place), 0.0)
    is_near, place = (b != 0) & (place == root_of(b, d)[0]), place - origin
    cuts = jnp.sort(jnp.stack([place, -origin]))
    ends = jnp.concatenate([jnp.full_like(cuts[:1], -jnp.inf), cuts, jnp.full_like(cuts[:1], jnp.inf)])
    lower, upper = ends[:-1], ends[1:]
    side = jnp.where(upper <= place, -1.0, 1.0).astype(cuts.dtype) * jnp.abs(b)
    curvature = a * a
    mode = (a * rest - side) / jnp.maximum(curvature, jnp.finfo(cuts.dtype).tiny)
    mode = jnp.clip(mode, lower, upper)
    slope = jnp.abs(a * (a * mode - rest) + side)
    reach = 2 * DROP / (slope + jnp.sqrt(slope**2 + 2 * DROP * curvature))
    lengths = jnp.stack([-jnp.minimum(reach, mode - lower), jnp.minimum(reach, upper - mode)])
    steps = (jnp.asarray(NODES, cuts.dtype)[None, None] + 1) / 2
    points = mode[None, :, None] + lengths[:, :, None] * steps
    bend = jnp.where(is_near, b * (points - place), b * (origin + points) - d)
    logs = -jnp.square(a * points - rest) / 2 - jnp.abs(bend)
    weights = (
        jnp.abs(lengths)[:, :, None] * jnp.abs(origin + points) * (jnp.asarray(WEIGHTS, cuts.dtype)[None, None] / 2)
    )
    return logsumexp(logs, b=weights)


def kink(distance: Array, slope: Array, centre: Array, scale: Array) -> Array:
    """The place at which a line of this slope has covered a distance, at most `FAR` scales from a centre."""
    level = slope == 0
    far = FAR * scale
    return jnp.where(level, centre, jnp.clip(distance / jnp.where(level, 1.0, slope), centre - far, centre + far))


def line(slope: Array, shift: Array, place: Array) -> Array:
    """slope place − shift, elementwise, by the place where it is 0: there both products may be large and alike."""
    root, has_root = root_of(slope, shift)
    return jnp.where(has_root, slope * (place - root), slope * place - shift)


def root_of(slope: Array, shift: Array) -> tuple[Array, Array]:
    """shift / slope if that is a number, else 0, and whether it is, elementwise."""
    root = shift / jnp.where(slope == 0, 1.0, slope)
    has_root = (slope != 0) & jnp.isfinite(root)
    return jnp.where(has_root, root, 0.0), has_root


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


def to_fraction(value: float, precision: float) -> Fraction | None:
    """The quotient of whole numbers that is a float of this relative precision; None if there is none."""
    if not isfinite(value):
        return None
    size = max(abs(value), 1e-12)
    most = min(MOST_DENOMINATOR, max(1, int(sqrt(AMBIGUOUS / (precision * size)))))
    found = Fraction(value).limit_denominator(most)
    return found if abs(float(found) - value) <= 2 * precision * size else None


def by_geometric_sums(
    log_terms: Callable[[Array], Array],
    kinks: tuple[Array, Array],
    slopes: tuple[Array, Array],
    sized: bool = False,
    after: int | None = None,
) -> Array:
    """The log of the sum [] over whole m but 0 of terms whose logs fall on both sides of two kinks, by two slopes.

    Between the kinks, and 0, the logs are straight lines, so that each piece is a geometric sum. If it is `sized`, each
    term is multiplied by abs(m). If `after` is given, the sum is over m above that alone.
    """
    start = after or 0
    cuts = jnp.stack([*kinks, jnp.full_like(kinks[0], start)])
    ceilings = jnp.ceil(jnp.sort(cuts if after is None else jnp.maximum(cuts, start)))
    first = jnp.where(ceilings == start, start + 1.0, ceilings)  # where the sum starts is a cut, and no term
    last = ceilings[1:] - 1
    falling = sum(slopes)
    ends = (ceilings[0] - 1, first[2])[0 if after is None else 1 :]
    beyond = 1 / jnp.expm1(falling) if sized else 0.0
    pieces = [log_terms(end) - jnp.log(-jnp.expm1(-falling)) + log_size(end, beyond, sized) for end in ends]
    for low, high in zip(first[:2], last, strict=True):
        count = jnp.maximum(high - low + 1, 0)
        middle = (low + high) / 2
        rate = jnp.abs(sum(jnp.sign(middle - kink) * slope for kink, slope in zip(kinks, slopes, strict=True)))
        flat = rate == 0
        safe = jnp.where(flat, 1.0, rate)
        size = jnp.where(flat, count, jnp.expm1(-safe * count) / jnp.expm1(-safe))
        logs = log_terms(low), log_terms(high)
        falls = logs[0] >= logs[1]
        steps = jnp.where(falls == (low > 0), 1.0, -1.0) * mean_place(rate, count) if sized else 0.0
        top = jnp.maximum(*logs) + log_size(jnp.where(falls, low, high), steps, sized)
        pieces.append(jnp.where(count > 0, top + jnp.log(jnp.maximum(size, 1)), -jnp.inf))
    return logsumexp(jnp.stack(pieces))


def log_size(place: Array, steps: Array | float, sized: bool) -> Array | float:
    """The log of abs(place) + steps, or 0 if terms have no size."""
    return jnp.log(jnp.maximum(jnp.abs(place) + steps, 1.0)) if sized else 0.0


def mean_place(rate: Array, count: Array) -> Array:
    """The mean of j = 0, ..., count - 1 with weights exp(-rate j), for rates of at least 0.

    It is 1 / (e^rate - 1) - count / (e^(count rate) - 1), in which both poles at 0 cancel.
    """

    def without_pole(exponent: Array) -> Array:
        near, far = jnp.minimum(exponent, SHORT), jnp.maximum(exponent, SHORT)
        square = near * near
        bernoulli = 1 / 12 - square * (1 / 720 - square * (1 / 30240 - square * (1 / 1209600 - square / 47900160)))
        return jnp.where(exponent < SHORT, near * bernoulli - 0.5, 1 / jnp.expm1(far) - 1 / far)

    return without_pole(rate) - count * without_pole(rate * count)


def by_window(log_terms: Callable[[Array], Array], mode: Array, reach: int) -> Array:
    """The log of the sum [] over whole m but 0 of terms that are negligible further from their mode than `reach`."""
    places = jnp.round(jax.lax.stop_gradient(mode)) + jnp.arange(-reach, reach + 1, dtype=mode.dtype)
    return logsumexp(jnp.where(places == 0, -jnp.inf, log_terms(places)))


def log_sum_over_whole(
    log_terms: Callable[[Array], Array], reach: int, power: int, dtype: Any, positive: bool
) -> Array:
    """The log of the sum [] over whole m but 0, or over positive m, of abs(m)^power times terms given by their logs.

    For m >= 2 and for m <= -2 they are log-concave, and followed up to `reach` from their mode.
    """
    found = []
    for sign in (1.0,) if positive else (1.0, -1.0):

        def sized(size: Array, sign: float = sign) -> Array:
            return log_terms(sign * size) + power * jnp.log(size)

        places = jax.lax.stop_gradient(mode_of(sized, dtype)) + jnp.arange(-reach, reach + 1, dtype=dtype)
        found += [sized(jnp.ones(1, dtype)), jnp.where(places >= 2, sized(jnp.maximum(places, 1)), -jnp.inf)]
    return logsumexp(jnp.concatenate(found))


def mode_of(log_terms: Callable[[Array], Array], dtype: Any) -> Array:
    """The whole m [] of at least 2 at which terms that rise and then fall are largest, by bisection."""
    halvings = jnp.finfo(dtype).nmant

    def halve(_: Any, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = ends
        middle = jnp.floor((low + high) / 2)
        here, after = log_terms(jnp.stack([middle, middle + 1]))
        rises = after > here
        return jnp.where(rises, middle + 1, low), jnp.where(rises, high, middle)

    ends = jnp.asarray(2, dtype), jnp.asarray(2.0 ** (halvings - 1), dtype)
    return jax.lax.fori_loop(0, halvings, halve, ends)[0]
