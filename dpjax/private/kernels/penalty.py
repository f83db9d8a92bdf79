"""The penalty acceptance test on a noisy log-likelihood ratio, and the ratio that every acceptance test asks for."""

from collections.abc import Callable
from math import inf
from typing import NamedTuple

import jax.numpy as jnp

from dpjax.base import Array
from dpjax.private.accounting.query import Query
from dpjax.private.fixed_point import Limbs
from dpjax.private.noise import Noise
from dpjax.private.sums.clipped import ClippedSum, clipped_ratios
from dpjax.private.targets.target import Target

__all__ = ["Answer", "NoisyRatio", "PenaltyTest", "ProposedMove", "Ratio", "Release", "accepts", "clip_ratio", "exact"]

Release = Callable[[Limbs, Array | float], Array]
"""``(parts, scale) -> high + low + N(0, scale² I)``."""
Answer = Callable[[Array, Limbs, Array | float], Array]
"""``(index, parts, scale) -> high + low + N(0, scale² I)``: the answer to an iteration's query, by its index there."""


class ProposedMove(NamedTuple):
    """A proposal, which must not depend on the records but through noisy answers.

    Attributes
    ----------
    start
        θ [d].
    end
        θ′ [d].
    energy
        What the log acceptance ratio has besides that of the posterior [], such as kinetic energies.
    """

    start: Array
    end: Array
    energy: Array | float = 0.0


class Ratio(NamedTuple):
    """A log-posterior ratio before any noise: **not private**.

    Attributes
    ----------
    likelihood
        The sum of the records' clipped log-likelihood ratios.
    public
        The prior's log ratio and the energy [], −∞ if the proposal is not finite.
    limit
        b‖θ − θ′‖ [], infinite for no clipping.
    """

    likelihood: ClippedSum
    public: Array
    limit: Array | float


class NoisyRatio(NamedTuple):
    """A released log-posterior ratio.

    Attributes
    ----------
    difference
        The noisy log ratio [], −∞ if the proposal is not finite.
    variance
        The variance [] of its noise.
    clipped
        The fraction of the records' ratios that were clipped []; **not private**.
    """

    difference: Array
    variance: Array
    clipped: Array


def exact(index: Array, total: Limbs, scale: Array | float) -> Array:
    """An answer without noise."""
    del index, scale
    return total.high + total.low


def clip_ratio(target: Target, move: ProposedMove, bound: float) -> Ratio:
    """The log-posterior ratio of a proposal, log-likelihood ratios clipped to ±b‖θ − θ′‖, the prior's not.

    If the proposal is not finite or does not move, the same query is made for the current position, so that the number
    of queries never depends on the data.
    """
    vector = move.start
    finite = jnp.all(jnp.isfinite(move.end))
    reached = jnp.where(finite, move.end, vector)
    limit: Array | float = inf
    if bound < inf:
        least = jnp.finfo(vector.dtype).tiny / jnp.finfo(vector.dtype).eps  # of a move that rounds to none
        limit = jnp.maximum(bound * jnp.sqrt(jnp.sum((reached - vector) ** 2)), least)
    public = target.log_prior(reached) - target.log_prior(vector) + move.energy
    return Ratio(clipped_ratios(target, vector, reached, limit), jnp.where(finite, public, -inf), limit)


class PenaltyTest(NamedTuple):
    """The test that releases the ratio, with noise 2τb‖θ − θ′‖: Algorithm 1 of Räisä, Koskela and Honkela (2021).

    Attributes
    ----------
    bound
        b; infinite for no clipping.
    tau
        τ; 0 for an exact ratio.
    """

    bound: float
    tau: float

    def query(self, noise: Noise) -> Query:
        """What it asks for."""
        return noise.query("log-likelihood ratio", 2 * self.tau, dimension=1)

    def noisy_ratio(self, target: Target, release: Release, move: ProposedMove) -> NoisyRatio:
        """The released log ratio of a proposal; what is public has no noise."""
        ratio = clip_ratio(target, move, self.bound)
        difference = ratio.likelihood.released(release, 2 * self.tau) + ratio.public
        deviation = jnp.where(self.tau > 0, 2 * self.tau * jnp.asarray(ratio.limit, difference.dtype), 0.0)
        return NoisyRatio(difference, deviation**2, ratio.likelihood.clipped / target.num_records)

    def decide(self, target: Target, release: Release, move: ProposedMove, log_uniform: Array) -> tuple[Array, Array]:
        """Whether a proposal is accepted [], and the fraction of clipped ratios [], which is **not private**."""
        ratio = self.noisy_ratio(target, release, move)
        return accepts(log_uniform, ratio.difference, ratio.variance), ratio.clipped


def accepts(log_uniform: Array, difference: Array, variance: Array) -> Array:
    """Whether a proposal is accepted: log u < ΔH − σ²/2 (Ceperley and Dewing 1999); never for NaN.

    With ΔH exact plus N(0, σ²) the invariant distribution is that of the exact test.
    """
    return log_uniform < difference - variance / 2
