"""One sweep of the conditional sampler: concentration, weights, parameters, slices, labels and records in turn.

Given the mixing measure all records are independent, so each step is one vectorised operation over records or slots;
only where one release tells of all of them do they decide in turn.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from dpjax.base import Array, Key, Mechanism
from dpjax.mixture.base import Component, Mixing, MixtureInfo, MixtureState, Theta, Tractable
from dpjax.mixture.binned import Binned
from dpjax.mixture.components.tractable import find_tractable
from dpjax.mixture.samplers.concentration import (
    Concentration,
    start_concentration,
    update_concentration,
    update_concentration_of_sticks,
)
from dpjax.mixture.samplers.records import Imputed, channel_densities, exact_records, offered_records
from dpjax.mixture.samplers.slices import Slices, choose_slots, draw_slices, open_slices
from dpjax.mixture.samplers.weights import DrawWeights, Weights, blocked_weights, posterior_weights, stick_weights
from dpjax.pytree import frozen_pytree

__all__ = ["Problem", "Scheme", "init_state", "start_state", "summarize_clusters", "sweep"]

SLICE_SHARE = 0.2
"""The slice threshold of the posterior weights in units of 1 / n: about the weight that a cluster of one record has."""


BRANCHES = (8, 12, 16, 24, 32, 48, 64, 96, 128)
"""Numbers of slots for which the choice among them is compiled."""

BRANCHING = 2_000
"""So many densities a sweep make it worth to leave out those that are not needed."""


@frozen_pytree
@dataclass(frozen=True, eq=False)
class Problem:
    """What a chain is drawn for.

    Parameters
    ----------
    values : [n], [n, k] or [d]
        What was released, of each record or of all; the records themselves where the channel is None.
    channel
        How; None for records that are known.
    component
        The kernel with its base measure.
    concentration
        A number, or its Gamma prior.
    """

    values: Array
    channel: Mechanism | Binned | None
    component: Component
    concentration: Concentration

    @property
    def n(self) -> int:
        """The number of records."""
        return self.channel.n if isinstance(self.channel, Binned) else int(self.values.shape[0])

    @property
    def tractable(self) -> Tractable | None:
        """The known marginal, where there is one."""
        return (
            None
            if self.channel is None or isinstance(self.channel, Binned)
            else find_tractable(self.channel, self.component)
        )


class Scheme(NamedTuple):
    """How a sweep is made; hashable, one compiled program for each.

    weights
        ``"posterior"``, ``"stick"`` or, truncated to the capacity, ``"blocked"``.
    capacity
        The number of slots.
    in_turn
        Whether chains are advanced one after another, each at the cost of the slots that it needs, rather than side by
        side. On a CPU that is faster.
    num_offers
        Offers to each record, 0 for exact draws with labels drawn from the marginal.
    split_merge, launch_scans
        Split-merge proposals before each sweep, and the scans that prepare each.
    """

    weights: str
    capacity: int
    num_offers: int
    in_turn: bool = False
    split_merge: int = 0
    launch_scans: int = 0


DRAW_WEIGHTS: dict[str, DrawWeights] = {
    "posterior": posterior_weights,
    "stick": stick_weights,
    "blocked": blocked_weights,
}


def sweep(problem: Problem, scheme: Scheme, key: Key, state: MixtureState) -> tuple[MixtureState, MixtureInfo]:
    """A move that leaves p(labels, records, concentration, mixing measure | values) invariant.

    The mixing measure is drawn anew given the labels and records; then the labels given it, with the records
    integrated out where the marginal is known; then the records. On overflow the result is not to be used.
    """
    key_concentration, key_weights, key_theta, key_uniform, key_record = jax.random.split(key, 5)
    n = state.labels.shape[0]
    concentration = renew_concentration(problem, scheme, key_concentration, state)
    weights = DRAW_WEIGHTS[scheme.weights](key_weights, state.counts, concentration)
    theta = problem.component.update(key_theta, state.mixing.theta, state.counts, state.totals)
    uniforms = jax.random.uniform(key_uniform, (2, n), state.counts.dtype)
    slices = cut(scheme, 1 - uniforms[0], state.labels, weights)
    last = scheme.capacity - jnp.argmax(state.counts[::-1] > 0)
    num_slots = jnp.maximum(slices.num_slots, last)
    labels, num_stuck = choose_labels(problem, scheme, uniforms[1], slices._replace(num_slots=num_slots), theta, state)
    drawn = partial(impute, problem, scheme, key_record, at_labels(theta, labels), state)
    # The branch keeps the compiler from computing the records once for each use of them; side by side there is none.
    imputed = jax.lax.cond(slices.overflow, lambda: keep_records(state), drawn) if scheme.in_turn else drawn()
    counts, totals = summarize_clusters(problem.component, scheme.capacity, labels, imputed.records)
    mixing = Mixing(weights.weights, theta, weights.beyond[-1])
    moved = MixtureState(labels, imputed.records, counts, totals, mixing, concentration, imputed.log_channel)
    rate = jnp.mean(imputed.accepted, dtype=counts.dtype)
    return moved, MixtureInfo(rate, num_stuck + imputed.num_nonfinite, num_slots, slices.overflow, jnp.array(0))


def renew_concentration(problem: Problem, scheme: Scheme, key: Key, state: MixtureState) -> Array:
    """The concentration [] given the clusters; where weights know an order of them, given their slots."""
    prior, present, counts = problem.concentration, state.concentration, state.counts
    if scheme.weights == "posterior":
        return update_concentration(key, prior, present, jnp.sum(counts > 0), state.labels.shape[0])
    return update_concentration_of_sticks(key, prior, present, counts, scheme.weights == "blocked")


def cut(scheme: Scheme, uniforms: Array, labels: Array, weights: Weights) -> Slices:
    """The slices of a scheme, from uniforms [n] on (0, 1]."""
    if scheme.weights == "blocked":
        return open_slices(labels, weights)
    threshold = 1.0 if scheme.weights == "stick" else min(1.0, SLICE_SHARE / labels.shape[0])
    return draw_slices(uniforms, labels, weights, jnp.asarray(threshold, uniforms.dtype))


def choose_labels(
    problem: Problem, scheme: Scheme, uniforms: Array, slices: Slices, theta: Theta, state: MixtureState
) -> tuple[Array, Array]:
    """New labels [n] and how many records kept theirs for want of a number; only slots in reach are looked at."""

    def among_first(size: int) -> tuple[Array, Array]:
        first = {name: leaf[:size] for name, leaf in theta.items()}
        log_densities = densities_at_slots(problem, scheme, first, state.records)
        reached = slices._replace(heights=slices.heights[:size], log_shares=slices.log_shares[:size])
        return choose_slots(uniforms, reached, log_densities, state.labels)

    # Side by side all branches would be computed; and few records are not worth the compilation.
    worthwhile = scheme.in_turn and len(uniforms) * scheme.capacity >= BRANCHING
    sizes = [size for size in BRANCHES if size < scheme.capacity] if worthwhile else []
    enough = jnp.sum(jnp.array(sizes, int) < slices.num_slots)
    return jax.lax.switch(enough, [partial(among_first, size) for size in (*sizes, scheme.capacity)])


def densities_at_slots(problem: Problem, scheme: Scheme, theta: Theta, records: Array) -> Array:
    """The log-densities [H, n] from which labels are drawn: of the values where that is known, else of the records."""
    tractable = problem.tractable if scheme.num_offers == 0 else None
    if tractable is not None:
        return at_slots(tractable.log_marginal, problem.values, theta)
    return at_slots(problem.component.log_density, records, theta)


def at_slots(log_density: Callable[[Array, Theta], Array], given: Array, theta: Theta) -> Array:
    """A log-density [H, n] of each of [n] at each slot."""
    return jax.vmap(jax.vmap(log_density, in_axes=(0, None)), in_axes=(None, 0))(given, theta)


def impute(problem: Problem, scheme: Scheme, key: Key, theta: Theta, state: MixtureState) -> Imputed:
    """The records given their parameters, leaves [n, ...]."""
    if problem.channel is None:
        return keep_records(state)
    if scheme.num_offers == 0:
        assert problem.tractable is not None
        kernel = exact_records(problem.tractable)
    else:
        kernel = offered_records(problem.channel, problem.component, scheme.num_offers)
    return kernel(key, problem.values, theta, state.records, state.log_channel)


def keep_records(state: MixtureState) -> Imputed:
    """The records as they are."""
    return Imputed(state.records, state.log_channel, jnp.ones(state.labels.shape, bool), jnp.array(0))


def summarize_clusters(component: Component, capacity: int, labels: Array, records: Array) -> tuple[Array, Array]:
    """The number of records [H] and the sum of features [H, k] of each slot.

    A product with a table of ones is many times faster than adding at indices.
    """
    features = jax.vmap(component.features)(records)
    members = (labels[None, :] == jnp.arange(capacity, dtype=labels.dtype)[:, None]).astype(features.dtype)
    totals = jnp.matmul(members, features, precision=jax.lax.Precision.HIGHEST)
    return jnp.sum(members, axis=1), totals


def at_labels(theta: Theta, labels: Array) -> Theta:
    """Each record's parameters, leaves [n, ...]."""
    return {name: leaf[labels] for name, leaf in theta.items()}


