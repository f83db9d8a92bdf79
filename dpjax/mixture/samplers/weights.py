"""The weights of the mixing measure given the sizes of the clusters.

Slots are the first terms of an infinite sequence. The numbers drawn for a slot do not depend on how many slots follow.
So a sweep repeated with more slots is the same sweep.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from dpjax.base import Array, Key
from dpjax.mixture.process import Process
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


DrawWeights = Callable[[Key, Array, Process], Weights]


def posterior_weights(key: Key, counts: Array, process: Process) -> Weights:
    """The weights given the clusters, by the posterior representation of the process.

    The occupied slots and the remainder have Dirichlet(n_1 - d, ..., n_k - d, α + d k) weights (Pitman 1996, corollary
    20). The remainder is broken over the empty slots, in their order, into Beta(1 - d, α + d k + d j) sticks, j = 1, 2,
    .... Unlike with sticks over all slots, the clusters need no order.

    Parameters
    ----------
    counts : [H]
        The sizes of the clusters, as floats.
    process
        The process a priori.
    """
    key_gamma, key_stick = jax.random.split(key)
    occupied = counts > 0
    remaining = process.beyond(jnp.sum(occupied))
    shapes = jnp.concatenate([remaining.concentration[None], jnp.where(occupied, process.joining(counts), 1)])
    gammas = jnp.exp(draw_log_gamma(key_gamma, shapes))
    rest, sizes = gammas[0], jnp.where(occupied, gammas[1:], 0)
    sticks, beyond = break_rest(key_stick, rest, occupied, remaining)
    total = rest + jnp.sum(sizes)
    return Weights(jnp.where(occupied, sizes, sticks) / total, beyond / total)


def break_rest(key: Key, rest: Array, occupied: Array, process: Process) -> Weights:
    """The mass [] of the atoms that no cluster has, broken over the empty slots [H] in their order."""
    if process.discount is None:
        # A Beta(1, α) stick leaves the fraction uniform^(1 / α).
        exponential = jax.random.exponential(key, occupied.shape, rest.dtype)
        logs = jnp.cumsum(jnp.where(occupied, 0, exponential)) / process.concentration
        beyond = rest * jnp.exp(-logs)
        return Weights(jnp.concatenate([rest[None], beyond[:-1]]) - beyond, beyond)
    first, second = process.sticks(jnp.cumsum(~occupied))
    log_shares, log_rests = draw_log_beta(key, jnp.full_like(second, first), second)
    shares, beyond = multiply_out(log_shares, jnp.where(occupied, 0, log_rests))
    return Weights(rest * shares, rest * beyond)


def stick_weights(key: Key, counts: Array, process: Process) -> Weights:
    """The weights given the labels, by sticks over all slots in their order.

    Stick h is Beta(1 - d + n_h, α + d h + n_(h+1) + ...): Ishwaran and James (2001); Kalli, Griffin and Walker (2011).
    Clusters in late slots get small weights, which slows the chain.

    Parameters
    ----------
    counts : [H]
        The sizes of the clusters, as floats.
    process
        The process a priori.
    """
    return multiply_out(*draw_sticks(key, counts, process))


def draw_sticks(key: Key, counts: Array, process: Process) -> tuple[Array, Array]:
    """The logarithms [H] of the sticks given the labels, and of one minus each."""
    first, second = process.sticks(jnp.arange(1, len(counts) + 1))
    behind = jnp.sum(counts) - jnp.cumsum(counts)
    return draw_log_beta(key, first + counts, second + behind)


def draw_log_beta(key: Key, first: Array, second: Array) -> tuple[Array, Array]:
    """The logarithms [...] of independent draws from Beta distributions, and of one minus each."""
    log_gammas = draw_log_gamma(key, jnp.stack([first, second], axis=-1))
    log_odds = log_gammas[..., 0] - log_gammas[..., 1]
    return jax.nn.log_sigmoid(log_odds), jax.nn.log_sigmoid(-log_odds)


def multiply_out(log_shares: Array, log_rests: Array) -> Weights:
    """The weights of sticks, given the logarithms [H] of the sticks and of one minus each."""
    log_left = jnp.cumsum(log_rests)
    before = jnp.concatenate([jnp.zeros_like(log_left[:1]), log_left[:-1]])
    return Weights(jnp.exp(before + log_shares), jnp.exp(log_left))


def blocked_weights(key: Key, counts: Array, process: Process) -> Weights:
    """The weights of a process truncated to H slots: the last takes the remaining mass (Ishwaran and James 2001)."""
    weights, beyond = stick_weights(key, counts, process)
    return Weights(weights.at[-1].add(beyond[-1]), beyond.at[-1].set(0))


def start_concentration(key: Key, concentration: Concentration) -> Array:
    """The concentration [] itself, or a draw from its prior."""
    if isinstance(concentration, GammaPrior):
        return concentration.sample(key, ())
    return jnp.asarray(concentration, float)


def update_concentration(key: Key, prior: Concentration, present: Process, num_clusters: Array, n: int) -> Array:
    """The concentration [] after a move that leaves its distribution given the number of clusters invariant.

    A fixed one does not change. With a Gamma(a, b) prior and no discount, first η ~ Beta(α + 1, n). Then α ~ Gamma(a +
    k or a + k - 1, b - log η), the first with odds (a + k - 1) / (n (b - log η)): Escobar and West (1995, section 6).
    With a discount see `draw_discounted`: the partition's probability is ∝ Π_(i < k) (α + d i) Γ(α + 1) / Γ(α + n).
    """
    if not isinstance(prior, GammaPrior):
        return present.concentration
    if present.discount is not None:
        return draw_discounted(key, prior, present, num_clusters - 1, n, jnp.asarray(n - 1), jnp.zeros(()))
    key_beta, key_mixture, key_gamma = jax.random.split(key, 3)
    alpha = present.concentration
    shape, rate = jnp.asarray(prior.shape, alpha.dtype), jnp.asarray(prior.rate, alpha.dtype)
    pair = draw_log_gamma(key_beta, jnp.stack([alpha + 1, jnp.asarray(n, alpha.dtype)]))
    rate = rate - jax.nn.log_sigmoid(pair[0] - pair[1])
    least = shape + num_clusters.astype(alpha.dtype) - 1
    larger = jax.random.uniform(key_mixture, (), alpha.dtype) * (least + n * rate) < least
    return jnp.exp(draw_log_gamma(key_gamma, jnp.where(larger, least + 1, least)[None])[0]) / rate


def update_concentration_of_sticks(
    key: Key, prior: Concentration, present: Process, counts: Array, truncated: bool
) -> Array:
    """The concentration [] after a move that leaves its distribution given the sizes [H] of the slots invariant.

    Its distribution depends on the order of the slots: the number of clusters is not sufficient. With a Gamma(a, b)
    prior, first sticks v_h as of `stick_weights` up to the last cluster; let m be their number. Then α ~ Gamma(a + m, b
    - Σ log(1 - v_h)) if there is no discount. With one see `draw_discounted`: the density of the sticks is ∝ Π_(i ≤ m)
    (α + d i) Γ(α + 1) / Γ(α + 1 + d m) Π_h (1 - v_h)^α. In a truncated process the last slot takes the remaining mass
    and has no stick (Ishwaran and James 2001, section 5.2).
    """
    if not isinstance(prior, GammaPrior):
        return present.concentration
    key_sticks, key_gamma = jax.random.split(key)
    _, log_rests = draw_sticks(key_sticks, counts, present)
    broken = jnp.cumsum(counts[::-1])[::-1] > 0
    if truncated:
        broken = broken.at[-1].set(False)
    log_rest = jnp.sum(jnp.where(broken, log_rests, 0))
    if present.discount is not None:
        number = jnp.sum(broken)
        excess = present.discount * number.astype(log_rest.dtype)
        return draw_discounted(key_gamma, prior, present, number, len(counts), excess, log_rest)
    shape = jnp.asarray(prior.shape, log_rest.dtype) + jnp.sum(broken, dtype=log_rest.dtype)
    rate = jnp.asarray(prior.rate, log_rest.dtype) - log_rest
    return jnp.exp(draw_log_gamma(key_gamma, shape[None])[0]) / rate


def draw_discounted(
    key: Key, prior: GammaPrior, present: Process, number: Array, most: int, excess: Array, log_factor: Array
) -> Array:
    """The concentration [] after a move that leaves the density below invariant, by auxiliary variables of Teh (2006).

    The density is ∝ Gamma(α | a, b) Π_(i=1..m) (α + d i) Γ(α + 1) / Γ(α + 1 + s) c^α. The ratio of Gamma functions is ∝
    ∫ x^α (1 - x)^(s - 1) dx, and α + d i is a sum over y_i = 1 and 0. So x ~ Beta(α + 1, s) and y_i ~ Bernoulli(α / (α
    + d i)); then α ~ Gamma(a + Σ y_i, b - log x - log c).

    Parameters
    ----------
    number : []
        The number m of factors.
    most
        The largest number that there can be.
    excess : []
        What s is, 0 or more.
    log_factor : []
        log c, 0 or less.
    """
    key_beta, key_factors, key_gamma = jax.random.split(key, 3)
    alpha = present.concentration
    # Without excess x is 1.
    positive = jnp.maximum(excess.astype(alpha.dtype), jnp.finfo(alpha.dtype).tiny)
    log_x, _ = draw_log_beta(key_beta, alpha + 1, positive)
    places = jnp.arange(1, most + 1)
    uniforms = jax.random.uniform(key_factors, (most,), alpha.dtype)
    ones = (places <= number) & (uniforms * present.opening(places) < alpha)
    shape = jnp.asarray(prior.shape, alpha.dtype) + jnp.sum(ones, dtype=alpha.dtype)
    rate = jnp.asarray(prior.rate, alpha.dtype) - log_x - log_factor
    return jnp.exp(draw_log_gamma(key_gamma, shape[None])[0]) / rate
