"""Common parts of the marginal samplers, which move labels one by one with the mixing measure integrated out."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.validation import fail, name_of
from dpjax.base import Array, Key
from dpjax.mixture.base import Component, Conjugate, Mixing, MixtureInfo, MixtureState, Theta
from dpjax.mixture.binned import Binned
from dpjax.mixture.problem import MixtureProblem
from dpjax.mixture.samplers.base import FIRST_CAPACITY, MAX_SLOTS, Sampler, Slots, summarize_clusters
from dpjax.mixture.samplers.weights import posterior_weights, start_concentration, update_concentration
from dpjax.models import GammaPrior

__all__ = ["Evidence", "Marginal", "Relabelled", "check_conjugate", "evidence_of", "refuse_binned"]

MAX_REMAINDER = 1e-3
"""Largest mass of the atoms beyond the slots; if it is exceeded there are too few slots."""

MAX_DISCOUNTED = 1e-2
"""The same with a discount: the tail is heavy, and each further digit may take ten times as many slots or more."""


Evidence = Callable[[Array, Array], Array]
"""``(counts, totals) -> [H]``, as `Conjugate.log_evidence`."""


class Relabelled(NamedTuple):
    """Labels and records after a move, before the parameters of the clusters are redrawn.

    Attributes
    ----------
    labels
        As in `MixtureState`.
    records
        As in `MixtureState`; with several auxiliary records, these are the second axis.
    log_channel
        As in `MixtureState`, with the same axes.
    theta
        The parameters [H, ...] of all clusters, new ones included.
    acceptance_rate
        The share of records [] whose proposal was accepted.
    num_nonfinite
        How many records [] did not change because of a non-finite density.
    overflow
        Whether a new cluster found no empty slot [].
    """

    labels: Array
    records: Array
    log_channel: Array
    theta: Theta
    acceptance_rate: Array
    num_nonfinite: Array
    overflow: Array


class Marginal(Sampler):
    """A sampler of Neal (2000): subclasses implement `fit` and `relabel`, and `hold` if they hold auxiliary records.

    Labels and records are moved with the weights integrated out; then the concentration, the parameters and the weights
    are drawn given them.
    """

    num_held = 1
    """Number of records per person in the state."""

    def relabel(self, problem: MixtureProblem, slots: Slots, key: Key, state: MixtureState) -> Relabelled:
        """A move that leaves labels and records given the parameters and the concentration invariant."""
        raise NotImplementedError

    def hold(self, problem: MixtureProblem, records: Array) -> tuple[Array, Array]:
        """The initial records of the state, from records [n, ...], and their log q(z_i | ·); zeros if not needed."""
        del problem
        return records, jnp.zeros(records.shape[0], float)

    def first_capacity(self, problem: MixtureProblem) -> int:
        """Slots for the number of clusters expected a priori and for all but a thousandth of the other atoms' mass."""
        prior = problem.concentration
        mean = np.asarray(prior.shape) / np.asarray(prior.rate) if isinstance(prior, GammaPrior) else prior
        process = problem.process(jnp.mean(jnp.asarray(mean, float)))
        needed = process.slots_for(problem.n, largest_remainder(problem))
        return int(min(max(FIRST_CAPACITY, 8 * np.ceil(needed / 8)), MAX_SLOTS))

    def init(
        self, problem: MixtureProblem, slots: Slots, mixing: Mixing, concentration: Array, labels: Array, records: Array
    ) -> MixtureState:
        """The state with these values and their statistics; each auxiliary record is the record [n, ...]."""
        records, log_channel = self.hold(problem, records)
        counts, totals = self._summarize(problem.component, slots, labels, records)
        log_channel = log_channel.astype(concentration.dtype)
        return MixtureState(labels, records, counts, totals, mixing, concentration, log_channel)

    def start(self, problem: MixtureProblem, slots: Slots, key: Key, labels: Array, records: Array) -> MixtureState:
        """A state with these labels and records [n, ...]; everything else is drawn."""
        key_concentration, key_prior, key_mixing = jax.random.split(key, 3)
        concentration = start_concentration(key_concentration, problem.concentration)
        theta = problem.component.sample_prior(key_prior, slots.capacity)
        blank = jnp.zeros(slots.capacity, concentration.dtype)
        state = self.init(problem, slots, Mixing(blank, theta, blank[0]), concentration, labels, records)
        mixing, _ = self._draw_mixing(problem, key_mixing, state.mixing, state.counts, state.totals, concentration)
        return state._replace(mixing=mixing)

    def step(
        self, problem: MixtureProblem, slots: Slots, key: Key, state: MixtureState
    ) -> tuple[MixtureState, MixtureInfo]:
        """A sweep that leaves p(labels, records, concentration, mixing measure | values) invariant."""
        key_labels, key_concentration, key_mixing = jax.random.split(key, 3)
        moved = self.relabel(problem, slots, key_labels, state)
        counts, totals = self._summarize(problem.component, slots, moved.labels, moved.records)
        concentration = update_concentration(
            key_concentration,
            problem.concentration,
            problem.process(state.concentration),
            jnp.sum(counts > 0),
            moved.labels.shape[0],
        )
        present = state.mixing._replace(theta=moved.theta)
        mixing, beyond = self._draw_mixing(problem, key_mixing, present, counts, totals, concentration)
        last = slots.capacity - jnp.argmax(counts[::-1] > 0)
        largest = largest_remainder(problem)
        num_slots = jnp.maximum(last, jnp.sum(beyond >= largest) + 1)
        overflow = moved.overflow | (beyond[-1] >= largest)
        after = MixtureState(moved.labels, moved.records, counts, totals, mixing, concentration, moved.log_channel)
        return after, MixtureInfo(moved.acceptance_rate, moved.num_nonfinite, num_slots, overflow)

    def _draw_mixing(
        self, problem: MixtureProblem, key: Key, present: Mixing, counts: Array, totals: Array, concentration: Array
    ) -> tuple[Mixing, Array]:
        """The mixing measure given the clusters, and the mass [H] beyond each slot."""
        key_theta, key_weights = jax.random.split(key)
        theta = problem.component.update(key_theta, present.theta, counts * self.num_held, totals)
        weights = posterior_weights(key_weights, counts, problem.process(concentration))
        return Mixing(weights.weights, theta, weights.beyond[-1]), weights.beyond

    def _summarize(self, component: Component, slots: Slots, labels: Array, records: Array) -> tuple[Array, Array]:
        """The sizes [H] of the clusters and the sums of features [H, k] over all their records in the state."""
        if self.num_held == 1:
            return summarize_clusters(component, slots.capacity, labels, records)
        flat = records.reshape(-1, *records.shape[2:])
        counts, totals = summarize_clusters(component, slots.capacity, jnp.repeat(labels, self.num_held), flat)
        return counts / self.num_held, totals