def start_state(problem: Problem, scheme: Scheme, key: Key, labels: Array, records: Array) -> MixtureState:
    """A state with these labels and records; everything else is drawn."""
    key_concentration, key_weights, key_prior, key_theta = jax.random.split(key, 4)
    concentration = start_concentration(key_concentration, problem.concentration)
    counts, totals = summarize_clusters(problem.component, scheme.capacity, labels, records)
    weights = DRAW_WEIGHTS[scheme.weights](key_weights, counts, concentration)
    prior = problem.component.sample_prior(key_prior, scheme.capacity)
    theta = problem.component.update(key_theta, prior, counts, totals)
    return init_state(
        problem, scheme, Mixing(weights.weights, theta, weights.beyond[-1]), concentration, labels, records
    )


def init_state(
    problem: Problem, scheme: Scheme, mixing: Mixing, concentration: Array, labels: Array, records: Array
) -> MixtureState:
    """The state of these values, with what is computed from them."""
    counts, totals = summarize_clusters(problem.component, scheme.capacity, labels, records)
    log_channel = jnp.zeros(labels.shape, counts.dtype)
    if problem.channel is not None and scheme.num_offers > 0:
        log_channel = channel_densities(problem.channel, problem.values, records).astype(counts.dtype)
    return MixtureState(labels, records, counts, totals, mixing, concentration, log_channel)
