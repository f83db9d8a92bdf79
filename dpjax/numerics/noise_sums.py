"""Sums of independent noise of several sources: exact log-densities and tails, at any distance from zero.

Each distribution is symmetric about zero: its methods take distances of at least 0. All terms that are added up are
positive, so that nothing cancels.
"""

from collections.abc import Callable, Sequence
from math import ceil, lgamma, log, pi, sqrt
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dpjax.base import Array
from dpjax.numerics.tails import LOG_HALF, log_complement
from dpjax.numerics.theta import log_theta, log_upper_theta

__all__ = ["EqualLaplaces", "IntegerSum", "LaplacePair", "half_width", "log_normal", "log_sum", "widest"]

NUM_BITS = 31
"""Distances are below 2³¹."""

NORMAL_REACH = 9.0
"""Standard deviations beyond which a Normal distribution has no mass in double precision."""


MOST_ABOVE = 60.0
"""How far a term may be above the largest near the mode: it is, by rounding, where logarithms are above 1e9."""


class LaplacePair(NamedTuple):
    """Laplace noise of one scale plus Laplace noise of another, or of the same."""

    first: Array
    second: Array

    def log_density(self, distance: Array) -> Array:
        """exp(-y) (1 + y (1 - exp(-δ)) / δ) / 2(b + c), in logarithms; b >= c, y = distance / b, δ = y (b - c) / c."""
        wide, ratio = self._wide(), self._mean_decay(distance)
        return -distance / wide + jnp.log1p(ratio) - jnp.log(2 * (self.first + self.second))

    def log_tail(self, distance: Array) -> Array:
        """log P(noise >= distance): exp(-y) (1 + y c / (b + c) · (1 - exp(-δ)) / δ) / 2."""
        wide = self._wide()
        share = jnp.minimum(self.first, self.second) / (self.first + self.second)
        return -distance / wide + jnp.log1p(share * self._mean_decay(distance)) + LOG_HALF

    def _wide(self) -> Array:
        return jnp.maximum(self.first, self.second)

    def _mean_decay(self, distance: Array) -> Array:
        """y (1 - exp(-δ)) / δ."""
        wide, narrow = self._wide(), jnp.minimum(self.first, self.second)
        scaled = distance / wide
        gap = scaled * (wide - narrow) / narrow
        safe = jnp.where(gap > 0, gap, 1.0)
        return scaled * jnp.where(gap > 0, -jnp.expm1(-safe) / safe, 1.0)


class EqualLaplaces(NamedTuple):
    """The sum of m draws of Laplace noise of one scale: the difference of two Gamma(m) variables."""

    scale: Array
    number: int

    def log_density(self, distance: Array) -> Array:
        """The log-density: exp(-y) times a polynomial of degree m - 1 in y = distance / scale."""
        place = distance / self.scale
        return log_polynomial(log_gamma_difference(self.number), place) - place - jnp.log(self.scale)

    def log_tail(self, distance: Array) -> Array:
        """log P(noise >= distance): the integral of t^p exp(-t) beyond y is p! exp(-y) Σ_(i <= p) y^i / i!."""
        place, log_factorials = distance / self.scale, [lgamma(power + 1) for power in range(self.number)]
        terms = np.add(log_gamma_difference(self.number), log_factorials)
        logs = np.logaddexp.accumulate(terms[::-1])[::-1] - log_factorials
        return log_polynomial(logs.tolist(), place) - place


def log_gamma_difference(number: int) -> list[float]:
    """The log-coefficients [m] of exp(y) times the density of the difference of two Gamma(m) variables at y >= 0."""

    def log_coefficient(power: int) -> float:
        rest = number - 1 - power
        log_weight = lgamma(number + rest) - lgamma(power + 1) - lgamma(rest + 1) - lgamma(number)
        return log_weight - (number + rest) * log(2)

    return [log_coefficient(power) for power in range(number)]


def log_polynomial(log_coefficients: Sequence[float], place: Array) -> Array:
    """The logarithm of a polynomial of positive coefficients [m] at a place >= 0.

    It is that of place / m up to m, and one of m / place beyond. So neither coefficients nor powers leave the range of
    floats.
    """
    degree, middle = len(log_coefficients) - 1, float(len(log_coefficients))
    logs = np.asarray(log_coefficients, float) + np.arange(degree + 1) * log(middle)
    unit = jnp.maximum(place, middle)
    up, down = place / unit, middle / unit
    total, power = jnp.zeros_like(place), jnp.ones_like(place)
    for coefficient in np.exp(logs - logs.max())[::-1].tolist():
        total, power = total * up + coefficient * power, power * down
    return degree * jnp.log(unit / middle) + float(logs.max()) + jnp.log(total)


