"""Neal's algorithm 5 behind a channel: for each record in turn, a cluster from the urn and a value are proposed.

Algorithm 1 of Beraha, Favaro and Rao (2025), in parallel rounds; see `settle`. With one release of all records (section
5.1), the decisions of a round are a scan over the records.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import log
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jax.scipy.special import logsumexp

from dpjax._util.spelling import names_arguments
from dpjax._util.validation import check_count, check_flag, fail
from dpjax.base import Array, Key
from dpjax.mixture.base import MixtureState, Theta
from dpjax.mixture.problem import MixtureProblem
from dpjax.mixture.process import Process
from dpjax.mixture.samplers.base import Slots, at_labels
from dpjax.mixture.samplers.marginal import Marginal, Relabelled
from dpjax.mixture.samplers.records import channel_densities, check_single, decide
from dpjax.numerics import proper_density, select_indices, tree_where

__all__ = ["AuxiliaryRecords", "Neal5", "Urn", "draw_urn", "neal5", "settle"]


Proposed = TypeVar("Proposed")
"""The proposals to the records: a pytree."""


@dataclass(frozen=True)
class Neal5(Marginal):
    """Neal's algorithm 5; see `neal5`."""

    auxiliaries: int = 1
    redraw: bool = True

    def fit(self, problem: MixtureProblem) -> "Neal5":
        """The sampler, or an error for known records, or for several auxiliaries with one release of all records."""
        if problem.channel is None:
            remedy = "Use sampler=dpjax.mixture.neal8(); it needs no auxiliary records."
            fail("sampler", "neal5() with a density that is known", "records behind a channel", remedy)
        check_single("auxiliaries", self.auxiliaries, problem)
        return self

    @property
    def num_held(self) -> int:  # type: ignore[override]
        """Number of records per person in the state."""
        return 1 if self.redraw else self.auxiliaries

    def hold(self, problem: MixtureProblem, records: Array) -> tuple[Array, Array]:
        """The records, repeated for each auxiliary record in the state, and their log q(z_i | ·)."""
        assert problem.channel is not None
        log_channel = channel_densities(problem.channel, problem.values, records)
        if self.num_held == 1:
            return records, log_channel
        return jnp.repeat(records[:, None], self.num_held, 1), jnp.repeat(log_channel[:, None], self.num_held, 1)

    def relabel(self, problem: MixtureProblem, slots: Slots, key: Key, state: MixtureState) -> Relabelled:
        """A sweep of Metropolis steps over the records."""
        return proposed_labels(problem, self, slots, key, state)


@names_arguments
def neal5(auxiliaries: int = 1, redraw: bool = True) -> Neal5:
    """Propose for each record in turn a cluster and a value from it, behind any channel: Neal (2000), algorithm 5.

    Algorithm 1 of Beraha, Favaro and Rao (2025).

    Parameters
    ----------
    auxiliaries
        The number of auxiliary records that estimate the density of a proposal; always 1 for a release of all records.
    redraw
        Whether one of the auxiliary records is kept and the others are redrawn each sweep, so that one record per
        person informs the parameters. If not, all are kept (as in the paper), which mixes more slowly, and the records
        collected are [chain, draw, n, auxiliaries, ...].

    Raises
    ------
    TypeError, ValueError
        If a choice is unusable; with a problem, if the records are known, or all are released at once and there are
        several auxiliaries.

    Examples
    --------
    >>> import dpjax
    >>> sampler = dpjax.mixture.neal5(auxiliaries=3)
    """
    auxiliaries = check_count("auxiliaries", auxiliaries, "Pass how many auxiliary records each person gets.")
    check_flag("redraw", redraw, "Pass whether auxiliary records are redrawn.")
    return Neal5(auxiliaries, redraw)


class AuxiliaryRecords(NamedTuple):
    """Slots [n], the auxiliary records [m, n, ...] that go with them, and their log q(z_i | ·) [m, n]."""

    labels: Array
    records: Array
    log_channel: Array


