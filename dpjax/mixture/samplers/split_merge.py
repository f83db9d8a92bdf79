"""Split-merge moves: the cluster of two records is split, or the two clusters that they are in are merged."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.special import gammaln

from dpjax._util.validation import check_count, check_instance, fail
from dpjax.base import Array, Key
from dpjax.mixture.base import Component, Conjugate, Mixing, MixtureInfo, MixtureState, Theta, Tractable
from dpjax.mixture.problem import MixtureProblem
from dpjax.mixture.samplers.base import Sampler, Slots, at_labels, at_slots, summarize_clusters
from dpjax.mixture.samplers.marginal import evidence_of
from dpjax.mixture.starts import start_records
from dpjax.numerics import proper_density, tree_where
from dpjax.numerics.gamma import draw_log_gamma
from dpjax.numerics.linear_algebra import product

__all__ = ["SplitMerge", "split_merge"]


TOGETHER = 2
"""Index of the union, after those of the two clusters (sides 0 and 1); also the side of records not involved."""


@dataclass(frozen=True)
class SplitMerge(Sampler):
    """Split-merge moves before each sweep of another sampler; see `split_merge`."""

    sampler: Sampler
    proposals: int = 1
    launch_scans: int = 5

    def fit(self, problem: MixtureProblem) -> "SplitMerge":
        """The sampler fitted to the problem.

        Raises
        ------
        ValueError
            If the base measure is not conjugate to the records, there is only one record, or the sampler does not
            support the problem or the moves.
        """
        sampler = self.sampler.fit(problem)
        sampler.check_split_merge()
        if not isinstance(problem.component, Conjugate):
            remedy = "It needs a conjugate base measure with log_evidence(counts, totals)."
            fail("split_merge", f"moves with {type(problem.component).__name__}", "none with it", remedy)
        if problem.n < 2:
            fail("split_merge", "moves of one record", "at least 2 records", "It has no other to share a cluster with.")
        return replace(self, sampler=sampler)

    def init(
        self, problem: MixtureProblem, slots: Slots, mixing: Mixing, concentration: Array, labels: Array, records: Array
    ) -> MixtureState:
        """The state with these values, as made by the sampler."""
        return self.sampler.init(problem, slots, mixing, concentration, labels, records)

    def start(self, problem: MixtureProblem, slots: Slots, key: Key, labels: Array, records: Array) -> MixtureState:
        """A state with these labels and records, as made by the sampler."""
        return self.sampler.start(problem, slots, key, labels, records)

    def step(
        self, problem: MixtureProblem, slots: Slots, key: Key, state: MixtureState
    ) -> tuple[MixtureState, MixtureInfo]:
        """Split-merge moves and then a sweep, which together leave p(labels, records, ... | values) invariant."""
        key_move, key_theta, key_sweep = jax.random.split(key, 3)
        moved = reseat_clusters(problem, self, slots, key_move, state)
        counts, totals = summarize_clusters(problem.component, slots.capacity, moved.labels, moved.records)
        theta = problem.component.update(key_theta, state.mixing.theta, counts, totals)
        mixing = state.mixing._replace(theta=theta)
        state = MixtureState(
            moved.labels, moved.records, counts, totals, mixing, state.concentration, state.log_channel
        )
        state, info = self.sampler.step(problem, slots, key_sweep, state)
        return state, info._replace(num_split_merges=moved.num_accepted, overflow=info.overflow | moved.overflow)

    def first_capacity(self, problem: MixtureProblem) -> int:
        """Number of slots with which the sampler begins."""
        return self.sampler.first_capacity(problem)


def split_merge(sampler: Sampler, proposals: int = 1, launch_scans: int = 5) -> SplitMerge:
    """Begin each sweep with proposals to split a cluster or to merge two: Jain and Neal (2004, 2007).

    It needs a base measure that is conjugate to the records, and supports neither ordered weights
    (``conditional(weights="stick")`` or a truncation) nor ``neal5(redraw=False)``.

    Parameters
    ----------
    sampler
        The sampler of the sweeps, such as ``conditional()``.
    proposals
        Number of proposals before each sweep.
    launch_scans
        Number of restricted Gibbs scans before each launch state.

    Raises
    ------
    TypeError, ValueError
        If an argument is unusable; with a problem, if it or the sampler does not support such moves.

    Examples
    --------
    >>> import dpjax
    >>> sampler = dpjax.mixture.split_merge(dpjax.mixture.conditional(), proposals=2)
    """
    check_instance("sampler", sampler, Sampler, "Pass one such as dpjax.mixture.conditional().")
    proposals = check_count("proposals", proposals, "Pass the number of proposals before each sweep.")
    remedy = "Pass the number of scans before a launch state, or 0."
    return SplitMerge(sampler, proposals, check_count("launch_scans", launch_scans, remedy, least=0))


class Reseated(NamedTuple):
    """Labels [n] and records [n, ...] after some moves, how many were accepted [], and whether slots ran out []."""

    labels: Array
    records: Array
    num_accepted: Array
    overflow: Array


def reseat_clusters(
    problem: MixtureProblem, moves: SplitMerge, slots: Slots, key: Key, state: MixtureState
) -> Reseated:
    """Moves that leave p(labels, records | concentration, values) invariant, the parameters integrated out.

    Their density is ∝ α^K Π_k Γ(n_k) m(y_k) Π_i q(z_i | y_i), with m the component's evidence. If the sampler draws
    records exactly, those of the clusters involved are redrawn with their sides; else they do not change.

    Notes
    -----
    Jain and Neal (2004, 2007), with another launch state. It consists of parameters and weights of the two clusters
    instead of an allocation of the records, so that all sides are drawn at once.
    """
    theta = {name: leaf[: TOGETHER + 1] for name, leaf in state.mixing.theta.items()}
    tractable = problem.tractable if moves.sampler.draws_exactly else None

    def propose(index: Array, present: Reseated) -> Reseated:
        key_anchors, key_launch, key_accept = jax.random.split(jax.random.fold_in(key, index), 3)
        move = SplitMove(problem, tractable, theta, draw_anchors(key_anchors, present.labels))
        launch, proposed = draw_launch(move, key_launch, moves.launch_scans, present.records)
        splitting = present.labels[move.anchors.first] == present.labels[move.anchors.second]
        proposal = compare(splitting, move, proposed, present)
        log_ratio = log_split(move, launch, proposal, state.concentration)
        uniform = jax.random.uniform(key_accept, (), state.concentration.dtype)
        accepted = jnp.log1p(-uniform) < proper_density(jnp.where(splitting, log_ratio, -log_ratio))
        return reseat(slots.capacity, accepted, splitting, move.anchors, proposal, present)

    start = Reseated(state.labels, state.records, jnp.array(0), jnp.array(False))
    return jax.lax.fori_loop(0, moves.proposals, propose, start)


class Anchors(NamedTuple):
    """The two records [] whose cluster is split, or whose clusters are merged, and which [n] records are in these."""

    first: Array
    second: Array
    involved: Array


def draw_anchors(key: Key, labels: Array) -> Anchors:
    """Two distinct records, drawn uniformly, and those that share a cluster with them."""
    key_first, key_second = jax.random.split(key)
    n = labels.shape[0]
    first = jax.random.randint(key_first, (), 0, n, jnp.int32)
    second = jax.random.randint(key_second, (), 0, n - 1, jnp.int32)
    second = second + (second >= first).astype(jnp.int32)
    return Anchors(first, second, (labels == labels[first]) | (labels == labels[second]))


class SplitMove(NamedTuple):
    """The fixed parts of one move.

    Attributes
    ----------
    tractable
        The known marginal g(z | θ), if the records involved are proposed with their sides; None if they do not change.
    theta
        Parameters [3, ...] of the right shapes; exact draws do not depend on them.
    """

    problem: MixtureProblem
    tractable: Tractable | None
    theta: Theta
    anchors: Anchors


class SplitProposal(NamedTuple):
    """The sides [n] of the records, 0 or 1, and the records [n, ...] that go with two clusters and with their union."""

    sides: Array
    apart: Array
    together: Array


def compare(splitting: Array, move: SplitMove, proposed: SplitProposal, present: Reseated) -> SplitProposal:
    """The split and the merged state between which the move decides: one is current, the other proposed."""
    anchors = move.anchors
    now = jnp.where(anchors.involved, (present.labels == present.labels[anchors.second]).astype(jnp.int32), TOGETHER)
    sides = jnp.where(splitting, proposed.sides, now)
    if move.tractable is None:
        return SplitProposal(sides, present.records, present.records)
    apart = jnp.where(splitting, proposed.apart, present.records)
    return SplitProposal(sides, apart, jnp.where(splitting, present.records, proposed.together))


class LaunchState(NamedTuple):
    """The parameters from which a proposal is drawn.

    Attributes
    ----------
    theta
        The parameters [3, ...] of the two clusters and of their union.
    log_densities
        The log-densities [3, n] under them of the records, or of the released values if records are proposed.
    log_odds
        The log-odds [n] of the second cluster against the first.
    """

    theta: Theta
    log_densities: Array
    log_odds: Array


def log_split(move: SplitMove, launch: LaunchState, proposal: SplitProposal, concentration: Array) -> Array:
    """The log acceptance ratio [] of a split; that of a merge is its negative. Common factors cancel."""
    component = move.problem.component
    counts, totals = summarize_sides(component, proposal)
    log_evidence, log_sizes = evidence_of(component)(counts, totals), gammaln(counts)
    log_clusters = log_evidence + log_sizes
    log_ratio = jnp.log(concentration) + log_clusters[0] + log_clusters[1] - log_clusters[TOGETHER]
    log_ratio = log_ratio - log_sides(move, launch, proposal.sides)
    if move.tractable is None:
        return log_ratio
    one = jnp.full_like(proposal.sides, TOGETHER)
    of_two = log_imputed(move, launch, proposal.sides, proposal.apart)
    return log_ratio - of_two + log_imputed(move, launch, one, proposal.together)


def reseat(
    capacity: int, accepted: Array, splitting: Array, anchors: Anchors, proposal: SplitProposal, present: Reseated
) -> Reseated:
    """Labels and records after the decision; the second anchor's side gets the first empty slot."""
    labels = present.labels
    slots = jnp.arange(capacity, dtype=labels.dtype)
    occupied = jnp.any(labels[None, :] == slots[:, None], axis=1)
    opened = jnp.argmin(occupied).astype(labels.dtype)
    second_side = jnp.where(splitting, opened, labels[anchors.first])
    moved = jnp.where(accepted & (proposal.sides == 1), second_side, labels)
    records = jnp.where(splitting, proposal.apart, proposal.together)
    records = tree_where(accepted & anchors.involved, records, present.records)
    overflow = present.overflow | (accepted & splitting & jnp.all(occupied))
    return Reseated(moved, records, present.num_accepted + accepted.astype(present.num_accepted.dtype), overflow)


