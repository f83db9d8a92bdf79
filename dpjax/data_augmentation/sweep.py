"""A sweep of data augmentation: parameter updates and imputation one after the other; and steps with refreshes."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from dpjax._util.jit import in_full_precision
from dpjax.base import Array, ImputationInfo, Key, Model
from dpjax.data_augmentation.parameters import (
    Tuning,
    build_affine_step,
    build_centred_step,
    build_enumerated_step,
    build_interweaving_step,
    build_move_by,
    build_number_step,
    build_standardised_step,
    build_summed_step,
    fit_step_size,
    fit_to_prior,
)
from dpjax.data_augmentation.plan import SweepPlan, imputation_in_parts
from dpjax.data_augmentation.records.exchanges import has_known_totals
from dpjax.data_augmentation.records.forms import SecondStep, is_collapsed
from dpjax.data_augmentation.records.local import has_windows
from dpjax.data_augmentation.records.microdata import values_summed_out
from dpjax.data_augmentation.refresh import RefreshInfo, RefreshTuning, build_refreshes, num_due, parts_due
from dpjax.data_augmentation.summed_out import Likelihood, summed_state
from dpjax.data_augmentation.summed_out.likelihood import LEFT_OUT
from dpjax.models.data_sets import DataSetsModel
from dpjax.models.simulation import GibbsState, draw_parameters, init_latent, parameter_shapes
from dpjax.numerics import all_finite, tree_where
from dpjax.release import PrivateRelease
from dpjax.release.summed import as_sum

NUM_FITTED = 4
"""Draws of parameters and records to which a step size is fitted if there are no chains yet."""

MOST_SUMMED_OUT = 1024
"""Largest number of records whose hidden fields are summed out by default.

