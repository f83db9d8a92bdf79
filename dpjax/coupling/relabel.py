"""Relabelling: reordering the second chain's records to bring the pair closer.

This is valid for two reasons. The kernel of a chain may commute with permutations, as do full SOMA and random-scan
IMwG. Then the multiset of its records is a Markov chain by itself. So the second chain may be reordered after each
proposal by any rule that depends on both chains. A systematic scan or a contiguous window does not commute. Then the
second chain is reordered after a sweep and one common uniform permutation is applied to both chains. So each sweep
begins with records in a uniform order given the past.
"""

from typing import Any, Literal

import jax
import jax.numpy as jnp

from dpjax._util.validation import describe, fail
from dpjax.base import Array, Key
from dpjax.coupling.pairs import CoupledSweepState, is_place
from dpjax.data_augmentation.records.placed import Decision, SweepState
from dpjax.exchangeable.sweeps import Placement
from dpjax.numerics import sum_rows
from dpjax.numerics.loops import scan_short

__all__ = ["Relabelling", "between_sweeps", "check_relabelling", "within_sweep"]

Relabelling = Literal["within", "between"]
"""When the second chain's records are reordered: after each proposal, or after each sweep."""


def check_relabelling(relabel: Any, placement: Placement) -> Relabelling | None:
    """When to relabel, None for never; True chooses ``"within"`` if that is valid, else ``"between"``.

    Raises
    ------
    ValueError
        If ``"within"`` is given for a systematic scan or windows, whose kernels do not commute with permutations.
    """
    if relabel is False:
        return None
    if relabel is True:
        return "within" if placement.is_equivariant else "between"
    if not (isinstance(relabel, str) and relabel in ("within", "between")):
        fail("relabel", describe(relabel), "True, False, 'within' or 'between'", "True takes what is valid.")
    if relabel == "within" and not placement.is_equivariant:
        given = "'within' with " + ("windows of records" if placement.kind == "soma" else "a systematic scan")
        expected = "a kernel that commutes with permutations: full SOMA or a random scan"
        fail("relabel", given, expected, "Use relabel='between': the second chain would have the wrong distribution.")
    return "within" if relabel == "within" else "between"


def within_sweep(states: CoupledSweepState, one: Decision, other: Decision, same_proposal: Array) -> CoupledSweepState:
    """The pair relabelled after a proposal: if both accept it at different places, it is moved to one place.

    Then, if the records at the updated place differ, the second chain's is exchanged with that of another unmatched
    place, if this brings the columns of the two chains closer.
    """
    aligned = one.accepted & other.accepted & same_proposal & (one.place != other.place)
    second = exchange(states.second, one.place, jnp.where(aligned, other.place, one.place))
    same = states.same | (is_place(states.same, one.place) & aligned)
    updated = jnp.where(other.accepted, other.place, one.place)
    return exchange_closer(CoupledSweepState(states.first, second, same), updated)


def exchange(state: SweepState, place: Array, other: Array) -> SweepState:
    """The chain with the records at two places [] exchanged."""
    here, there = is_place(state.source, place), is_place(state.source, other)

    def swap(values: Array) -> Array:
        at_place, at_other = values[..., place], values[..., other]
        return jnp.where(here, at_other[..., None], jnp.where(there, at_place[..., None], values))

    return state._replace(columns=swap(state.columns), source=swap(state.source))


def exchange_closer(states: CoupledSweepState, place: Array) -> CoupledSweepState:
    """The pair after the exchange with an unmatched place [] that reduces the summed L1 distance most, if any does."""
    first, second, same = states
    one, other = first.columns[:, place], second.columns[:, place]

    def row(index: int) -> Array:
        ours, theirs = first.columns[index], second.columns[index]
        now = jnp.abs(one[index] - other[index]) + jnp.abs(ours - theirs)
        return now - jnp.abs(one[index] - theirs) - jnp.abs(ours - other[index])

    gain = jnp.where(same | same[place], 0.0, sum_rows(row, len(one)))
    best = jnp.argmax(gain)
    return CoupledSweepState(first, exchange(second, place, jnp.where(gain[best] > 0, best, place)), same)


def between_sweeps(key: Key, states: CoupledSweepState, same_proposals: Array) -> CoupledSweepState:
    """The pair relabelled after a sweep: equal records matched, the rest by distance, in a common uniform order.

    Parameters
    ----------
    same_proposals : [m] bool
        Which proposals of the sweep were the same for both chains.
    """
    n = states.same.shape[0]
    states = align(states, same_proposals)
    states, _ = scan_short(lambda states, place: (exchange_closer(states, place), None), states, jnp.arange(n))
    order = jax.random.permutation(key, n)

    def reorder(state: SweepState) -> SweepState:
        return state._replace(columns=state.columns[:, order], source=state.source[order])

    return CoupledSweepState(reorder(states.first), reorder(states.second), states.same[order])


def align(states: CoupledSweepState, same_proposals: Array) -> CoupledSweepState:
    """The pair with every proposal that both chains hold moved to its place in the first chain."""
    first, second, same = states
    n = same.shape[0]
    shared = (first.source >= n) & same_proposals[jnp.maximum(first.source - n, 0)]
    held = shared[:, None] & (first.source[:, None] == second.source[None, :])  # [place, place of the second chain]
    held = held | jnp.diag(same)
    here, there = jnp.any(held, axis=1), jnp.any(held, axis=0)
    # The other records of the second chain fill the other places, in order.
    spare = jnp.argsort(there, stable=True)[jnp.maximum(jnp.cumsum(~here) - 1, 0)]
    order = jnp.where(here, jnp.argmax(held, axis=1), spare)
    moved = second._replace(columns=second.columns[:, order], source=second.source[order])
    return CoupledSweepState(first, moved, here)
