"""The weights of the mixing measure given the sizes of the clusters.

Slots are an initial piece of an infinite row: the numbers drawn for a slot do not depend on how many slots come after
it, so that a sweep made again with more slots is the same sweep.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from dpjax.base import Array, Key
from dpjax.numerics.gamma import draw_log_gamma

__all__ = ["Weights", "blocked_weights", "draw_sticks", "posterior_weights", "stick_weights"]


class Weights(NamedTuple):
    """The weights of the slots and what is left for the slots beyond.

    Attributes
    ----------
    weights
        The weight [H] of each slot.
    beyond
        The mass left [H] after each slot for all empty slots behind it; the last is the mass beyond all slots.
    """

    weights: Array
    beyond: Array


DrawWeights = Callable[[Key, Array, Array], Weights]


def posterior_weights(key: Key, counts: Array, concentration: Array) -> Weights:
    """The weights given the clusters, by the posterior representation of the Dirichlet process.

    The occupied slots and all the rest together have Dirichlet(n_1, ..., n_k, α) weights; the rest is broken into
    Beta(1, α) sticks over the empty slots, in their order. The clusters need no order, unlike for sticks over all.

    Parameters
    ----------
    counts : [H]
        The sizes of the clusters, as floats.
    concentration : []
        The concentration α.
    """
    key_gamma, key_stick = jax.random.split(key)
    occupied = counts > 0
    shapes = jnp.concatenate([concentration[None], jnp.where(occupied, counts, 1)])
    gammas = jnp.exp(draw_log_gamma(key_gamma, shapes))
    rest, sizes = gammas[0], jnp.where(occupied, gammas[1:], 0)
    # A Beta(1, α) stick leaves the share uniform^(1 / α).
    exponential = jax.random.exponential(key_stick, counts.shape, counts.dtype)
    logs = jnp.cumsum(jnp.where(occupied, 0, exponential)) / concentration
    beyond = rest * jnp.exp(-logs)
    sticks = jnp.concatenate([rest[None], beyond[:-1]]) - beyond
    total = rest + jnp.sum(sizes)
    return Weights(jnp.where(occupied, sizes, sticks) / total, beyond / total)


def stick_weights(key: Key, counts: Array, concentration: Array) -> Weights:
    """The weights given the labels, by sticks over all slots in their order: Beta(1 + n_h, α + n_(h+1) + ...).

    Kalli, Griffin and Walker (2011). Clusters far down the row get small weights, which slows the chain.

    Parameters
    ----------
    counts : [H]
        The sizes of the clusters, as floats.
    concentration : []
        The concentration α.
    """
    log_shares, log_rests = draw_sticks(key, counts, concentration)
    log_left = jnp.cumsum(log_rests)
    before = jnp.concatenate([jnp.zeros_like(log_left[:1]), log_left[:-1]])
    return Weights(jnp.exp(before + log_shares), jnp.exp(log_left))


def draw_sticks(key: Key, counts: Array, concentration: Array) -> tuple[Array, Array]:
    """The logarithms [H] of sticks given the labels, and of what each leaves of the piece that it is broken from."""
    behind = jnp.sum(counts) - jnp.cumsum(counts)
    log_gammas = draw_log_gamma(key, jnp.stack([1 + counts, concentration + behind], axis=1))
    log_odds = log_gammas[:, 0] - log_gammas[:, 1]
    return jax.nn.log_sigmoid(log_odds), jax.nn.log_sigmoid(-log_odds)


def blocked_weights(key: Key, counts: Array, concentration: Array) -> Weights:
    """The weights of a process cut to H slots: the last stick takes all that is left (Ishwaran and James 2001)."""
    weights, beyond = stick_weights(key, counts, concentration)
    return Weights(weights.at[-1].add(beyond[-1]), beyond.at[-1].set(0))
