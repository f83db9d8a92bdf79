"""Coupled chains of counts: two tables that are moved by the same random numbers until they agree."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from dpjax.base import Array, ImputationInfo, Key, Model
from dpjax.coupling.kernel import CoupledKernel
from dpjax.numerics import take_if
from dpjax.plan import SweepPlan
from dpjax.release.summed import Release
from dpjax.states import GibbsState, Position, init_state
from dpjax.sweep import build_kernel
from dpjax.tables import Counts
from dpjax.tables.starts import propose
from dpjax.tables.table import table_of
from dpjax.validation import fail

__all__ = ["CountPair", "coupled_counts"]


class CountPair(NamedTuple):
    """Two chains of parameters and tables, and whether they are the same []."""

    first: GibbsState
    second: GibbsState
    same: Array


def coupled_counts(
    model: Model, release: Release, imputation: Counts, sample_start: Callable[[Key], Position] | None
) -> CoupledKernel:
    """Two chains of p(parameters, counts | release), coupled by common random numbers.

    Windows are placed on the counts' own scale, so that two counts near each other see the same window and, by one
    uniform, tend to become the same. Counts are whole: they have met where they are equal. The parameters, which are
    integrated out and drawn given the counts, then are the same draw.

    Raises
    ------
    ValueError
        If the parameters cannot be integrated out, so that they would never meet; or no start is given where totals are
        known.
    """
    if not imputation.is_collapsed(model, release):
        remedy = "Take a conjugate model, such as dpjax.models.categorical, or impute records: dpjax.imwg()."
        fail("imputation", repr(imputation), "counts whose parameters are integrated out, which can meet", remedy)
    if sample_start is None and table_of(release).known:
        remedy = "Pass key -> Position, for instance moves of some table with these totals by dpjax.gibbs."
        fail("sample_start", None, "a start that has the known totals", remedy)
    kernel = build_kernel(model, release, SweepPlan(imputation, False, None))

    def step(rng_key: Key, pair: CountPair) -> tuple[CountPair, ImputationInfo]:
        first, info = kernel(rng_key, pair.first, None)
        # The same random numbers for both chains, on purpose; the clone tells the key reuse checker so.
        second, _ = kernel(jax.random.clone(rng_key), pair.second, None)
        same = jax.tree.reduce(jnp.logical_and, jax.tree.map(is_same, first.latent.records, second.latent.records))
        return CountPair(first, take_if(same, first, second), same), info.imputation

    def join(first: Position, second: Position, met: Array) -> CountPair:
        return CountPair(init_state(release, first), init_state(release, second), jnp.asarray(met))

    def position(state: GibbsState) -> Position:
        return Position(state.parameters, state.latent.records)

    def start(key: Key) -> Position:
        parameters, counts = propose(model, 1, key, release, None)
        return jax.tree.map(lambda leaf: leaf[0], Position(parameters, {"counts": counts[:, None]}))

    return CoupledKernel(
        sample_start=sample_start or start,
        join=join,
        step=step,
        met=lambda pair: pair.same,
        first=lambda pair: position(pair.first),
        second=lambda pair: position(pair.second),
    )


def is_same(one: Array, other: Array) -> Array:
    """Whether all whole numbers of two arrays are equal []."""
    return jnp.all(one == other)