def largest_remainder(problem: MixtureProblem) -> float:
    """The largest mass of the atoms beyond the slots."""
    return MAX_REMAINDER if problem.discount is None else MAX_DISCOUNTED


def refuse_binned(name: str, problem: MixtureProblem) -> None:
    """Raise for one release of all records, if the sampler needs the density of each record's own released value."""
    if isinstance(problem.channel, Binned):
        remedy = "Use sampler=dpjax.mixture.conditional() or dpjax.mixture.neal5()."
        fail("sampler", f"{name} with one release of all records", "conditional() or neal5()", remedy)


def check_conjugate(name: str, problem: MixtureProblem) -> None:
    """Raise unless the parameters can be integrated out of the density of a cluster's released values."""
    refuse_binned(name, problem)
    if problem.channel is not None or not isinstance(problem.component, Conjugate):
        behind = "no channel" if problem.channel is None else name_of(problem.channel)
        other = "neal8" if problem.channel is None or problem.tractable is not None else "neal5"
        remedy = (
            f"Use sampler=dpjax.mixture.{other}(); or, behind dpjax.Gaussian, "
            "component=dpjax.mixture.TruncatedNormalInverseGamma(...), which is another prior; or a component of the "
            "released values that has log_evidence, without a channel."
        )
        given = f"{name} with {behind} and {type(problem.component).__name__}"
        fail("sampler", given, "a base measure conjugate to the released values", remedy)


def evidence_of(component: Component) -> Evidence:
    """The ``log_evidence`` of a conjugate component."""
    assert isinstance(component, Conjugate)
    return component.log_evidence