def log_normal(place: Array) -> Array:
    """The log-density of a standard Normal."""
    return -jnp.square(place) / 2 - log(2 * pi) / 2


class IntegerSum(NamedTuple):
    """Discrete Laplace noise of several scales plus discrete Gaussian noise of several scales; distances are whole.

    Attributes
    ----------
    laplaces
        The scales of the discrete Laplace noise.
    gaussians
        Those of the discrete Gaussian noise; the last one may be as large as it likes unless there is Laplace noise.
    widths
        How far from its mode each Gaussian but such a last one is summed over.
    """

    laplaces: tuple[Array, ...]
    gaussians: tuple[Array, ...]
    widths: tuple[int, ...]

    def log_density(self, distance: Array) -> Array:
        """The log-probability of the distance."""
        return self._sum_over(distance, lambda rest, place: rest.log_density(jnp.abs(place)), self._log_alone)

    def log_tail(self, distance: Array) -> Array:
        """log P(noise >= distance), for distances of at least 1."""
        return self._sum_over(distance, lambda rest, place: rest.log_at_least(place), self._log_tail_alone)

    def log_at_least(self, place: Array) -> Array:
        """log P(noise >= place), for a place of either sign."""
        below = place <= 0
        tail = self.log_tail(jnp.where(below, 1 - place, place))
        return jnp.where(below, log_complement(tail), tail)

    def _sum_over(self, distance: Array, inner: Callable[..., Array], alone: Callable[[Array], Array]) -> Array:
        """The sum over the first Gaussian's noise, near its mode given the distance."""
        if not self.widths:
            return alone(distance)
        first, rest = self.gaussians[0], IntegerSum(self.laplaces, self.gaussians[1:], self.widths[1:])
        centre = jnp.round(self._mode(distance))

        def log_term(place: Array, left: Array) -> Array:
            return -jnp.square(place / first) / 2 + inner(rest, left)

        return log_sum(log_term, distance, centre, self.widths[0]) - log_theta(first)

    def _mode(self, distance: Array) -> Array:
        """About where the first Gaussian's noise is given the distance: its share, until Laplace noise takes over."""
        own = jnp.square(self.gaussians[0])
        share = distance * own / sum(jnp.square(scale) for scale in self.gaussians)
        return jnp.minimum(share, own / widest(self.laplaces)) if self.laplaces else share

    def _log_alone(self, distance: Array) -> Array:
        if self.laplaces:
            return log_laplaces(distance, self.laplaces, tail=False)
        (scale,) = self.gaussians
        return -jnp.square(distance / scale) / 2 - log_theta(scale)

    def _log_tail_alone(self, distance: Array) -> Array:
        if self.laplaces:
            return log_laplaces(distance, self.laplaces, tail=True)
        (scale,) = self.gaussians
        return log_upper_theta(distance, scale) - log_theta(scale)


def log_sum(log_term: Callable[[Array, Array], Array], distance: Array, centre: Array, width: int) -> Array:
    """The logarithm of the sum of log-concave terms at the whole numbers within `width` of about their mode.

    A term takes the whole number and what it leaves of the distance. That is taken from what the middle leaves, since
    floats above 2^24 or 2^53 do not hold every whole number.
    """
    left = distance - centre

    def log_at(offset: Array) -> Array:
        return log_term(centre + offset, left - offset)

    peak = jax.lax.stop_gradient(jnp.max(jax.vmap(log_at)(jnp.asarray([-1.0, 0.0, 1.0], centre.dtype)), axis=0))
    peak = jnp.where(jnp.isfinite(peak), peak, 0.0)

    def add(step: int, total: Array) -> Array:
        term = log_at(jnp.asarray(step, centre.dtype) - width)
        return total + jnp.exp(jnp.minimum(term - peak, MOST_ABOVE))

    return peak + jnp.log(jax.lax.fori_loop(0, 2 * width + 1, add, jnp.zeros_like(peak)))


def half_width(scale: float, num_laplaces: int) -> int:
    """How far from `IntegerSum._mode` Gaussian noise of a scale is summed over: beyond it double precision has no mass.

    The sum's terms are log-concave like the Gaussian at least, and m Laplaces move the mode by less than √m scales.
    """
    return ceil((NORMAL_REACH + sqrt(num_laplaces)) * scale) + 1


