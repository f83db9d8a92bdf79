"""Sums of Laplace noise of several scales, and of Laplace and Normal noise: log-densities and tails.

Each distribution is symmetric about zero: its methods take distances of at least 0.
"""

from collections.abc import Callable, Sequence
from functools import reduce
from math import log, sqrt
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from dpjax.base import Array
from dpjax.numerics.noise_sums import widest
from dpjax.numerics.tails import erfcx

__all__ = ["LaplaceNormal", "UnequalLaplaces"]

TERMS = 18
"""Terms of the exponential series of a matrix of norm 1: the next one is below 1e-17."""

MAX_DOUBLINGS = 48
"""Most times that places are divided by 2, to a norm of 1/2: up to 1e14 of the narrowest scale."""


class UnequalLaplaces(NamedTuple):
    """The sum of m draws of Laplace noise of any scales, equal or not.

    Notes
    -----
    It is the difference of two sums of Exponential variables, which are times to absorption of a Markov chain through m
    states. If Q is the generator of that chain, with rates λ, the density is the first entry of
    exp(Q x) Π λ_i (λ_i I - Q)^(-1) λ_m e_m. Every number in it is positive. The exponential is that of x / 2^k, by its
    series, squared k times.
    """

    scales: tuple[Array, ...]

    def log_density(self, distance: Array) -> Array:
        """The log-density."""
        return self._log(distance, tail=False) - jnp.log(widest(self.scales))

    def log_tail(self, distance: Array) -> Array:
        """log P(noise >= distance)."""
        return self._log(distance, tail=True)

    def _log(self, distance: Array, *, tail: bool) -> Array:
        wide = widest(self.scales)
        place = distance / wide
        rates = [jnp.broadcast_to(wide / jnp.asarray(scale), place.shape).astype(place.dtype) for scale in self.scales]
        unit = jnp.maximum(place * reduce(jnp.maximum, rates), 1.0)
        row = exponential_row(rates, place, unit)
        terms = [
            entry * weight * unit ** (power + 1 - len(rates))
            for power, (entry, weight) in enumerate(zip(row, absorbed(rates, tail=tail), strict=True))
        ]
        return (len(rates) - 1) * jnp.log(unit) + jnp.log(reduce(jnp.add, terms)) - place


def absorbed(rates: Sequence[Array], *, tail: bool) -> list[Array]:
    """The vector [m] of Π λ_i (λ_i I - Q)^(-1) λ_m e_m, and (-Q)^(-1) times it for a tail."""
    vector = [jnp.zeros_like(rates[0])] * (len(rates) - 1) + [rates[-1]]
    for other in rates:
        last = jnp.zeros_like(other)
        for place in reversed(range(len(rates))):
            last = (other * vector[place] + rates[place] * last) / (other + rates[place])
            vector[place] = last
    if tail:
        last = jnp.zeros_like(rates[0])
        for place in reversed(range(len(rates))):
            last = vector[place] / rates[place] + last
            vector[place] = last
    return vector


Triangle = list[list[Array]]
"""The entries of an upper triangular matrix, in row i those from the diagonal on."""


def multiply(one: Triangle, other: Triangle) -> Triangle:
    """The product of two upper triangular matrices."""
    m = len(one)
    return [
        [sum((one[i][k - i] * other[k][j - k] for k in range(i, j + 1)), jnp.zeros(())) for j in range(i, m)]
        for i in range(m)
    ]


