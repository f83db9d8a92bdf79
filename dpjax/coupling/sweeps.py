"""Coupled sweeps of IMwG and SOMA over the records of two chains."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from dpjax.base import Array, Key
from dpjax.coupling.decisions import OfferedColumns, decide_imwg, decide_soma
from dpjax.coupling.pairs import CoupledSweepState, RecordPair, agree, finish, start, update_flags
from dpjax.coupling.relabel import Relabelling, between_sweeps, within_sweep
from dpjax.exchangeable.placement import Placement
from dpjax.exchangeable.sweeps import Innovations, draw_innovations, replace_record
from dpjax.exchangeable.targets import ExchangeableTarget

__all__ = ["SweepInfo", "sweep", "sweep_records"]


class SweepInfo(NamedTuple):
    """What a coupled sweep reports.

    Attributes
    ----------
    acceptance_rate
        The share of offers accepted by each chain [2].
    num_nonfinite
        How many offers met a weight that is not a number, and is taken for zero [].
    """

    acceptance_rate: Array
    num_nonfinite: Array


def sweep_records(
    key: Key,
    target: ExchangeableTarget,
    pair: RecordPair,
    offers: RecordPair,
    placement: Placement,
    relabelling: Relabelling | None,
) -> tuple[RecordPair, SweepInfo]:
    """A coupled sweep of these offers: each chain alone makes the sweep with the offers to it."""
    innovation_key, order_key = jax.random.split(key)
    innovations = draw_innovations(innovation_key, placement)
    return sweep(target, pair, offers, placement, relabelling, innovations, order_key)


def sweep(
    target: ExchangeableTarget,
    pair: RecordPair,
    offers: RecordPair,
    placement: Placement,
    relabelling: Relabelling | None,
    innovations: Innovations,
    order_key: Key,
) -> tuple[RecordPair, SweepInfo]:
    """A coupled sweep as a function of its innovations; the key is used for relabelling between sweeps alone."""
    columns = target.columns(offers.first)
    second_columns = jnp.where(offers.same, columns, target.columns(offers.second))
    decide = decide_soma if placement.kind == "soma" else decide_imwg

    def attempt(states: CoupledSweepState, step: Any) -> Any:
        index, offer, innovation = step
        one, other, broken = decide(target, states, offer, innovation)
        moved = CoupledSweepState(
            replace_record(states.first, one, index, offer.first),
            replace_record(states.second, other, index, offer.second),
            update_flags(states, one, other, offer.same),
        )
        if relabelling == "within":
            moved = within_sweep(moved, one, other, offer.same)
        return agree(moved), (jnp.stack([one.accepted, other.accepted]), broken)

    steps = (jnp.arange(placement.offers), OfferedColumns(columns.T, second_columns.T, offers.same), innovations)
    states, (accepted, broken) = jax.lax.scan(attempt, start(target, pair), steps)
    if relabelling == "between":
        states = between_sweeps(order_key, states, offers.same)
    return finish(states, pair, offers), SweepInfo(jnp.mean(accepted, axis=0), jnp.sum(broken))
