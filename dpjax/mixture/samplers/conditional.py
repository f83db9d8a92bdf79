"""The conditional sampler: a Gibbs sweep over concentration, weights, parameters, slices, labels and records.

Given the mixing measure all records are independent, so each step is one vectorised operation over records or slots.
Only with one release of all records are their proposals decided on in turn.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp

from dpjax._util.spelling import names_arguments
from dpjax._util.validation import check_choice, check_count, fail
from dpjax.base import Array, Key
from dpjax.mixture.base import Mixing, MixtureInfo, MixtureState, Theta
from dpjax.mixture.problem import MixtureProblem
from dpjax.mixture.samplers.base import FIRST_CAPACITY, Sampler, Slots, at_labels, at_slots, summarize_clusters
from dpjax.mixture.samplers.records import (
    ImputedRecords,
    channel_densities,
    check_single,
    exact_records,
    proposed_records,
)
from dpjax.mixture.samplers.weights import (
    DrawWeights,
    Weights,
    blocked_weights,
    posterior_weights,
    start_concentration,
    stick_weights,
    update_concentration,
    update_concentration_of_sticks,
)
from dpjax.numerics import select_indices

__all__ = ["Conditional", "Slices", "conditional", "draw_slices", "open_slices"]

SLICE_SHARE = 0.2
"""Slice threshold for posterior weights, in units of 1 / n: about the weight of a cluster of one record."""

BRANCHES = (8, 12, 16, 24, 32, 48, 64, 96, 128)
"""Numbers of slots for which the choice of labels is compiled."""

MIN_BRANCHING = 2_000
"""Smallest number of densities per sweep from which skipping slots that are not needed saves time."""


@dataclass(frozen=True)
class Conditional(Sampler):
    """The conditional sampler; see `conditional`."""

    weights: Literal["posterior", "stick"] = "posterior"
    truncation: int | None = None
    proposals: int | None = None

    def fit(self, problem: MixtureProblem) -> "Conditional":
        """The sampler with the number of proposals filled in.

        Raises
        ------
        ValueError
            If there are proposals though no record is imputed, none though no marginal is known, or several per record
            with one release of all.
        """
        known = problem.channel is None or problem.tractable is not None
        proposals = (0 if known else 1) if self.proposals is None else self.proposals
        remedy = "Pass the number of proposals per record and sweep, or leave it out."
        if proposals > 0 and problem.channel is None:
            fail("proposals", proposals, "0 or None, as no records are imputed", "Leave it out.")
        if proposals == 0 and not known:
            fail("proposals", 0, "at least 1, as no marginal is known for this channel and component", remedy)
        check_single("proposals", proposals, problem)
        return replace(self, proposals=proposals)

    def init(
        self, problem: MixtureProblem, slots: Slots, mixing: Mixing, concentration: Array, labels: Array, records: Array
    ) -> MixtureState:
        """The state of these values, with what is computed from them."""
        counts, totals = summarize_clusters(problem.component, slots.capacity, labels, records)
        log_channel = jnp.zeros(labels.shape, counts.dtype)
        if problem.channel is not None and not self.draws_exactly:
            log_channel = channel_densities(problem.channel, problem.values, records).astype(counts.dtype)
        return MixtureState(labels, records, counts, totals, mixing, concentration, log_channel)

    def start(self, problem: MixtureProblem, slots: Slots, key: Key, labels: Array, records: Array) -> MixtureState:
        """A state with these labels and records; everything else is drawn."""
        key_concentration, key_weights, key_prior, key_theta = jax.random.split(key, 4)
        concentration = start_concentration(key_concentration, problem.concentration)
        counts, totals = summarize_clusters(problem.component, slots.capacity, labels, records)
        weights = self.draw_weights(key_weights, counts, problem.process(concentration))
        prior = problem.component.sample_prior(key_prior, slots.capacity)
        theta = problem.component.update(key_theta, prior, counts, totals)
        mixing = Mixing(weights.weights, theta, weights.beyond[-1])
        return self.init(problem, slots, mixing, concentration, labels, records)

    def step(
        self, problem: MixtureProblem, slots: Slots, key: Key, state: MixtureState
    ) -> tuple[MixtureState, MixtureInfo]:
        """A sweep that leaves p(labels, records, concentration, mixing measure | values) invariant."""
        return sweep(problem, self, slots, key, state)

    def first_capacity(self, problem: MixtureProblem) -> int:
        """The number of atoms of a truncated process, else the smallest initial number of slots."""
        del problem
        return FIRST_CAPACITY if self.truncation is None else self.truncation

    def truncation_error(self, problem: MixtureProblem, concentration: float) -> float:
        """The bound 4 n E[r] on the L1 distance between the records' priors with and without truncation.

        r is the mass of all atoms but the first H - 1. The bound of Ishwaran and James (2001), theorem 2, is 4 (1 -
        E[(1 - r)^n]). Their 4 n exp(-(H - 1) / α) for a Dirichlet process is an approximation, and smaller.
        """
        if self.truncation is None:
            return 0.0
        return min(2.0, 4 * problem.n * problem.process(jnp.asarray(concentration)).mean_remainder(self.truncation - 1))

    @property
    def draws_exactly(self) -> bool:
        """Whether records are drawn exactly given their parameters."""
        return self.proposals == 0

    @property
    def ordered(self) -> bool:
        """Whether the distribution of the weights depends on the order of the slots."""
        return self.truncation is not None or self.weights == "stick"

    @property
    def draw_weights(self) -> DrawWeights:
        """The function that draws the weights of the slots given the clusters."""
        if self.truncation is not None:
            return blocked_weights
        return stick_weights if self.weights == "stick" else posterior_weights


@names_arguments
def conditional(
    weights: Literal["posterior", "stick"] = "posterior", truncation: int | None = None, proposals: int | None = None
) -> Conditional:
    """Draw the mixing measure given the clusters, then the labels and the records, all at once.

    Slice variables limit the infinite mixing measure to finitely many atoms (Walker 2007; Kalli, Griffin and Walker
    2011).

    Parameters
    ----------
    weights
        ``"posterior"`` for weights that do not depend on the clusters' order, by the posterior representation of the
        Dirichlet process. ``"stick"`` for the sticks of Kalli, Griffin and Walker (2011), which mix more slowly.
    truncation
        Truncate the process to this number of atoms, whose weights are sticks (Ishwaran and James 2001); by default it
        is not truncated, and the number of slots grows as needed.
    proposals
        Number of proposals per record and sweep; 0 for exact draws. By default 0 if the channel's marginal under the
        component is known, else 1; always 1 for a release of all records.

    Raises
    ------
    TypeError, ValueError
        If a choice is unusable; with a problem, if it does not apply to it.

    Examples
    --------
    >>> import dpjax
    >>> sampler = dpjax.mixture.conditional(proposals=4)
    """
    check_choice("weights", weights, ("posterior", "stick"), "Name the representation of the weights.")
    if truncation is not None:
        truncation = check_count("truncation", truncation, "Pass the number of atoms, at least 2.", least=2)
    if proposals is not None:
        remedy = "Pass the number of proposals per record and sweep, or 0 for exact draws."
        proposals = check_count("proposals", proposals, remedy, least=0)
    return Conditional(weights, truncation, proposals)


def sweep(
    problem: MixtureProblem, sampler: Conditional, slots: Slots, key: Key, state: MixtureState
) -> tuple[MixtureState, MixtureInfo]:
    """A move that leaves p(labels, records, concentration, mixing measure | values) invariant.

    The mixing measure is drawn given the labels and records; then the labels given it, with the records integrated out
    if the marginal is known; then the records. On overflow the result must not be used.
    """
    key_concentration, key_weights, key_theta, key_uniform, key_record = jax.random.split(key, 5)
    n = state.labels.shape[0]
    concentration = draw_concentration(problem, sampler, key_concentration, state)
    weights = sampler.draw_weights(key_weights, state.counts, problem.process(concentration))
    theta = problem.component.update(key_theta, state.mixing.theta, state.counts, state.totals)
    uniforms = jax.random.uniform(key_uniform, (2, n), state.counts.dtype)
    slices = make_slices(sampler, 1 - uniforms[0], state.labels, weights)
    last = slots.capacity - jnp.argmax(state.counts[::-1] > 0)
    num_slots = jnp.maximum(slices.num_slots, last)
    slices = slices._replace(num_slots=num_slots)
    labels, num_stuck = choose_labels(problem, sampler, slots, uniforms[1], slices, theta, state)
    drawn = partial(impute, problem, sampler, key_record, at_labels(theta, labels), state)
    # The branch keeps the compiler from computing the records once for each use; under vmap it would not help.
    imputed = jax.lax.cond(slices.overflow, lambda: keep_records(state), drawn) if slots.in_turn else drawn()
    counts, totals = summarize_clusters(problem.component, slots.capacity, labels, imputed.records)
    mixing = Mixing(weights.weights, theta, weights.beyond[-1])
    moved = MixtureState(labels, imputed.records, counts, totals, mixing, concentration, imputed.log_channel)
    rate = jnp.mean(imputed.accepted, dtype=counts.dtype)
    return moved, MixtureInfo(rate, num_stuck + imputed.num_nonfinite, num_slots, slices.overflow)


def draw_concentration(problem: MixtureProblem, sampler: Conditional, key: Key, state: MixtureState) -> Array:
    """The concentration [] given the clusters; given their slots if the weights depend on the order."""
    prior, present, counts = problem.concentration, problem.process(state.concentration), state.counts
    if not sampler.ordered:
        return update_concentration(key, prior, present, jnp.sum(counts > 0), state.labels.shape[0])
    return update_concentration_of_sticks(key, prior, present, counts, sampler.truncation is not None)


class Slices(NamedTuple):
    """Slice variables, and the slots that each record may choose.

    Attributes
    ----------
    levels
        The slice variable u_i [n] of each record: only slots of height at least u_i may be chosen.
    heights
        The height ξ_h [H] of each slot, a fixed function of its weight.
    log_shares
        log(w_h / ξ_h) [H], the weight of a slot if it may be chosen.
    num_slots
        How many slots [] the records may choose from: all later ones are lower than every slice variable.
    overflow
        Whether a slot beyond the last could be chosen [].
    """

    levels: Array
    heights: Array
    log_shares: Array
    num_slots: Array
    overflow: Array


def make_slices(sampler: Conditional, uniforms: Array, labels: Array, weights: Weights) -> Slices:
    """The slices of a sweep, from uniforms [n] on (0, 1]."""
    if sampler.truncation is not None:
        return open_slices(labels, weights)
    threshold = 1.0 if sampler.weights == "stick" else min(1.0, SLICE_SHARE / labels.shape[0])
    return draw_slices(uniforms, labels, weights, jnp.asarray(threshold, uniforms.dtype))


def choose_labels(
    problem: MixtureProblem,
    sampler: Conditional,
    slots: Slots,
    uniforms: Array,
    slices: Slices,
    theta: Theta,
    state: MixtureState,
) -> tuple[Array, Array]:
    """New labels [n], and how many records kept theirs as no density was finite; only slots in reach are evaluated."""

    def among_first(size: int) -> tuple[Array, Array]:
        first = {name: leaf[:size] for name, leaf in theta.items()}
        log_densities = densities_at_slots(problem, sampler, first, state.records)
        reached = slices._replace(heights=slices.heights[:size], log_shares=slices.log_shares[:size])
        return choose_slots(uniforms, reached, log_densities, state.labels)

    # Under vmap all branches would be computed. For few records the compilation takes longer than it saves.
    worthwhile = slots.in_turn and len(uniforms) * slots.capacity >= MIN_BRANCHING
    sizes = [size for size in BRANCHES if size < slots.capacity] if worthwhile else []
    enough = jnp.sum(jnp.array(sizes, int) < slices.num_slots)
    return jax.lax.switch(enough, [partial(among_first, size) for size in (*sizes, slots.capacity)])


def densities_at_slots(problem: MixtureProblem, sampler: Conditional, theta: Theta, records: Array) -> Array:
    """The log-densities [H, n] from which labels are drawn: of the released values if known, else of the records."""
    tractable = problem.tractable if sampler.draws_exactly else None
    if tractable is not None:
        return at_slots(tractable.log_marginal, problem.values, theta)
    return at_slots(problem.component.log_density, records, theta)


def impute(
    problem: MixtureProblem, sampler: Conditional, key: Key, theta: Theta, state: MixtureState
) -> ImputedRecords:
    """The records given their parameters, leaves [n, ...]."""
    if problem.channel is None:
        return keep_records(state)
    if sampler.draws_exactly:
        assert problem.tractable is not None
        kernel = exact_records(problem.tractable)
    else:
        assert sampler.proposals is not None
        kernel = proposed_records(problem.channel, problem.component, sampler.proposals)
    return kernel(key, problem.values, theta, state.records, state.log_channel)


def keep_records(state: MixtureState) -> ImputedRecords:
    """The unchanged records, as an update."""
    return ImputedRecords(state.records, state.log_channel, jnp.ones(state.labels.shape, bool), jnp.array(0))


def draw_slices(uniforms: Array, labels: Array, weights: Weights, threshold: Array) -> Slices:
    """Slice variables u_i ~ U(0, ξ_(c_i)) given the labels and the *new* weights, where ξ_h = min(1, w_h / threshold).

    With a threshold of 1 they are those of Walker (2007) and Kalli, Griffin and Walker (2011). With a lower threshold,
    every atom above it can always be chosen, so that records move more freely, at the cost of a few more slots.

    Parameters
    ----------
    uniforms : [n]
        Uniform draws on (0, 1].
    labels : [n]
        The current slots.
    weights
        Drawn after the labels.
    threshold : []
        A fixed number in (0, 1].
    """
    heights = jnp.minimum(weights.weights / threshold, 1)
    levels = uniforms * heights[labels]
    lowest = jnp.min(levels)
    # No atom after a slot weighs more than the mass left there.
    open_slots = jnp.minimum(weights.beyond / threshold, 1) >= lowest
    log_shares = jnp.log(jnp.maximum(weights.weights, threshold))
    log_shares = jnp.where(weights.weights > 0, log_shares, -jnp.inf)
    return Slices(levels, heights, log_shares, jnp.sum(open_slots) + 1, open_slots[-1])


def open_slices(labels: Array, weights: Weights) -> Slices:
    """No slices: every slot may be chosen by every record."""
    shape, dtype = weights.weights.shape, weights.weights.dtype
    levels = jnp.zeros(labels.shape, dtype)
    return Slices(levels, jnp.ones(shape, dtype), jnp.log(weights.weights), jnp.array(shape[0]), jnp.array(False))


def choose_slots(uniforms: Array, slices: Slices, log_densities: Array, labels: Array) -> tuple[Array, Array]:
    """Labels drawn given levels, weights and parameters, and how many had no possible slot and kept their label.

    Parameters
    ----------
    uniforms : [n]
        Uniform draws on [0, 1).
    log_densities : [H, n]
        The log-density of each record at each slot.
    labels : [n]
        The current slots.
    """
    possible = slices.heights[:, None] >= slices.levels[None, :]
    log_weights = jnp.where(possible, log_densities + slices.log_shares[:, None], -jnp.inf)
    chosen, possible = select_indices(log_weights, uniforms)
    return jnp.where(possible, chosen, labels), jnp.sum(~possible)