def draw_launch(move: SplitMove, key: Key, num_scans: int, records: Array) -> tuple[LaunchState, SplitProposal]:
    """The launch state after some scans, and a proposal drawn from it.

    The first scan starts from the anchors alone, so that the launch state depends on the current state only through the
    anchors and the set of records involved.
    """
    key_start, key_scan = jax.random.split(key)
    if move.tractable is not None:
        # The records are proposed as well, so the launch state must not depend on the current ones.
        records = start_records(move.problem, key_start)
    nobody = jnp.full(records.shape[0], TOGETHER, jnp.int32)
    start = SplitProposal(with_anchors(move.anchors, nobody), records, records)

    def scan(proposal: SplitProposal, index: Array) -> tuple[SplitProposal, LaunchState]:
        key_launch, key_proposal = jax.random.split(jax.random.fold_in(key_scan, index))
        launch = fit(move, key_launch, proposal)
        return draw_proposal(move, key_proposal, launch, proposal), launch

    proposal, launches = jax.lax.scan(scan, start, jnp.arange(num_scans + 1))
    return jax.tree.map(lambda leaf: leaf[-1], launches), proposal


def with_anchors(anchors: Anchors, sides: Array) -> Array:
    """The sides [n] with those of the anchors, which are fixed, and none for records not involved."""
    places = jnp.arange(sides.shape[0], dtype=jnp.int32)
    sides = jnp.where(places == anchors.first, 0, jnp.where(places == anchors.second, 1, sides))
    return jnp.where(anchors.involved, sides, TOGETHER)


