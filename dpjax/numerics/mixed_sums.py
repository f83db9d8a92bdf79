"""Sums of whole noise and Normal noise: exact log-densities and tails, by a sum over the whole numbers."""

from functools import reduce
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from dpjax.base import Array
from dpjax.numerics.noise_sums import IntegerSum, log_normal, log_sum
from dpjax.numerics.tails import log_complement, log_mills

__all__ = ["NormalLattice"]

NODES, WEIGHTS = np.polynomial.legendre.leggauss(16)
NARROW = 1.0
"""Intervals up to this width, in standard deviations, are integrated over by the nodes."""
STEEP = 8.0
"""Unless the density falls by more than this there, in logarithms."""


class NormalLattice(NamedTuple):
    """Whole noise of any kind plus Normal noise, symmetric about zero: distances are at least 0, and need not be whole.

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
        log_scale = jnp.log(self.scale)

        def log_term(place: Array, rest: Array) -> Array:
            return self.whole.log_density(jnp.abs(place)) + (log_normal(jnp.abs(rest) / self.scale) - log_scale)

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
