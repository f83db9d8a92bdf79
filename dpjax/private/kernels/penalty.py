"""The penalty acceptance test on a noisy log-likelihood ratio, shared by all algorithms that have one."""

from collections.abc import Callable
from math import inf
from typing import NamedTuple

import jax.numpy as jnp

from dpjax.base import Array
from dpjax.private.fixed_point import Limbs
from dpjax.private.sums.clipped import clipped_ratios
from dpjax.private.targets.target import Target

__all__ = ["Answer", "NoisyRatio", "accepts", "exact", "noisy_ratio"]

Answer = Callable[[Array, Limbs, Array | float], Array]
"""``(index, parts, scale) -> high + low + N(0, scale² I)``: the answer to an iteration's query, by its index there."""


class NoisyRatio(NamedTuple):
    """A released log-posterior ratio.

    Attributes
    ----------
    difference
        The noisy log-posterior ratio [], −∞ if the proposal is not finite.
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


def noisy_ratio(
    target: Target,
    release: Callable[[Limbs, Array | float], Array],
    vector: Array,
    proposal: Array,
    bound: float,
    tau: float,
) -> NoisyRatio:
    """The noisy log-posterior ratio of a proposal: log-likelihood ratios clipped to ±b‖θ − θ′‖, noise 2τb‖θ − θ′‖.

    Algorithm 1 of Räisä, Koskela and Honkela (2021); the prior's ratio is neither clipped nor noised. If the proposal
    is not finite or does not move, the same query is made for the current position, so that the number of queries never
    depends on the data.

    Parameters
    ----------
    release
        ``(parts, scale) -> high + low + N(0, scale²)``.
    bound
        b; infinite for no clipping.
    tau
        τ; 0 for an exact ratio.
    """
    finite = jnp.all(jnp.isfinite(proposal))
    reached = jnp.where(finite, proposal, vector)
    limit: Array | float = inf
    if bound < inf:
        least = jnp.finfo(vector.dtype).tiny  # a move that rounds to none
        limit = jnp.maximum(bound * jnp.sqrt(jnp.sum((reached - vector) ** 2)), least)
    ratios = clipped_ratios(target, vector, reached, limit)
    difference = ratios.released(release, 2 * tau) + target.log_prior(reached) - target.log_prior(vector)
    deviation = jnp.where(tau > 0, 2 * tau * jnp.asarray(limit, vector.dtype), 0.0)
    return NoisyRatio(jnp.where(finite, difference, -inf), deviation**2, ratios.clipped / target.num_records)


def accepts(log_uniform: Array, difference: Array, variance: Array) -> Array:
    """Whether a proposal is accepted: log u < ΔH − σ²/2 (Ceperley and Dewing 1999); never for NaN.

    With ΔH exact plus N(0, σ²) the invariant distribution is that of the exact test.
    """
    return log_uniform < difference - variance / 2
