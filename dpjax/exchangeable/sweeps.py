"""A sweep of proposals over exchangeable records, as a function of its random numbers."""

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp

from dpjax._util.validation import check_count, fail
from dpjax.base import Array, ImputationInfo, Key, Records
from dpjax.data_augmentation.records.forms import FreshProposals
from dpjax.data_augmentation.records.soma import choose_place, window_starts
from dpjax.exchangeable.targets import ExchangeableTarget
from dpjax.numerics import accept, decision_uniforms, proper_density

__all__ = [
    "Decision",
    "Innovations",
    "Placement",
    "SweepState",
    "draw_innovations",
    "gather_records",
    "is_place",
    "make_placement",
    "replace_record",
    "start_sweep",
    "sweep",
]


class Innovations(NamedTuple):
    """The random numbers of a sweep besides its proposals, leading axis [proposals].

    Attributes
    ----------
    places
        The records that a proposal may replace: [proposals, attempts] for windows, [proposals] for IMwG, None for all.
    select
        Uniforms [proposals] that select the record.
    accept
        Uniforms [proposals] that decide on acceptance.
    """

    places: Array | None
    select: Array
    accept: Array


class SweepState(NamedTuple):
    """The state of one chain within a sweep.

    Attributes
    ----------
    summary
        See `dpjax.exchangeable.targets.ExchangeableTarget`.
    log_weight
        See `dpjax.exchangeable.targets.ExchangeableTarget`.
    columns
        See `dpjax.exchangeable.targets.ExchangeableTarget`.
    source
        The origin of the record at each place [n]: i < n for record i at the start of the sweep, n + k for proposal k.
    """

    summary: Array
    log_weight: Array
    columns: Array
    source: Array


class Decision(NamedTuple):
    """A chain's decision on a proposal: its place [], whether it is accepted [], and the log-weight with it []."""

    place: Array
    accepted: Array
    log_weight: Array


@dataclass(frozen=True)
class Placement:
    """Which records the proposals of a sweep may replace; built by `make_placement`.

    Parameters
    ----------
    kind
        ``"soma"``, or the scan of IMwG.
    attempts
        How many records a proposal is tried at; 1 for IMwG.
    proposals
        How many proposals a sweep makes.
    """

    kind: Literal["soma", "systematic", "random"]
    n: int
    attempts: int
    proposals: int

    @property
    def is_equivariant(self) -> bool:
        """Whether a proposal's kernel commutes with permutations of the records: full SOMA and random-scan IMwG."""
        return self.kind == "random" or (self.kind == "soma" and self.attempts == self.n)


def draw_innovations(key: Key, placement: Placement) -> Innovations:
    """The random numbers of a sweep besides its proposals."""
    accept_key, select_key = jax.random.split(key)
    accept = decision_uniforms(accept_key, (placement.proposals,))
    if placement.kind == "random":
        return Innovations(jax.random.randint(select_key, (placement.proposals,), 0, placement.n), accept, accept)
    return Innovations(fixed_places(placement), jax.random.uniform(select_key, (placement.proposals,), float), accept)


def fixed_places(placement: Placement) -> Array | None:
    """The places at which each proposal is tried, if they are not random; see `Innovations`."""
    n, attempts = placement.n, placement.attempts
    if placement.kind == "systematic":
        return jnp.arange(n)
    return None if attempts == n else jnp.asarray(window_starts(n, attempts)[:, None] + jnp.arange(attempts)[None])


def start_sweep(target: ExchangeableTarget, columns: Array) -> SweepState:
    """The state at the start of a sweep, with its summary recomputed."""
    summary = target.summarize(columns)
    return SweepState(summary, target.log_weight(summary, columns), columns, jnp.arange(target.n))


def sweep(
    target: ExchangeableTarget, records: Records, proposals: Records, placement: Placement, innovations: Innovations
) -> tuple[Records, Array, ImputationInfo]:
    """One sweep as a function of its innovations: the records after it, their log-weight [] and the report."""

    def attempt(state: SweepState, step: Any) -> Any:
        index, column, innovation = step
        decision, nonfinite = decide(target, state, column, placement, innovation)
        updated = replace_record(state, decision, index, column)
        return updated, (jnp.where(decision.accepted, decision.place, target.n), nonfinite)

    steps = (jnp.arange(placement.proposals), target.columns(proposals).T, innovations)
    state, (taken, nonfinite) = jax.lax.scan(attempt, start_sweep(target, target.columns(records)), steps)
    counts = (
        jnp.zeros(target.n + 1, int).at[taken].add(1)[:-1]
    )  # rejected proposals are counted at the extra last place
    info = ImputationInfo(jnp.sum(counts) / placement.proposals, counts, jnp.sum(nonfinite))
    return gather_records(state, records, proposals), state.log_weight, info


def decide(
    target: ExchangeableTarget, state: SweepState, column: Array, placement: Placement, innovation: Innovations
) -> tuple[Decision, Array]:
    """The decision on a proposal with this column [d], and whether a weight was non-finite []."""
    if placement.kind != "soma":
        place = jnp.asarray(innovation.places)
        raw = target.log_weight_with(state.summary, state.columns, place, column)
        accepted, broken = accept(raw, state.log_weight, jnp.log(innovation.accept))
        return Decision(place, accepted, proper_density(raw)), broken
    raw = target.log_weights_with(state.summary, state.columns, innovation.places, column)
    weights = proper_density(raw)
    index, accepted, _ = choose_place(weights, state.log_weight, innovation.select, innovation.accept)
    place = index if innovation.places is None else innovation.places[index]
    return Decision(place, accepted, weights[index]), ~jnp.all(raw < jnp.inf)


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


def is_place(places: Array, place: Array) -> Array:
    """The mask [n] of one place [] in an array [n]."""
    return jnp.arange(places.shape[0]) == place


def gather_records(state: SweepState, records: Records, proposals: Records) -> Records:
    """The records of a chain after a sweep, from those at its start and the proposals."""
    return jax.tree.map(lambda kept, new: jnp.concatenate([kept, new])[state.source], records, proposals)


def make_placement(imputation: Any, n: int, proposals: int | None = None) -> Placement:
    """The placement of an imputation's proposals to n records.

    Parameters
    ----------
    imputation
        ``imwg(...)`` or ``soma(...)`` with a number of attempts or None.
    proposals
        How many proposals a sweep makes; None for n.

    Raises
    ------
    TypeError
        If the imputation is of another kind.
    ValueError
        If the number of attempts is "auto" or exceeds n. If the number of proposals is not n for windows or a
        systematic scan, whose sweep is one pass over all records.
    """
    if not isinstance(imputation, FreshProposals):
        remedy = "Use dpjax.imwg(...) or dpjax.soma(...)."
        fail("imputation", repr(imputation), "an imputation whose coupling is known", remedy, error=TypeError)
    attempts = max(imputation.num_weighed(n), 1)
    made = n if proposals is None else check_count("proposals", proposals)
    placement = Placement(imputation.placement, n, attempts, made)
    if not placement.is_equivariant and placement.proposals != n:
        fail("proposals", placement.proposals, f"n = {n}, one pass over all records", "Leave proposals out.")
    return placement