def widest(scales: Sequence[Array]) -> Array:
    """The elementwise largest of several scales."""
    largest = jnp.asarray(scales[0])
    for scale in scales[1:]:
        largest = jnp.maximum(largest, scale)
    return largest


def log_laplaces(distance: Array, scales: Sequence[Array], *, tail: bool) -> Array:
    """log P(S = k), or log P(S >= k), of a sum S of m discrete Laplace variables, for whole k >= 0.

    Notes
    -----
    With ratios q_i = exp(-1 / b_i) and complete homogeneous polynomials h_l of them, P(S = k) is Π (1 - q_i)² times
    Σ_l h_l h_(k + l), as S is the difference of two sums of geometric variables. And h_l is the last entry of the first
    row of T^(l + m - 1), where T has the ratios on its diagonal and ones above it. So the sum is that entry of
    T^(k + m - 1) Π (I - q_i T)^(-1), in which every number is positive. T^(k + m - 1) is applied bit by bit. Ratios are
    divided by the largest, and what is above the diagonal is made as small as 1 / b, so that nothing overflows.
    """
    m, wide = len(scales), widest(scales)
    gaps = [1 / jnp.asarray(scale) - 1 / wide for scale in scales]
    step = -jnp.expm1(-1 / wide)
    vector = spread_vector(scales, step, wide, tail)
    log_constant = sum(jnp.log(-jnp.expm1(-1 / jnp.asarray(scale))) for scale in scales) - (m - 1) * jnp.log(step)
    log_constant = log_constant - (jnp.log(step) if tail else 0.0)
    return log_constant - distance / wide + jnp.log(apply_power(distance + (m - 1), gaps, step, vector))


def spread_vector(scales: Sequence[Array], step: Array, wide: Array, tail: bool) -> list[Array]:
    """The last column [m] of Π (1 - q_j) (I - q_j T)^(-1), and of (1 - q) (I - T)^(-1) for a tail, q the largest."""
    zero, one = jnp.zeros_like(wide), jnp.ones_like(wide)
    vector = [zero] * (len(scales) - 1) + [one]
    rates = [1 / jnp.asarray(scale) for scale in scales]
    others = [*rates, zero] if tail else rates
    for other in others:
        own = step if tail and other is zero else -jnp.expm1(-other)
        above = jnp.exp(-other - 1 / wide) * step
        last = zero
        for place in reversed(range(len(scales))):
            last = (own * vector[place] + above * last) / -jnp.expm1(-other - rates[place])
            vector[place] = last
    return vector


def apply_power(power: Array, gaps: Sequence[Array], step: Array, vector: list[Array]) -> Array:
    """The first entry of B^power v, where B has exp(-gap) on its diagonal and `step` above it."""
    m, shape = len(gaps), jnp.broadcast_shapes(jnp.shape(power), jnp.shape(step))
    if m == 1:
        return jnp.broadcast_to(vector[0], shape)
    dtype = power.dtype
    gap = jnp.stack([jnp.broadcast_to(each, jnp.shape(step)) for each in gaps]).astype(dtype)
    off = jnp.zeros((m, m, *jnp.shape(step)), dtype).at[np.arange(m - 1), np.arange(1, m)].set(step.astype(dtype))
    start = jnp.stack([jnp.broadcast_to(each, shape).astype(dtype) for each in vector])

    def matrix(bit: Array | int, off: Array) -> Array:
        # The diagonal of B^(2^bit) is computed anew, since squaring would double its error each time.
        diagonal = jnp.exp(-gap * jnp.asarray(2.0, dtype) ** bit)
        return off.at[np.arange(m), np.arange(m)].set(diagonal)

    def advance(bit: Array | int, carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        off, column, left = carry
        whole = matrix(bit, off)
        half = jnp.floor(left / 2)
        rows = [sum(whole[i, j] * column[j] for j in range(i, m)) for i in range(m)]
        column = jnp.where(left > 2 * half, jnp.stack(rows), column)
        square = [[sum(whole[i, k] * whole[k, j] for k in range(i, j + 1)) for j in range(i, m)] for i in range(m)]
        for i in range(m):
            for j in range(i + 1, m):
                off = off.at[i, j].set(square[i][j - i])
        return off, column, half

    start_left = jnp.broadcast_to(power, shape)
    return jax.lax.fori_loop(0, NUM_BITS, advance, (off, start, start_left))[1][0]
