"""Coupled sweeps of IMwG and SOMA over the records of two chains."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from dpjax.base import Array, Key
from dpjax.coupling.couplings import common_uniform, couple_indices
from dpjax.coupling.pairs import CoupledSweepState, RecordPair, is_place, records_after, start_pair, synchronize
from dpjax.coupling.relabel import Relabelling, between_sweeps, within_sweep
from dpjax.data_augmentation.records.placed import Decision, ExchangeableTarget, SweepState
from dpjax.data_augmentation.records.soma import reverse_total
from dpjax.exchangeable.sweeps import Innovations, Placement, draw_innovations
from dpjax.numerics import proper_density, tree_where
from dpjax.numerics.loops import scan_short

__all__ = ["SweepInfo", "sweep", "sweep_records"]


class SweepInfo(NamedTuple):
    """The report of a coupled sweep.

    Attributes
    ----------
    acceptance_rate
        The share of proposals accepted by each chain [2].
    num_nonfinite
        How many proposals had a non-finite weight, read as zero [].
    """

    acceptance_rate: Array
    num_nonfinite: Array


def sweep_records(
    key: Key,
    target: ExchangeableTarget,
    pair: RecordPair,
    proposals: RecordPair,
    placement: Placement,
    relabelling: Relabelling | None,
) -> tuple[RecordPair, SweepInfo]:
    """A coupled sweep of these proposals; each chain alone makes an ordinary sweep of its proposals."""
    innovation_key, order_key = jax.random.split(key)
    innovations = draw_innovations(innovation_key, placement)
    return sweep(target, pair, proposals, placement, relabelling, innovations, order_key)


def sweep(
    target: ExchangeableTarget,
    pair: RecordPair,
    proposals: RecordPair,
    placement: Placement,
    relabelling: Relabelling | None,
    innovations: Innovations,
    order_key: Key,
) -> tuple[RecordPair, SweepInfo]:
    """A coupled sweep as a function of its innovations; the key is used only for relabelling between sweeps."""
    columns = target.columns(proposals.first)
    second_columns = jnp.where(proposals.same, columns, target.columns(proposals.second))
    decide = partial(decide_soma, placement.attempts) if placement.kind == "soma" else decide_imwg

    def attempt(states: CoupledSweepState, step: Any) -> Any:
        index, proposal, innovation = step
        one, other, nonfinite = decide(target, states, proposal, innovation)
        moved = CoupledSweepState(
            replace_record(states.first, one, index, proposal.first),
            replace_record(states.second, other, index, proposal.second),
            update_flags(states, one, other, proposal.same),
        )
        if relabelling == "within":
            moved = within_sweep(moved, one, other, proposal.same)
        return synchronize(moved), (jnp.stack([one.accepted, other.accepted]), nonfinite)

    steps = (jnp.arange(placement.proposals), ProposedColumns(columns.T, second_columns.T, proposals.same), innovations)
    states, (accepted, nonfinite) = scan_short(attempt, start_pair(target, pair), steps)
    if relabelling == "between":
        states = between_sweeps(order_key, states, proposals.same)
    return records_after(states, pair, proposals), SweepInfo(jnp.mean(accepted, axis=0), jnp.sum(nonfinite))


def replace_record(state: SweepState, decision: Decision, index: Array, column: Array) -> SweepState:
    """The state after the decision on proposal number `index` [] with this column [d].

    Uses masks, which under `vmap` run several times faster than scattered writes.
    """
    written = is_place(state.source, decision.place) & decision.accepted
    replaced = state.columns[:, decision.place]
    return SweepState(
        jnp.where(decision.accepted, state.summary + column - replaced, state.summary),
        jnp.where(decision.accepted, decision.log_weight, state.log_weight),
        jnp.where(written[None], column[:, None], state.columns),
        jnp.where(written, state.source.shape[0] + index, state.source),
    )


def update_flags(states: CoupledSweepState, one: Decision, other: Decision, same_proposal: Array) -> Array:
    """The flags [n] after both decisions on a proposal: set if both accept the same, cleared if one does."""
    wrote_one = is_place(states.same, one.place) & one.accepted
    wrote_other = is_place(states.same, other.place) & other.accepted
    return jnp.where(wrote_one & wrote_other, same_proposal, states.same & ~(wrote_one | wrote_other))


class ProposedColumns(NamedTuple):
    """One proposal for each chain as columns [d], and whether the two are the same []."""

    first: Array
    second: Array
    same: Array


def decide_soma(
    attempts: int,
    target: ExchangeableTarget,
    states: CoupledSweepState,
    proposal: ProposedColumns,
    innovation: Innovations,
) -> tuple[Decision, Decision, Array]:
    """Coupled SOMA: a maximal coupling of places, acceptance by one uniform; and whether a weight is non-finite [].

    Xiong and Ju (2025), Appendix A.6: places by a maximal coupling of w / W and w̃ / W̃. Each chain alone makes a step
    of their Algorithm 1. The residual sums begin with the places at which the chains differ, so that these are coupled
    with each other rather than with places that agree. The proof of their Lemma 18 needs this order, and pairs meet
    about twice as soon.
    """
    first, second, same = states
    window = None if innovation.places is None else (innovation.places, attempts)
    raw = [
        target.log_weights_with(side.summary, side.columns, window, column)
        for side, column in ((first, proposal.first), (second, proposal.second))
    ]
    weights, other_weights = map(proper_density, raw)
    same_places = same if window is None else jax.lax.dynamic_slice_in_dim(same, *window)
    (index, log_total), (other, other_total) = couple_indices(innovation.select, weights, other_weights, ~same_places)
    accepted, other_accepted, _ = common_uniform(
        innovation.accept,
        log_acceptance(weights[index], log_total, first.log_weight),
        log_acceptance(other_weights[other], other_total, second.log_weight),
    )
    places = (index, other) if window is None else (window[0] + index, window[0] + other)
    one = Decision(places[0], accepted, weights[index])
    two = Decision(places[1], other_accepted, other_weights[other])
    nonfinite = ~jnp.all(raw[0] < jnp.inf) | ~jnp.all(raw[1] < jnp.inf)
    return one, copy_if_same(states, proposal, one, two), nonfinite


def log_acceptance(log_weight: Array, log_total: Array, log_current: Array) -> Array:
    """log W / (W + w_0 − w_I) [], the acceptance of equation (8) before the minimum with 1."""
    scale = jnp.maximum(log_total, log_current)
    weight, total, current = (jnp.exp(log - scale) for log in (log_weight, log_total, log_current))
    return log_total - scale - jnp.log(reverse_total(weight, total, current))


def decide_imwg(
    target: ExchangeableTarget, states: CoupledSweepState, proposal: ProposedColumns, innovation: Innovations
) -> tuple[Decision, Decision, Array]:
    """Coupled IMwG: one place for both chains, acceptance by one uniform; and whether a weight is non-finite []."""
    first, second, _ = states
    place = jnp.asarray(innovation.places)
    raw = target.log_weight_with(first.summary, first.columns, place, proposal.first)
    other_raw = target.log_weight_with(second.summary, second.columns, place, proposal.second)
    weight, other_weight = proper_density(raw), proper_density(other_raw)
    accepted, other_accepted, _ = common_uniform(
        innovation.accept, weight - first.log_weight, other_weight - second.log_weight
    )
    one, other = Decision(place, accepted, weight), Decision(place, other_accepted, other_weight)
    return one, copy_if_same(states, proposal, one, other), ~((raw < jnp.inf) & (other_raw < jnp.inf))


def copy_if_same(states: CoupledSweepState, proposal: ProposedColumns, one: Decision, other: Decision) -> Decision:
    """The second chain's decision, replaced by the first's if all records and the proposal are the same."""
    return tree_where(proposal.same & jnp.all(states.same), one, other)
