"""Sums of whole noise and real noise: exact log-densities and tails, by a sum over the whole numbers.

Each distribution is symmetric about zero: its methods take distances of at least 0, which need not be whole.
"""

from collections.abc import Callable
from functools import reduce
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from dpjax.base import Array
from dpjax.numerics.noise_sums import IntegerSum, log_normal, log_sum
from dpjax.numerics.tails import LOG_HALF, log_complement, log_mills

__all__ = ["LaplaceLattice", "LaplaceNoise", "NormalLattice", "NormalNoise", "WholeAndReal"]

NODES, WEIGHTS = np.polynomial.legendre.leggauss(16)
NARROW = 1.0
"""Intervals up to this width, in standard deviations, are integrated over by the nodes."""
STEEP = 8.0
"""Unless the density falls by more than this there, in logarithms."""


class NormalNoise(NamedTuple):
    """Normal noise of standard deviation σ."""

    scale: Array

    def log_density(self, distance: Array) -> Array:
        """The log-density."""
        return log_normal(distance / self.scale) - jnp.log(self.scale)

    def log_tail(self, distance: Array) -> Array:
        """log P(noise >= distance)."""
        place = distance / self.scale
        return log_normal(place) + log_mills(place)


class LaplaceNoise(NamedTuple):
    """Laplace noise of scale b."""

    scale: Array

    def log_density(self, distance: Array) -> Array:
        """The log-density."""
        return -distance / self.scale - jnp.log(2 * self.scale)

    def log_tail(self, distance: Array) -> Array:
        """log P(noise >= distance)."""
        return -distance / self.scale + LOG_HALF


class LaplaceLattice(NamedTuple):
    """Discrete Laplace noise of scale t plus Laplace noise of scale b.

    Notes
    -----
    With q = exp(-1 / t), p = exp(-1 / b), n the whole part of the distance x and φ the rest, the density is
    (1 - q) / (1 + q) / 2b times p^x q p / (1 - q p) + p^φ Σ_(k <= n) q^k p^(n - k) + q^(n + 1) p^(1 - φ) / (1 - q p):
    the terms of negative whole noise, of noise up to x, and of noise beyond. All are positive, and are added up in
    logarithms: where both scales are small, each of them underflows.
    """

    whole: Array
    real: Array

    def log_density(self, distance: Array) -> Array:
        """The log-density."""
        below, beyond, _, log_weight = self._terms(distance)
        return log_weight + jnp.logaddexp(below, beyond) - jnp.log(2 * self.real)

    def log_tail(self, distance: Array) -> Array:
        """log P(noise >= distance): of whole noise beyond x, all but the part that real noise takes back."""
        below, beyond, all_beyond, log_weight = self._terms(distance)
        kept = all_beyond + jnp.log1p(-jnp.exp(beyond - all_beyond) / 2)
        return log_weight + jnp.logaddexp(below + LOG_HALF, kept)

    def _terms(self, distance: Array) -> tuple[Array, Array, Array, Array]:
        """Logarithms of the first two terms together, of the third, of Σ_(k > n) q^k, and the weight of whole noise."""
        number = jnp.floor(distance)
        rest = distance - number
        t, b = 1 / self.whole, 1 / self.real
        least, gap = jnp.minimum(t, b), jnp.abs(t - b)
        safe = jnp.where(gap > 0, gap, 1.0)
        ratios = jnp.where(gap > 0, jnp.expm1(-(number + 1) * safe) / jnp.expm1(-safe), number + 1)
        log_either = log_complement(-t - b)
        between = jnp.log(ratios) - number * least - rest * b
        negative = -number * b - rest * b - t - b - log_either
        after = -(number + 1) * t
        beyond = after - (1 - rest) * b - log_either
        return jnp.logaddexp(negative, between), beyond, after - log_complement(-t), jnp.log(jnp.tanh(t / 2))


