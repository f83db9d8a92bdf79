"""A sweep of proposals over exchangeable records, as a function of its random numbers."""

from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp

from dpjax._util.validation import check_count, fail
from dpjax.base import Array, ImputationInfo, Key, Records
from dpjax.data_augmentation.records import placed
from dpjax.data_augmentation.records.forms import FreshProposals
from dpjax.data_augmentation.records.placed import ExchangeableTarget, SweepState
from dpjax.data_augmentation.records.soma import decide_among, first_places
from dpjax.numerics import decision_uniforms

__all__ = ["Innovations", "Placement", "draw_innovations", "make_placement", "sweep"]


class Innovations(NamedTuple):
    """The random numbers of a sweep besides its proposals, leading axis [proposals].

    Attributes
    ----------
    places
        The record that a proposal may replace, or the first of a window of them [proposals]; None for all.
    select
        Uniforms [proposals] that select the record.
    accept
        Uniforms [proposals] that decide on acceptance.
    """

    places: Array | None
    select: Array
    accept: Array


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
    if placement.kind == "systematic":
        return jnp.arange(placement.n)
    return first_places(placement.n, placement.attempts)


def sweep(
    target: ExchangeableTarget, records: Records, proposals: Records, placement: Placement, innovations: Innovations
) -> tuple[Records, SweepState, ImputationInfo]:
    """One sweep as a function of its innovations: the records after it, the weights at its end and the report."""
    places, select, accept = innovations
    if placement.kind == "soma":
        decide = partial(decide_among, placement.attempts)
        return placed.sweep(target, records, proposals, decide, (places, select, accept))
    return placed.sweep(target, records, proposals, placed.decide_at, (places, jnp.log(accept)))


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