def proposed_labels(problem: MixtureProblem, sampler: Neal5, slots: Slots, key: Key, state: MixtureState) -> Relabelled:
    """A sweep of Metropolis steps over the records that leaves labels and auxiliary records invariant.

    The target is the urn probability of the labels times Π_i (1/m) Σ_j q(z_i | y_ij) Π_j f(y_ij | θ_(c_i)); a proposal
    from the urn and from f is accepted with probability min(1, ĝ' / ĝ). One release η of all records replaces the
    product, and its ratio that of ĝ.
    """
    channel = problem.channel
    assert channel is not None
    key_fresh, key_urn, key_accept, key_proposal, key_redraw, key_select = jax.random.split(key, 6)
    n, dtype = state.labels.shape[0], state.counts.dtype
    theta = fill_empty(problem.component.sample_prior(key_fresh, slots.capacity), state)
    held = unpack(problem, sampler, key_redraw, theta, state)
    process = problem.process(state.concentration)
    shape = (n,) if process.discount is None else (2, n)
    urn = draw_urn(jax.random.uniform(key_urn, shape, dtype), state.counts, process)

    def proposal(labels: Array) -> AuxiliaryRecords:
        # The same random numbers in every round, so that equal clusters give equal proposals.
        records = draw_records(problem, jax.random.clone(key_proposal), theta, labels, sampler.auxiliaries)
        return AuxiliaryRecords(labels, records, log_channels(problem, records))

    def accept(proposals: AuxiliaryRecords) -> Array:
        log_ratios = log_mean(proposals.log_channel) - present
        return decide(channel, held.records[0], proposals.records[0], log_ratios, log_uniforms)

    present = log_mean(held.log_channel)
    log_uniforms = jnp.log1p(-jax.random.uniform(key_accept, (n,), dtype))
    proposals = settle(urn, state.labels, proposal, accept)
    accepted = accept(proposals)
    records = jax.vmap(tree_where, in_axes=(None, 0, 0))(accepted, proposals.records, held.records)
    log_channel = jnp.where(accepted[None], proposals.log_channel, held.log_channel)
    labels = jnp.where(accepted, proposals.labels, state.labels)
    packed = pack(sampler, key_select, AuxiliaryRecords(labels, records, log_channel))
    num_nonfinite = jnp.sum(jnp.any(jnp.isnan(proposals.log_channel), axis=0))
    rate = jnp.mean(accepted, dtype=dtype)
    _, settled = urn.in_turn(state.labels, labels)
    return Relabelled(*packed, theta, rate, num_nonfinite, settled.overflow)


def fill_empty(fresh: Theta, state: MixtureState) -> Theta:
    """The parameters [H, ...] of the clusters, with fresh ones in the empty slots."""
    occupied, present = state.counts > 0, state.mixing.theta
    return {name: tree_where(occupied, present[name], leaf) for name, leaf in fresh.items()}


def draw_records(problem: MixtureProblem, key: Key, theta: Theta, labels: Array, size: int) -> Array:
    """Several records [size, n, ...] for each of the labels [n]."""
    drawn = problem.component.sample(key, at_labels(theta, jnp.tile(labels, size)))
    return drawn.reshape(size, labels.shape[0], *drawn.shape[1:])


def log_channels(problem: MixtureProblem, records: Array) -> Array:
    """log q(z_i | y_ij) [m, n]."""
    assert problem.channel is not None
    channel = problem.channel
    return jax.vmap(lambda row: channel_densities(channel, problem.values, row))(records)


def log_mean(log_channel: Array) -> Array:
    """log ĝ_i [n], the mean over the auxiliaries of q (equation 8)."""
    if log_channel.shape[0] == 1:
        return log_channel[0]
    return logsumexp(log_channel, axis=0) - log(log_channel.shape[0])


def unpack(problem: MixtureProblem, sampler: Neal5, key: Key, theta: Theta, state: MixtureState) -> AuxiliaryRecords:
    """The auxiliary records of the state, or its one record with others redrawn; this leaves their target invariant."""
    if sampler.num_held > 1:
        return AuxiliaryRecords(state.labels, jnp.swapaxes(state.records, 0, 1), state.log_channel.T)
    records, log_channel = state.records[None], state.log_channel[None]
    if sampler.auxiliaries > 1:
        others = draw_records(problem, key, theta, state.labels, sampler.auxiliaries - 1)
        records = jnp.concatenate([records, others])
        log_channel = jnp.concatenate([log_channel, log_channels(problem, others)])
    return AuxiliaryRecords(state.labels, records, log_channel)


def pack(sampler: Neal5, key: Key, held: AuxiliaryRecords) -> AuxiliaryRecords:
    """The auxiliary records to keep in the state: all, or one drawn with probability ∝ q(z_i | ·)."""
    if sampler.num_held > 1:
        return AuxiliaryRecords(held.labels, jnp.swapaxes(held.records, 0, 1), held.log_channel.T)
    if sampler.auxiliaries == 1:
        return AuxiliaryRecords(held.labels, held.records[0], held.log_channel[0])
    num_records = held.log_channel.shape[1]
    uniforms = jax.random.uniform(key, (num_records,), held.log_channel.dtype)
    chosen, _ = select_indices(proper_density(held.log_channel), uniforms)
    place = jnp.arange(num_records)
    return AuxiliaryRecords(held.labels, held.records[chosen, place], held.log_channel[chosen, place])


