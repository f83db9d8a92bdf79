"""Coupled chains of latent data other than records, such as counts, by common random numbers."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from dpjax._util.jit import in_full_precision
from dpjax._util.validation import fail
from dpjax.base import Array, ImputationInfo, Key
from dpjax.coupling.pairs import CoupledKernel, checked
from dpjax.data_augmentation.problem import Problem
from dpjax.data_augmentation.records.forms import OwnLatentData
from dpjax.data_augmentation.sweep import build_kernel
from dpjax.models.simulation import GibbsState, Position, init_state
from dpjax.numerics import tree_where
from dpjax.release.summed import as_sum

__all__ = ["coupled_latent_data"]


class LatentPair(NamedTuple):
    """Two chains of parameters and latent data, and whether they are the same []."""

    first: GibbsState
    second: GibbsState
    same: Array


def coupled_latent_data(
    problem: Problem, imputation: OwnLatentData, sample_start: Callable[[Key], Position] | None
) -> CoupledKernel:
    """Two chains, each leaving p(parameters, latent data | release) invariant, coupled by common random numbers.

    Windows of counts lie at fixed places of the integers, so that two counts near each other have the same window and
    tend to become equal by one uniform. Counts are integers: they have met if they are equal. The parameters, which are
    integrated out and drawn given the counts, are then the same draw.

    Raises
    ------
    ValueError
        If the parameters cannot be integrated out, so that they would never meet; or totals are known and no start is
        given.
    """
    model, release = problem.model, as_sum(problem.release)
    if not problem.is_collapsed:
        remedy = "Take a conjugate model, such as dpjax.models.categorical, or impute records: dpjax.imwg()."
        expected = f"{imputation.latent_data} whose parameters are integrated out, which can meet"
        fail("imputation", repr(imputation), expected, remedy)
    if sample_start is None and imputation.is_constrained(release):
        remedy = "Pass key -> Position, for instance moves of some table with these totals by dpjax.gibbs."
        fail("sample_start", None, "a start that has the known totals", remedy)
    kernel = build_kernel(model, release, problem.plan)

    @in_full_precision
    def step(rng_key: Key, pair: LatentPair) -> tuple[LatentPair, ImputationInfo]:
        first, info = kernel(rng_key, pair.first, None)
        # Both chains use the same key on purpose; `clone` keeps the key reuse checker from reporting it.
        second, _ = kernel(jax.random.clone(rng_key), pair.second, None)
        same = jax.tree.reduce(jnp.logical_and, jax.tree.map(is_same, first.latent.records, second.latent.records))
        return LatentPair(first, tree_where(same, first, second), same), info.imputation

    def join(first: Position, second: Position, met: Array) -> LatentPair:
        return LatentPair(init_state(release, first), init_state(release, second), jnp.asarray(met))

    def position(state: GibbsState) -> Position:
        return Position(state.parameters, state.latent.records)

    pairs = CoupledKernel(
        sample_start=sample_start or partial(imputation.draw_start, model=model, release=release),
        join=join,
        step=step,
        met=lambda pair: pair.same,
        first=lambda pair: position(pair.first),
        second=lambda pair: position(pair.second),
    )
    return checked(pairs, LatentPair)


def is_same(one: Array, other: Array) -> Array:
    """Whether two integer arrays are equal []."""
    return jnp.all(one == other)
