"""The weights of the mixing measure given the sizes of the clusters.

Slots are the first terms of an infinite sequence. The numbers drawn for a slot do not depend on how many slots follow.
So a sweep repeated with more slots is the same sweep.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from dpjax.base import Array, Key
from dpjax.models import GammaPrior
from dpjax.numerics.gamma import draw_log_gamma

__all__ = [
    "Weights",
    "blocked_weights",
    "posterior_weights",
    "start_concentration",
    "stick_weights",
    "update_concentration",
    "update_concentration_of_sticks",
]


Concentration = float | Array | GammaPrior


class Weights(NamedTuple):
    """The weights of the slots and the mass beyond them.

    Attributes
    ----------
    weights
        The weight [H] of each slot.
    beyond
        The mass left [H] after each slot for all empty slots after it; the last is the mass beyond all slots.
    """

    weights: Array
    beyond: Array


DrawWeights = Callable[[Key, Array, Array], Weights]


def posterior_weights(key: Key, counts: Array, concentration: Array) -> Weights:
    """The weights given the clusters, by the posterior representation of the Dirichlet process.

    The occupied slots and the remainder have Dirichlet(n_1, ..., n_k, α) weights; the remainder is broken into Beta(1,
    α) sticks over the empty slots, in their order. Unlike with sticks over all slots, the clusters need no order.

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
    # A Beta(1, α) stick leaves the fraction uniform^(1 / α).
    exponential = jax.random.exponential(key_stick, counts.shape, counts.dtype)
    logs = jnp.cumsum(jnp.where(occupied, 0, exponential)) / concentration
    beyond = rest * jnp.exp(-logs)
    sticks = jnp.concatenate([rest[None], beyond[:-1]]) - beyond
    total = rest + jnp.sum(sizes)
    return Weights(jnp.where(occupied, sizes, sticks) / total, beyond / total)


def stick_weights(key: Key, counts: Array, concentration: Array) -> Weights:
    """The weights given the labels, by sticks over all slots in their order: Beta(1 + n_h, α + n_(h+1) + ...).

    Kalli, Griffin and Walker (2011). Clusters in late slots get small weights, which slows the chain.

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
    """The logarithms [H] of the sticks given the labels, and of one minus each."""
    behind = jnp.sum(counts) - jnp.cumsum(counts)
    log_gammas = draw_log_gamma(key, jnp.stack([1 + counts, concentration + behind], axis=1))
    log_odds = log_gammas[:, 0] - log_gammas[:, 1]
    return jax.nn.log_sigmoid(log_odds), jax.nn.log_sigmoid(-log_odds)


def blocked_weights(key: Key, counts: Array, concentration: Array) -> Weights:
    """The weights of a process truncated to H slots: the last takes the remaining mass (Ishwaran and James 2001)."""
    weights, beyond = stick_weights(key, counts, concentration)
    return Weights(weights.at[-1].add(beyond[-1]), beyond.at[-1].set(0))


def start_concentration(key: Key, concentration: Concentration) -> Array:
    """The concentration [] itself, or a draw from its prior."""
    if isinstance(concentration, GammaPrior):
        return concentration.sample(key, ())
    return jnp.asarray(concentration, float)


def update_concentration(key: Key, prior: Concentration, present: Array, num_clusters: Array, n: int) -> Array:
    """The concentration [] after a move that leaves its distribution given the number of clusters invariant.

    A fixed one does not change. With a Gamma(a, b) prior, first η ~ Beta(α + 1, n). Then α ~ Gamma(a + k or a + k - 1,
    b - log η), the first with odds (a + k - 1) / (n (b - log η)): Escobar and West (1995, section 6).
    """
    if not isinstance(prior, GammaPrior):
        return present
    key_beta, key_mixture, key_gamma = jax.random.split(key, 3)
    shape, rate = jnp.asarray(prior.shape, present.dtype), jnp.asarray(prior.rate, present.dtype)
    pair = draw_log_gamma(key_beta, jnp.stack([present + 1, jnp.asarray(n, present.dtype)]))
    rate = rate - jax.nn.log_sigmoid(pair[0] - pair[1])
    least = shape + num_clusters.astype(present.dtype) - 1
    larger = jax.random.uniform(key_mixture, (), present.dtype) * (least + n * rate) < least
    return jnp.exp(draw_log_gamma(key_gamma, jnp.where(larger, least + 1, least)[None])[0]) / rate


def update_concentration_of_sticks(
    key: Key, prior: Concentration, present: Array, counts: Array, truncated: bool
) -> Array:
    """The concentration [] after a move that leaves its distribution given the sizes [H] of the slots invariant.

    Its distribution depends on the order of the slots: the number of clusters is not sufficient. With a Gamma(a, b)
    prior, sticks v_h ~ Beta(1 + n_h, α + n_(h+1) + ...) up to the last cluster, and then α ~ Gamma(a + their number, b
    - Σ log(1 - v_h)). In a truncated process the last slot takes the remaining mass and has no stick (Ishwaran and
    James 2001, section 5.2).
    """
    if not isinstance(prior, GammaPrior):
        return present
    key_sticks, key_gamma = jax.random.split(key)
    _, log_rests = draw_sticks(key_sticks, counts, present)
    broken = jnp.cumsum(counts[::-1])[::-1] > 0
    if truncated:
        broken = broken.at[-1].set(False)
    shape = jnp.asarray(prior.shape, present.dtype) + jnp.sum(broken, dtype=present.dtype)
    rate = jnp.asarray(prior.rate, present.dtype) - jnp.sum(jnp.where(broken, log_rests, 0))
    return jnp.exp(draw_log_gamma(key_gamma, shape[None])[0]) / rate