def exponential_row(rates: Sequence[Array], place: Array, unit: Array) -> list[Array]:
    """The first row [m] of exp((Q + I) x), its entry j divided by `unit` ^ j, so that none overflows.

    The least rate is 1: the diagonal has the numbers exp((1 - λ) x), which are computed anew for each power.
    """
    m, fast = len(rates), reduce(jnp.maximum, rates)
    count = jnp.ceil(jnp.log2(jnp.maximum(2 * place * fast, 1.0)))
    step = place * 2.0 ** (-count)
    # Shifted by the largest rate all entries are positive, and so are all terms of the series.
    shifted = [
        [
            (fast - rates[i]) * step if j == i else rates[i] * step / unit if j == i + 1 else 0 * step
            for j in range(i, m)
        ]
        for i in range(m)
    ]
    shrink = jnp.exp(-(fast - 1) * step)
    start = [[entry * shrink for entry in row] for row in series(shifted)]

    def double(turn: Any, matrix: Triangle) -> Triangle:
        size = step * 2.0 ** jnp.asarray(turn, step.dtype)
        own = [[jnp.exp((1 - rates[i]) * size), *matrix[i][1:]] for i in range(m)]
        squared = multiply(own, own)
        return [
            [jnp.where(turn < count, new, old) for new, old in zip(*rows, strict=True)]
            for rows in zip(squared, matrix, strict=True)
        ]

    row = jax.lax.fori_loop(0, MAX_DOUBLINGS, double, start)[0]
    return [jnp.exp((1 - rates[0]) * place), *row[1:]]


def series(matrix: Triangle) -> Triangle:
    """The exponential of an upper triangular matrix of positive entries and a norm of at most 1."""
    ones = [[jnp.full_like(entry, float(place == 0)) for place, entry in enumerate(row)] for row in matrix]
    total = ones
    for term in range(TERMS, 0, -1):
        product = multiply(matrix, total)
        total = [
            [one + entry / term for one, entry in zip(*rows, strict=True)] for rows in zip(ones, product, strict=True)
        ]
    return total


class LaplaceNormal(NamedTuple):
    """The sum of Normal noise and Laplace noise.

    Notes
    -----
    Laplace noise of scale b beside N(0, σ²) has the Normal-Laplace distribution of Reed (2006). With λ = σ / b,
    r = distance / σ and E(x) = exp(x² / 2) erfc(x / √2), its density is exp(-r² / 2) (E(λ + r) + E(λ - r)) / 4b, and
    P(noise >= distance) is exp(-r² / 2) (2 E(r) - E(λ + r) + E(λ - r)) / 4. For r > λ, E(λ - r) is
    2 exp((r - λ)² / 2) - E(r - λ). So exp(w (w / 2 - r)) with w = min(λ, r) is taken out of both, and what is left is
    bounded.
    """

    laplace: Array
    normal: Array

    def log_density(self, distance: Array) -> Array:
        """The log-density."""
        return self._log(distance, bounded_density) - jnp.log(4 * self.laplace)

    def log_tail(self, distance: Array) -> Array:
        """log P(noise >= distance)."""
        return self._log(distance, bounded_tail) - log(4)

    def _log(self, distance: Array, bounded: Callable[..., Array]) -> Array:
        place, tilt = distance / self.normal, self.normal / self.laplace
        least = jnp.minimum(tilt, place)
        return least * (least / 2 - place) + jnp.log(bounded(tilt, place))


def bounded_density(tilt: Array, place: Array) -> Array:
    """4b times the density of one Laplace beside Normal noise, divided by exp(w (w / 2 - r))."""
    return add_near(tilt - place, scaled_tail(tilt + place))


def bounded_tail(tilt: Array, place: Array) -> Array:
    """4 P(noise >= distance) of it, likewise."""
    return add_near(tilt - place, 2 * scaled_tail(place) - scaled_tail(tilt + place))


def add_near(near: Array, others: Array) -> Array:
    """E(near) + others, divided by exp(near² / 2) where near < 0."""
    tail = scaled_tail(jnp.abs(near))
    return jnp.where(near < 0, 2 + jnp.exp(-jnp.square(near) / 2) * (others - tail), others + tail)


def scaled_tail(place: Array) -> Array:
    """E(x) = exp(x² / 2) erfc(x / √2) for x >= 0."""
    return erfcx(place * sqrt(0.5))