class WholeAndReal(NamedTuple):
    """Discrete Gaussian noise plus real noise of any kind with a log-concave density.

    Attributes
    ----------
    whole
        The discrete Gaussian noise, without Laplace noise.
    real
        The real noise.
    normal
        The standard deviation of the Normal noise in it, or 0.
    tail
        The scale of its widest Laplace noise; ∞ if there is none.
    width
        How far from its mode the whole noise is summed over.
    """

    whole: IntegerSum
    real: Any
    normal: Array | float
    tail: Array | float
    width: int

    def log_density(self, distance: Array) -> Array:
        """The log-density."""
        return self._sum(distance, lambda rest: self.real.log_density(jnp.abs(rest)))

    def log_tail(self, distance: Array) -> Array:
        """log P(noise >= distance)."""
        return self._sum(distance, lambda rest: at_least(self.real.log_tail, rest))

    def _sum(self, distance: Array, of_rest: Callable[[Array], Array]) -> Array:
        own = sum((jnp.square(scale) for scale in self.whole.gaussians), jnp.zeros(()))
        # Real noise takes its share, until Laplace noise takes all that is left.
        mode = jnp.minimum(distance * own / (own + jnp.square(self.normal)), own / self.tail)

        def log_term(place: Array, rest: Array) -> Array:
            return self.whole.log_density(jnp.abs(place)) + of_rest(rest)

        return log_sum(log_term, distance, jnp.round(mode), self.width)


class NormalLattice(NamedTuple):
    """Whole noise of any kind plus Normal noise.

    Attributes
    ----------
    whole
        The whole noise.
    scale
        The standard deviation of the Normal noise.
    width
        How far from its mode the Normal noise is summed over.
    """

    whole: IntegerSum
    scale: Array
    width: int

    def log_density(self, distance: Array) -> Array:
        """The log-density."""
        normal = NormalNoise(self.scale)

        def log_term(place: Array, rest: Array) -> Array:
            return self.whole.log_density(jnp.abs(place)) + normal.log_density(jnp.abs(rest))

        return log_sum(log_term, distance, self._centre(distance), self.width)

    def log_tail(self, distance: Array) -> Array:
        """log P(noise >= distance): Σ_k P(whole >= k) P(x - k <= normal < x - k + 1)."""

        def log_term(place: Array, rest: Array) -> Array:
            return self.whole.log_at_least(place) + log_interval(rest / self.scale, 1 / self.scale)

        return log_sum(log_term, distance, self._centre(distance), self.width)

    def _centre(self, distance: Array) -> Array:
        """About where the whole noise is given the distance."""
        own, others = jnp.square(self.scale), [jnp.square(scale) for scale in self.whole.gaussians]
        mode = distance * own / sum(others, own)
        for scale in self.whole.laplaces:
            mode = jnp.minimum(mode, own / scale)
        return jnp.round(distance - mode)


def at_least(log_tail: Callable[[Array], Array], place: Array) -> Array:
    """log P(noise >= place) for a place of either sign."""
    tail = log_tail(jnp.abs(place))
    return jnp.where(place < 0, log_complement(tail), tail)


def log_interval(place: Array, width: Array) -> Array:
    """log P(place <= X < place + width) of a standard Normal X."""
    lower = jnp.maximum(place, -place - width)  # by symmetry: the middle is at least 0
    is_flat = (width <= NARROW) & (lower * width <= STEEP)
    own, start = jnp.minimum(width, NARROW), jnp.where(is_flat, lower, 0.0)
    offsets = [own * (1 + node) / 2 for node in NODES.tolist()]
    terms = [
        weight / 2 * jnp.exp(-offset * (start + offset / 2))
        for weight, offset in zip(WEIGHTS.tolist(), offsets, strict=True)
    ]
    by_nodes = log_normal(start) + jnp.log(own * reduce(jnp.add, terms))
    return jnp.where(is_flat, by_nodes, wide_interval(lower, width))


def wide_interval(lower: Array, width: Array) -> Array:
    """The same by the difference of two tails, for wide intervals with a middle of at least 0."""
    start, end = jnp.maximum(lower, 0.0), lower + width
    ratio = log_mills(end) - log_mills(start) - (end - start) * (start + end) / 2
    outside = log_normal(start) + log_mills(start) + log_complement(jnp.minimum(ratio, -1e-30))
    below = jnp.minimum(lower, 0.0)
    both = jnp.exp(log_normal(below) + log_mills(-below)) + jnp.exp(log_normal(end) + log_mills(end))
    return jnp.where(lower >= 0, outside, jnp.log1p(-jnp.minimum(both, 1.0)))