def fit(move: SplitMove, key: Key, proposal: SplitProposal) -> LaunchState:
    """A launch state drawn given an allocation: parameters and weights of the clusters given their records."""
    key_theta, key_share = jax.random.split(key)
    problem = move.problem
    counts, totals = summarize_sides(problem.component, proposal)
    theta = problem.component.update(key_theta, move.theta, counts, totals)
    log_gammas = draw_log_gamma(key_share, counts[:TOGETHER])
    if move.tractable is None:
        log_densities = at_slots(problem.component.log_density, proposal.apart, theta)
    else:
        log_densities = at_slots(move.tractable.log_marginal, problem.values, theta)
    log_odds = log_densities[1] - log_densities[0] + log_gammas[1] - log_gammas[0]
    return LaunchState(theta, log_densities, log_odds)


def summarize_sides(component: Component, proposal: SplitProposal) -> tuple[Array, Array]:
    """The numbers of records [3] and sums of features [3, k] of the two clusters and of their union."""
    apart, together = (jax.vmap(component.features)(records) for records in (proposal.apart, proposal.together))
    sides = jnp.arange(TOGETHER, dtype=jnp.int32)[:, None] == proposal.sides[None]
    both = jnp.any(sides, axis=0)
    of_sides = product(sides.astype(apart.dtype), apart)
    of_both = product(both[None].astype(apart.dtype), together)
    members = jnp.concatenate([sides, both[None]]).astype(apart.dtype)
    return jnp.sum(members, axis=1), jnp.concatenate([of_sides, of_both])


