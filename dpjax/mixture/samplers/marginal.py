"""The marginal samplers: the mixing measure is integrated out while labels move, one record after another."""

import jax
import jax.numpy as jnp

from dpjax.base import Array, Key
from dpjax.mixture.base import Component, Mixing, MixtureInfo, MixtureState
from dpjax.mixture.samplers.concentration import start_concentration, update_concentration
from dpjax.mixture.samplers.conditional import Problem, summarize_clusters
from dpjax.mixture.samplers.gibbs_labels import gibbs_labels
from dpjax.mixture.samplers.neal3 import collapsed_labels
from dpjax.mixture.samplers.neal5 import offered_labels
from dpjax.mixture.samplers.records import channel_densities
from dpjax.mixture.samplers.relabelled import MarginalScheme, Relabel
from dpjax.mixture.samplers.weights import posterior_weights

__all__ = ["LEFT_OUT", "init_marginal", "start_marginal", "sweep_marginal"]

LEFT_OUT = 1e-3
"""The most weight that the atoms beyond the slots may have; with more there are too few slots."""

RELABEL: dict[str, Relabel] = {
    "neal2": gibbs_labels,
    "neal3": collapsed_labels,
    "neal5": offered_labels,
    "neal8": gibbs_labels,
}


def sweep_marginal(
    problem: Problem, scheme: MarginalScheme, key: Key, state: MixtureState
) -> tuple[MixtureState, MixtureInfo]:
    """A move that leaves p(labels, records, concentration, mixing measure | values) invariant.

    Labels and records are moved with the weights integrated out; then the concentration, the parameters and the weights
    are drawn given them. On overflow the result is not to be used.
    """
    key_labels, key_concentration, key_mixing = jax.random.split(key, 3)
    moved = RELABEL[scheme.sampler](problem, scheme, key_labels, state)
    counts, totals = summarize_held(problem.component, scheme, moved.labels, moved.records)
    concentration = update_concentration(
        key_concentration, problem.concentration, state.concentration, jnp.sum(counts > 0), moved.labels.shape[0]
    )
    present = state.mixing._replace(theta=moved.theta)
    mixing, beyond = draw_mixing(problem, scheme, key_mixing, present, counts, totals, concentration)
    last = scheme.capacity - jnp.argmax(counts[::-1] > 0)
    num_slots = jnp.maximum(last, jnp.sum(beyond >= LEFT_OUT) + 1)
    overflow = moved.overflow | (beyond[-1] >= LEFT_OUT)
    after = MixtureState(moved.labels, moved.records, counts, totals, mixing, concentration, moved.log_channel)
    return after, MixtureInfo(moved.acceptance_rate, moved.num_nonfinite, num_slots, overflow, jnp.array(0))


def draw_mixing(
    problem: Problem,
    scheme: MarginalScheme,
    key: Key,
    present: Mixing,
    counts: Array,
    totals: Array,
    concentration: Array,
) -> tuple[Mixing, Array]:
    """The mixing measure given the clusters, and the mass [H] behind each slot; empty slots get prior parameters."""
    key_theta, key_weights = jax.random.split(key)
    theta = problem.component.update(key_theta, present.theta, counts * scheme.num_held, totals)
    weights = posterior_weights(key_weights, counts, concentration)
    return Mixing(weights.weights, theta, weights.beyond[-1]), weights.beyond


def summarize_held(component: Component, scheme: MarginalScheme, labels: Array, records: Array) -> tuple[Array, Array]:
    """The sizes [H] of the clusters and the sums of features [H, k] over all that is held of their records."""
    if scheme.num_held == 1:
        return summarize_clusters(component, scheme.capacity, labels, records)
    flat = records.reshape(-1, *records.shape[2:])
    counts, totals = summarize_clusters(component, scheme.capacity, jnp.repeat(labels, scheme.num_held), flat)
    return counts / scheme.num_held, totals


def start_marginal(problem: Problem, scheme: MarginalScheme, key: Key, labels: Array, records: Array) -> MixtureState:
    """A state with these labels and records [n, ...]; everything else is drawn."""
    key_concentration, key_prior, key_mixing = jax.random.split(key, 3)
    concentration = start_concentration(key_concentration, problem.concentration)
    theta = problem.component.sample_prior(key_prior, scheme.capacity)
    blank = jnp.zeros(scheme.capacity, concentration.dtype)
    state = init_marginal(problem, scheme, Mixing(blank, theta, blank[0]), concentration, labels, records)
    mixing, _ = draw_mixing(problem, scheme, key_mixing, state.mixing, state.counts, state.totals, concentration)
    return state._replace(mixing=mixing)


def init_marginal(
    problem: Problem, scheme: MarginalScheme, mixing: Mixing, concentration: Array, labels: Array, records: Array
) -> MixtureState:
    """The state of these values, with what is computed from them; each auxiliary held is the record [n, ...]."""
    log_channel = jnp.zeros(labels.shape, concentration.dtype)
    if scheme.sampler == "neal5":
        assert problem.channel is not None
        log_channel = channel_densities(problem.channel, problem.values, records).astype(concentration.dtype)
    if scheme.num_held > 1:
        records = jnp.repeat(records[:, None], scheme.num_held, axis=1)
        log_channel = jnp.repeat(log_channel[:, None], scheme.num_held, axis=1)
    counts, totals = summarize_held(problem.component, scheme, labels, records)
    return MixtureState(labels, records, counts, totals, mixing, concentration, log_channel)