For a label of twelve people the step gave six times as many effective draws. For 100,000 people it takes some thirty
times as long as the rest of a sweep.
"""


class GibbsInfo(NamedTuple):
    """The report of a sweep: on imputation, centred step (None if exact) and the second step (None if off).

    ``num_nonfinite`` [] counts the proposals and moves that were undone because a density, parameter or record was not
    finite.

    Attributes
    ----------
    imputation
        The report of the imputation.
    centred
        The report of the centred step; None if it is exact.
    interweaving
        The report of the non-centred step; None if it is off.
    num_nonfinite
        How often a move was undone because it led to parameters or records that are not finite [].

    Examples
    --------
    >>> import dpjax
    >>> import jax
    >>> model = dpjax.models.normal(dpjax.models.NormalPrior(0.0, 5.0), variance=4.0)
    >>> release = dpjax.Release([12.0], dpjax.Laplace(8.0), dpjax.statistics.total("y", -10.0, 10.0), n=10)
    >>> algorithm = dpjax.gibbs(model, release, tuning=dpjax.data_augmentation.initial_tuning(jax.random.key(1), model))
    >>> state = algorithm.init(dpjax.data_augmentation.Position({"mean": 1.0}, {"y": jax.numpy.ones(10)}))
    >>> state, info = jax.jit(algorithm.step)(jax.random.key(2), state)
    >>> info.imputation.accepted.shape, int(info.num_nonfinite)
    ((10,), 0)
    """

    imputation: ImputationInfo
    centred: Any
    interweaving: Any
    num_nonfinite: Array


Parts = tuple[Array, Array]
"""The first of the parts of the records that a sweep makes proposals to, and how many of them; see `PartialKernel`."""


class Sweep(NamedTuple):
    """A sweep in two parts, which take the same key and use different splits of it.

    Attributes
    ----------
    move
        ``(rng_key, state, tuning, parts=None) -> (state, info)``: all that the next sweep depends on. Parts are None
        for all records, and unused if these are not divided.
    complete
        ``(rng_key, state) -> (state, num_nonfinite)``: draws parameters that are integrated out of the imputation,
        which no sweep reads, so that it is needed only for states that are kept. Without such parameters it does
        nothing.
    release
        The release as the sweep reads it, with tables of what takes long to compute.
    report
        ``state -> reports``: what is reported of a state that is kept.
    """

    move: Callable[..., tuple[GibbsState, GibbsInfo]]
    complete: Callable[[Key, GibbsState], tuple[GibbsState, Array]]
    release: Any
    report: Callable[[GibbsState], dict[str, Array]] = lambda state: {}


def build_kernel(
    model: Model, release: PrivateRelease, plan: SweepPlan
) -> Callable[[Key, GibbsState, Tuning | None], tuple[GibbsState, GibbsInfo]]:
    """The sweep ``(rng_key, state, tuning) -> (state, info)``: it leaves p(parameters, records | release) invariant.

    Parameters
    ----------
    model
        In the form of the latent data; see `latent_form`.
    release
        In the form of the latent data.
    """
    sweep = build_sweep(model, release, plan)

    @in_full_precision
    def kernel(rng_key: Key, state: GibbsState, tuning: Tuning | None) -> tuple[GibbsState, GibbsInfo]:
        state, info = sweep.move(rng_key, state, tuning)
        # The clone marks the intended reuse of the key for the key reuse checker.
        state, num_nonfinite = sweep.complete(jax.random.clone(rng_key), state)
        return state, info._replace(num_nonfinite=info.num_nonfinite + num_nonfinite)

    return kernel


def build_sweep(model: Model, release: PrivateRelease, plan: SweepPlan) -> Sweep:
    """The sweep of `build_kernel` in its two parts, one after the other.

    Centred step, non-centred step (if interweaving), imputation: Ju, Awan, Gong and Rao (2022), Algorithm 1, with the
    second step of Yu and Meng (2011). If the parameters are integrated out of the imputation it is all that moves, and
    they are drawn given what it imputed.
    """
    if isinstance(release, Likelihood):
        return build_summed_sweep(model, release, plan)
    release = release.tabulated()
    if is_collapsed(plan.imputation, model, release):
        return build_collapsed_sweep(model, release, plan)
    centred = build_centred_step(model, plan.parameter_kernel)
    second_step = find_second_step(model, release, plan) if plan.interweave else None
    interweaving = None if second_step is None else second_step.build()
    impute = plan.imputation(model, release)
    in_parts = imputation_in_parts(plan, release.n)
    impute_parts = None if in_parts is None else in_parts.build_partial_kernel(model, release)

    def move(
        rng_key: Key, state: GibbsState, tuning: Tuning | None, parts: Parts | None = None
    ) -> tuple[GibbsState, GibbsInfo]:
        centred_key, interweaving_key, imputation_key = jax.random.split(rng_key, 3)
        parameters, latent = state
        parameters, centred_info, num_nonfinite = centred(centred_key, parameters, latent.records, tuning)
        interweaving_info = None
        if interweaving is not None:
            assert tuning is not None, "plans that interweave use a tuning"
            parameters, records, interweaving_info = interweaving(interweaving_key, parameters, latent.records, tuning)
            # An imputation that sums the records itself leaves this unused, and the compiler leaves it out.
            latent = init_latent(release, records)
            num_nonfinite += interweaving_info.num_nonfinite
        if parts is None or impute_parts is None:
            latent, imputation_info = impute(imputation_key, latent, parameters)
        else:
            latent, imputation_info = impute_parts(imputation_key, latent, parameters, *parts)
        num_nonfinite += imputation_info.num_nonfinite
        info = GibbsInfo(imputation_info, centred_info, interweaving_info, num_nonfinite)
        return GibbsState(parameters, latent), info

    return Sweep(move, lambda rng_key, state: (state, jnp.zeros((), int)), release)


def build_collapsed_sweep(model: Model, release: PrivateRelease, plan: SweepPlan) -> Sweep:
    """The sweep that imputes with the parameters integrated out, and then draws these exactly.

    Its first part leaves p(records | release) invariant, whatever the parameters in the state are.
    """
    assert plan.parameter_kernel is None, "a draw of the parameters that is not exact needs an imputation given them"
    centred, impute = build_centred_step(model, None), plan.imputation(model, release)

    def move(
        rng_key: Key, state: GibbsState, tuning: Tuning | None, parts: Parts | None = None
    ) -> tuple[GibbsState, GibbsInfo]:
        del tuning, parts
        imputation_key, _ = jax.random.split(rng_key)
        latent, info = impute(imputation_key, state.latent, state.parameters)
        return GibbsState(state.parameters, latent), GibbsInfo(info, None, None, info.num_nonfinite)

    def complete(rng_key: Key, state: GibbsState) -> tuple[GibbsState, Array]:
        _, centred_key = jax.random.split(rng_key)
        parameters, _, num_nonfinite = centred(centred_key, state.parameters, state.latent.records, None)
        return GibbsState(parameters, state.latent), num_nonfinite

    return Sweep(move, complete, release)


def build_summed_sweep(model: Model, likelihood: Likelihood, plan: SweepPlan) -> Sweep:
    """The sweep that moves the parameters alone, with the records summed out.

    Its first part leaves p(parameters | release) invariant. Its second part draws the records of a state that is kept,
    if they are asked for.
    """
    assert plan.parameter_kernel is not None, "parameters that move alone are moved by a kernel"
    log_likelihood = likelihood.build()
    centred = build_move_by(model, plan.parameter_kernel, log_likelihood)
    standardised = build_standardised_step(model, log_likelihood)

    def move(
        rng_key: Key, state: GibbsState, tuning: Tuning | None, parts: Parts | None = None
    ) -> tuple[GibbsState, GibbsInfo]:
        del parts
        assert tuning is not None, "kernels move in whitened coordinates"
        first_key, second_key = jax.random.split(rng_key) if standardised else (rng_key, rng_key)
        parameters, info, possible = centred(first_key, state.parameters, tuning)
        finite = all_finite(parameters)
        parameters = tree_where(finite, parameters, state.parameters)
        if standardised:
            parameters = standardised(second_key, parameters, tuning)
        rate = jnp.asarray(getattr(info, "acceptance_rate", 1.0), float)
        num_nonfinite = (~(finite & possible)).astype(int)
        imputation = ImputationInfo(rate, jnp.zeros(0, int), jnp.zeros((), int))
        return GibbsState(parameters, state.latent), GibbsInfo(imputation, info, None, num_nonfinite)

    def complete(rng_key: Key, state: GibbsState) -> tuple[GibbsState, Array]:
        if not plan.draws_records:
            return state, jnp.zeros((), int)
        record_key = jax.random.fold_in(rng_key, 1)
        return summed_state(plan, state.parameters, likelihood, record_key), jnp.zeros((), int)

    def report(state: GibbsState) -> dict[str, Array]:
        return {LEFT_OUT: likelihood.left_out(state.parameters)} if likelihood.is_approximate else {}

    return Sweep(move, complete, likelihood, report)


def build_mixed_step(
    model: Model,
    sweep: Sweep,
    tuning: Tuning | None,
    refresh: RefreshTuning,
    keep: Callable[[GibbsInfo], Any],
) -> Callable[[Key, Array, GibbsState], tuple[GibbsState, Any, Array, RefreshInfo]]:
    """The step that is a sweep if one is due, and then the refreshes that are.

    It is a function ``(rng_key, number, state) -> (state, kept, num_sweeps, info)`` of the step's number. `keep` takes
    `kept` from the report of the sweep, with zeros if none was made. `info` is the report of the refreshes.
    """
    refreshes = build_refreshes(model, sweep.release)

    @jax.jit
    def sweep_once(rng_key: Key, state: GibbsState, parts: Parts) -> tuple[GibbsState, Any]:
        state, info = sweep.move(rng_key, state, tuning, parts)
        return state, keep(info)

    def step(rng_key: Key, number: Array, state: GibbsState) -> tuple[GibbsState, Any, Array, RefreshInfo]:
        sweep_key, refresh_key = jax.random.split(rng_key)
        due, arguments = num_due(refresh.sweeps, number), (sweep_key, state, parts_due(refresh, number))
        shapes = jax.eval_shape(sweep_once, *arguments)[1]
        nothing = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)
        # The number is the same for all chains: what is not due is a branch that is not taken, also side by side.
        state, kept = jax.lax.cond(due > 0, sweep_once, lambda key, state, parts: (state, nothing), *arguments)
        state, info = refreshes(refresh_key, number, state, refresh)
        return state, kept, due, info

    return step


def find_second_step(model: Model, release: PrivateRelease, plan: SweepPlan) -> SecondStep | None:
    """The second step of a sweep: with what can be summed out, else with latent normals held; None if there is none."""
    own = plan.own_latent_data
    if own is not None:
        return own.second_step(model, release)
    if plan.sums_out or has_known_totals(release):
        return None
    moves = bool(parameter_shapes(model))
    if release.exact:
        # Exact fields do not move with the parameters: these move alone where all else is summed out.
        values = values_summed_out(model, release)
        if values is None:
            return None
        build = partial(build_enumerated_step, model, release.microdata, values)
        return SecondStep(build, lambda: moves and release.n <= MOST_SUMMED_OUT)
    if not model.has("noncentred"):
        return None
    if isinstance(model, DataSetsModel):
        return SecondStep(partial(build_number_step, model, as_sum(release)), lambda: moves)
    if has_windows(release.local, model):
        return SecondStep(partial(build_summed_step, model, release.local), lambda: moves)
    if plan.noise == "held":
        return SecondStep(partial(build_interweaving_step, model, release), lambda: moves)
    by_surrogate = plan.noise == "moved by surrogate"
    return SecondStep(partial(build_affine_step, model, as_sum(release), by_surrogate=by_surrogate), lambda: moves)


def prior_tuning(model: Model, n: int, plan: SweepPlan) -> Tuning | None:
    """The tuning fitted to draws of parameters and n records from the model, under a fixed key; None if unused."""
    if not plan.uses_tuning:
        return None
    tuning_key, parameter_key, record_key, step_key = jax.random.split(jax.random.key(0), 4)
    parameters = draw_parameters(parameter_key, model, NUM_FITTED)
    record_keys = jax.random.split(record_key, NUM_FITTED)
    records = jax.vmap(model.sample_records, in_axes=(0, 0, None))(record_keys, parameters, n)
    return fit_step_size(step_key, model, plan.parameter_kernel, fit_to_prior(tuning_key, model), parameters, records)