def draw_proposal(move: SplitMove, key: Key, launch: LaunchState, present: SplitProposal) -> SplitProposal:
    """Sides given a launch state and, if the marginal is known, records given the sides."""
    key_side, key_apart, key_together = jax.random.split(key, 3)
    uniforms = jax.random.uniform(key_side, launch.log_odds.shape, launch.log_odds.dtype)
    sides = with_anchors(move.anchors, (uniforms < jax.nn.sigmoid(launch.log_odds)).astype(jnp.int32))
    if move.tractable is None:
        return present._replace(sides=sides)
    values, draw = move.problem.values, move.tractable.sample_latent
    apart = draw(key_apart, values, at_labels(launch.theta, sides))
    together = draw(key_together, values, at_labels(launch.theta, jnp.full_like(sides, TOGETHER)))
    return SplitProposal(sides, apart, together)


def log_sides(move: SplitMove, launch: LaunchState, sides: Array) -> Array:
    """The log-probability [] of the free sides, those of records other than the anchors, given a launch state."""
    places = jnp.arange(sides.shape[0], dtype=jnp.int32)
    free = move.anchors.involved & (places != move.anchors.first) & (places != move.anchors.second)
    return jnp.sum(jnp.where(free, jax.nn.log_sigmoid(jnp.where(sides == 1, launch.log_odds, -launch.log_odds)), 0))


def log_imputed(move: SplitMove, launch: LaunchState, sides: Array, records: Array) -> Array:
    """The log-density [] of the records involved under f(y | θ) q(z | y) / g(z | θ), without the factors q."""
    theta = at_labels(launch.theta, sides)
    log_records = jax.vmap(move.problem.component.log_density)(records, theta)
    log_values = launch.log_densities[sides, jnp.arange(sides.shape[0])]
    return jnp.sum(jnp.where(move.anchors.involved, log_records - log_values, 0))
