"""Updates of the confidential records given their parameters and the released values: exact draws, or proposals."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from dpjax._util.validation import fail
from dpjax.base import Array, Key
from dpjax.mechanisms.base import Mechanism
from dpjax.mixture.base import Component, Theta, Tractable
from dpjax.mixture.binned import Binned
from dpjax.mixture.problem import MixtureProblem
from dpjax.numerics import decision_uniforms, proper_density, select_indices, tree_where

__all__ = [
    "ImputedRecords",
    "RecordKernel",
    "channel_densities",
    "check_single",
    "decide",
    "exact_records",
    "proposed_records",
]


class ImputedRecords(NamedTuple):
    """Records after an update.

    Attributes
    ----------
    records
        The records [n, ...].
    log_channel
        log q(z_i | y_i) [n]; zeros if not needed.
    accepted
        Whether each record accepted a proposal [n].
    num_nonfinite
        How many proposals had a non-finite density [].
    """

    records: Array
    log_channel: Array
    accepted: Array
    num_nonfinite: Array


RecordKernel = Callable[[Key, Array, Theta, Array, Array], ImputedRecords]
"""``(key, values, theta, records, log_channel) -> imputed``, with everything [n, ...]."""


def channel_densities(channel: Mechanism | Binned, values: Array, records: Array) -> Array:
    """log q(z_i | y_i) [n]; for one release of all records, 0, or NaN for records that are NaN."""
    if isinstance(channel, Binned):
        return jnp.where(jnp.isnan(records), jnp.nan, jnp.zeros_like(records))
    return jax.vmap(channel.log_density)(values, records)


def decide(
    channel: Mechanism | Binned, records: Array, proposals: Array, log_ratios: Array, log_uniforms: Array
) -> Array:
    """Whether each record accepts its proposal [n], given log q(z_i | proposal) - log q(z_i | y_i) [n].

    All at once, or in turn for one release of all records.
    """
    if isinstance(channel, Binned):
        return channel.decide(records, proposals, log_uniforms - log_ratios)
    return log_uniforms < log_ratios


def exact_records(tractable: Tractable) -> RecordKernel:
    """Exact draws from the densities ∝ q(z_i | y) f(y | θ_i)."""

    def update(key: Key, values: Array, theta: Theta, records: Array, log_channel: Array) -> ImputedRecords:
        drawn = tractable.sample_latent(key, values, theta)
        return ImputedRecords(drawn, log_channel, jnp.ones(len(values), bool), jnp.array(0))

    return update


def proposed_records(channel: Mechanism | Binned, component: Component, num_proposals: int) -> RecordKernel:
    """A move that leaves ∏ q(z_i | y_i) f(y_i | θ_i) invariant, by proposals from f(· | θ_i).

    One proposal is accepted with probability min(1, q(z | y') / q(z | y)), which is at least e^(-ε) for an ε-private
    channel. With one release η of all records, proposals are accepted in turn, by the ratio of η. From several
    proposals and the current record, one is drawn with probability ∝ q(z | ·). This is iterated sampling importance
    resampling (Andrieu, Lee and Vihola 2018), which approaches an exact draw as the number of proposals grows.
    """
    return (
        one_proposal(channel, component) if num_proposals == 1 else several_proposals(channel, component, num_proposals)
    )


def one_proposal(channel: Mechanism | Binned, component: Component) -> RecordKernel:
    """An independence Metropolis step for every record."""

    def update(key: Key, values: Array, theta: Theta, records: Array, log_channel: Array) -> ImputedRecords:
        key_proposal, key_accept = jax.random.split(key)
        proposals = component.sample(key_proposal, theta)
        log_proposals = channel_densities(channel, values, proposals)
        uniform = decision_uniforms(key_accept, log_channel.shape, log_channel.dtype)
        accepted = decide(channel, records, proposals, proper_density(log_proposals) - log_channel, jnp.log(uniform))
        kept = jnp.where(accepted, log_proposals, log_channel)
        return ImputedRecords(
            tree_where(accepted, proposals, records), kept, accepted, jnp.sum(~(log_proposals < jnp.inf))
        )

    return update


def several_proposals(channel: Mechanism | Binned, component: Component, num_proposals: int) -> RecordKernel:
    """A draw among the current record and several proposals."""

    def update(key: Key, values: Array, theta: Theta, records: Array, log_channel: Array) -> ImputedRecords:
        key_proposal, key_choice = jax.random.split(key)
        many = jax.tree.map(lambda leaf: jnp.tile(leaf, (num_proposals, *(1,) * (leaf.ndim - 1))), theta)
        proposals = component.sample(key_proposal, many).reshape(num_proposals, *records.shape)
        fresh = jax.vmap(lambda proposal: channel_densities(channel, values, proposal))(proposals)
        candidates = jnp.concatenate([records[None], proposals])
        log_weights = proper_density(jnp.concatenate([log_channel[None], fresh]))
        uniforms = jax.random.uniform(key_choice, log_channel.shape, log_channel.dtype)
        # If no candidate is possible, the first one is chosen: the current record.
        chosen, _ = select_indices(log_weights, uniforms)
        place = jnp.arange(len(values))
        return ImputedRecords(
            candidates[chosen, place], log_weights[chosen, place], chosen > 0, jnp.sum(~(fresh < jnp.inf))
        )

    return update


def check_single(name: str, number: int, problem: MixtureProblem) -> None:
    """Raise if records with one release of all have several proposals each."""
    if isinstance(problem.channel, Binned) and number != 1:
        fail(name, number, "1 for one release of all records", "Leave it out: proposals are accepted one by one.")