class Urn(NamedTuple):
    """The cluster proposed for each record.

    Attributes
    ----------
    sources
        The other record [n] whose cluster is proposed, unless it is new.
    fresh
        Whether the proposed cluster is new [n].
    slots
        The empty slot [n] of each new cluster, all different.
    overflow
        Whether there are more new clusters than empty slots [].
    refusals
        Only with a discount, for which `fresh` depends on the labels: see `in_turn`.
    """

    sources: Array
    fresh: Array
    slots: Array
    overflow: Array
    refusals: "Refusals | None" = None

    def in_turn(self, before: Array, after: Array) -> tuple[Array, "Urn"]:
        """The slot [n] proposed for each record in its turn, and the urn with the new clusters that there are then.

        Parameters
        ----------
        before
            The labels [n] before the sweep.
        after
            Those after it; to a record only those of earlier records matter.
        """
        earlier = self.sources < jnp.arange(after.shape[0], dtype=after.dtype)
        joined = jnp.where(earlier, after[self.sources], before[self.sources])
        urn = self
        if self.refusals is not None:
            sizes = sizes_in_turn(self.refusals.empty_so_far.shape[0], before, after, joined)
            fresh = self.refusals.always | (self.refusals.multiples * sizes.astype(self.refusals.multiples.dtype) < 1)
            slots, overflow = place_new(fresh, self.refusals.empty_so_far)
            urn = self._replace(fresh=fresh, slots=slots, overflow=overflow)
        return jnp.where(urn.fresh, urn.slots, joined), urn


class Refusals(NamedTuple):
    """What replaces the cluster of another record by a new one.

    Attributes
    ----------
    multiples
        A number [n] for each record: the cluster is replaced if its size times this number is below 1.
    always
        Whether the cluster is new [n] whatever the labels.
    empty_so_far
        How many slots [H] up to each are empty before the sweep.
    """

    multiples: Array
    always: Array
    empty_so_far: Array


def draw_urn(uniforms: Array, counts: Array, process: Process) -> Urn:
    """Urn proposals for each record: the cluster of one of n - 1 others, or a new cluster, with weights 1 and α.

    With a discount d, the cluster of another record is replaced by a new one with probability d divided by its size.
    So clusters of n_h other records weigh n_h - d, and a new one weighs α + d k.

    Parameters
    ----------
    uniforms : [n], or [2, n] with a discount
        Uniform draws on [0, 1).
    counts : [H]
        The sizes of the clusters.
    """
    first = uniforms if process.discount is None else uniforms[0]
    n = first.shape[0]
    places = jnp.floor(first * (n - 1 + process.concentration)).astype(jnp.int32)
    fresh = places >= n - 1
    sources = places + (places >= jnp.arange(n, dtype=jnp.int32)).astype(jnp.int32)
    empty_so_far = jnp.cumsum(counts == 0)
    urn = Urn(jnp.where(fresh, 0, sources), fresh, *place_new(fresh, empty_so_far))
    if process.discount is None:
        return urn
    return urn._replace(refusals=Refusals(uniforms[1] / process.discount, fresh, empty_so_far))


def place_new(fresh: Array, empty_so_far: Array) -> tuple[Array, Array]:
    """The empty slot [n] of each new cluster, in their order, and whether there are too few []."""
    new_so_far = jnp.cumsum(fresh)
    slots = jnp.sum(empty_so_far[None, :] < new_so_far[:, None], axis=1, dtype=jnp.int32)
    return jnp.minimum(slots, empty_so_far.shape[0] - 1), new_so_far[-1] > empty_so_far[-1]


def sizes_in_turn(capacity: int, before: Array, after: Array, slots: Array) -> Array:
    """How many other records are in a slot [n] given for each record, when it is this record's turn."""
    numbers = jnp.arange(capacity, dtype=before.dtype)
    old, new = (labels[:, None] == numbers[None, :] for labels in (before, after))
    left = jnp.cumsum(old, axis=0, dtype=jnp.int32)
    came = jnp.cumsum(new, axis=0, dtype=jnp.int32) - new.astype(jnp.int32)
    return jnp.take_along_axis(left[-1:] - left + came, slots[:, None], axis=1)[:, 0]


def settle(
    urn: Urn, labels: Array, proposal: Callable[[Array], Proposed], accept: Callable[[Proposed], Array]
) -> Proposed:
    """The proposals that records get when they are decided on one after another.

    Each round decides on all records at once, given the decisions on earlier records in the previous round. A record
    that depends on no other is right in the first round, one that depends on it in the second, and so on. When a round
    changes no proposal, all are right.

    Parameters
    ----------
    labels : [n]
        The slots before the sweep.
    proposal
        ``labels -> proposals``; the proposal of a record depends on its own label only.
    accept
        ``proposals -> [n]``; whether each record accepts, which must not depend on later records.
    """

    def unfinished(carry: tuple[Array, Array, Proposed, Array]) -> Array:
        return carry[3]

    def decide(carry: tuple[Array, Array, Proposed, Array]) -> tuple[Array, Array, Proposed, Array]:
        number, given, _, _ = carry
        proposals = proposal(given)
        following, _ = urn.in_turn(labels, jnp.where(accept(proposals), given, labels))
        # The bound stops endless cycles, which a component whose draws depend on other records' parameters could cause.
        changed = jnp.any(following != given) & (number < labels.shape[0])
        return number + 1, following, proposals, changed

    start, _ = urn.in_turn(labels, labels)
    empty = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), jax.eval_shape(proposal, start))
    return jax.lax.while_loop(unfinished, decide, (jnp.array(0), start, empty, jnp.array(True)))[2]
