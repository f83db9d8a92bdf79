"""Composes a parameter update and an imputation kernel into one sampler of the posterior."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, TypeGuard

import jax
import numpy as np

from dpjax.base import Array, Imputation, ImputationInfo, Key, Latent, Model, Parameters, Records, SamplingAlgorithm
from dpjax.imputation.imwg import imwg
from dpjax.imputation.offers import init_latent
from dpjax.imputation.pcn import pcn
from dpjax.imputation.tunable import Tunable
from dpjax.imputation.windows import has_windows
from dpjax.models.checks import check_model
from dpjax.models.positions import check_parameters, check_prior, check_start
from dpjax.models.whole import check_integer_noise
from dpjax.parameters import (
    KernelBuilder,
    ParameterKernel,
    Tuning,
    build_centred_step,
    build_interweaving_step,
    build_summed_step,
    choose_kernel,
    fit_step_size,
    initial_tuning,
    unit_tuning,
)
from dpjax.parameters.interweaving import InterweavingInfo
from dpjax.release import LocalRelease, Release
from dpjax.validation import check_key, fail

MIN_BLOCKED = 50
"""From this many records on ``"auto"`` tunes blocks: at n = 20 they gain a quarter at best, and lose more elsewhere."""


class Position(NamedTuple):
    """Where a chain is: parameters on their natural scale and records with leading axis [n]."""

    parameters: Parameters
    records: Records


class GibbsState(NamedTuple):
    """What the sampler carries: the parameters and the latent state of the imputation."""

    parameters: Parameters
    latent: Latent


class GibbsInfo(NamedTuple):
    """What a sweep reports: on imputation, centred step (None if exact) and non-centred step (None if off).

    ``num_nonfinite`` [] counts the offers and moves that were undone because something was not finite.
    """

    imputation: ImputationInfo
    centred: Any
    interweaving: InterweavingInfo | None
    num_nonfinite: Array


@dataclass(frozen=True)
class Plan:
    """How a sweep is made; hashable, so that compiled programs are found again.

    Built by `make_plan`, which checks that the choices fit the model and the release. Without a parameter kernel the
    model's own update moves the parameters.
    """

    imputation: Imputation
    interweave: bool
    parameter_kernel: ParameterKernel | None

    @property
    def uses_tuning(self) -> bool:
        """Whether a step of the sweep looks at the tuning."""
        return self.interweave or self.parameter_kernel is not None


def make_plan(
    model: Model,
    release: Release | LocalRelease,
    imputation: Imputation | Literal["auto"] | None = None,
    interweave: bool | None = None,
    parameter_kernel: str | KernelBuilder | ParameterKernel | None = None,
) -> Plan:
    """The plan of a sweep, with the defaults filled in and every misfit refused before compilation.

    Raises
    ------
    TypeError, ValueError
        If the model and release are exchanged or do not fit, interweaving is asked of a model without a non-centred
        form, or there is no such parameter kernel.
    """
    if not isinstance(release, (Release, LocalRelease)):
        fail("release", type(release).__name__, "a Release or LocalRelease", "Pass (model, release).", error=TypeError)
    check_model(model)
    key = jax.eval_shape(jax.random.key, 0)
    parameters = jax.eval_shape(model.sample_prior, key)
    release.check_records(
        jax.eval_shape(lambda key, parameters: model.sample_records(key, parameters, 1), key, parameters)
    )
    if model.num_records not in (None, release.n):
        given = f"a release of n = {release.n} records"
        fail(
            "release",
            given,
            f"n = {model.num_records}, as the model has",
            "Give the model the covariates of all records.",
        )
    check_integer_noise(model, release)
    if not (interweave is None or isinstance(interweave, bool)):
        fail(
            "interweave", repr(interweave), "True, False or None", "None takes what the model allows.", error=TypeError
        )
    if isinstance(parameter_kernel, type):
        remedy = "Pass an instance, or its name to dpjax.parameter_kernel."
        fail("parameter_kernel", f"the class {parameter_kernel.__name__}", "a kernel", remedy, error=TypeError)
    if interweave and model.noncentred is None:
        fail("interweave", True, "a model with a non-centred form", "Give the model one, or leave interweave out.")
    default = model.noncentred is not None and bool(parameters)
    plan = Plan(
        imputation=choose_imputation(release, imputation),
        interweave=default if interweave is None else bool(interweave),
        parameter_kernel=choose_kernel(model, parameter_kernel),
    )
    check_plan(model, release, plan)
    return plan


def choose_imputation(release: Release | LocalRelease, imputation: Imputation | Literal["auto"] | None) -> Imputation:
    """The imputation meant: by default IMwG; for ``"auto"`` pCN tuned in warm-up where its blocks can pay."""
    if imputation == "auto":
        return pcn() if isinstance(release, Release) and release.n >= MIN_BLOCKED else imwg()
    return imwg() if imputation is None else imputation


def check_plan(model: Model, release: Release | LocalRelease, plan: Plan) -> None:
    """Raise unless the imputation is a function, can be compiled for, and fits the release."""
    if not (callable(plan.imputation) and isinstance(plan.imputation, Hashable)):
        remedy = "Define it once, as a function or a frozen dataclass: programs are compiled for it."
        given = repr(plan.imputation)
        fail("imputation", given, "a hashable function, such as dpjax.imwg()", remedy, error=TypeError)
    trial = plan.imputation.closed() if is_open(plan.imputation) else plan.imputation
    trial(model, release)


def is_open(imputation: Imputation) -> TypeGuard[Tunable]:
    """Whether the imputation leaves a choice to the warm-up."""
    return isinstance(imputation, Tunable) and imputation.is_open


def adapt_plan(model: Model, release: Release | LocalRelease, plan: Plan, state: GibbsState, key: Key) -> Plan:
    """The plan with what the imputation leaves open chosen where the chains are, state [chain, ...]."""
    if not is_open(plan.imputation) or isinstance(release, LocalRelease):
        return plan
    return replace(plan, imputation=plan.imputation.adapt(key, model, release, state.latent, state.parameters))


def build_kernel(
    model: Model, release: Release | LocalRelease, plan: Plan
) -> Callable[[Key, GibbsState, Tuning], tuple[GibbsState, GibbsInfo]]:
    """The sweep ``(rng_key, state, tuning) -> (state, info)``: it leaves p(parameters, records | release) invariant.

    Centred step, non-centred step (if interweaving), imputation: Ju, Awan, Gong and Rao (2022), Algorithm 1, with the
    second step of Yu and Meng (2011).
    """
    centred = build_centred_step(model, plan.parameter_kernel)
    interweaving = build_second_step(model, release) if plan.interweave else None
    impute = plan.imputation(model, release)

    def kernel(rng_key: Key, state: GibbsState, tuning: Tuning) -> tuple[GibbsState, GibbsInfo]:
        centred_key, interweaving_key, imputation_key = jax.random.split(rng_key, 3)
        parameters, latent = state
        parameters, centred_info, num_nonfinite = centred(centred_key, parameters, latent.records, tuning)
        interweaving_info = None
        if interweaving is not None:
            parameters, records, interweaving_info = interweaving(interweaving_key, parameters, latent.records, tuning)
            # An imputation that sums the records itself leaves this unused, and the compiler leaves it out.
            latent = init_latent(release, records)
            num_nonfinite += interweaving_info.num_nonfinite
        latent, imputation_info = impute(imputation_key, latent, parameters)
        num_nonfinite += imputation_info.num_nonfinite
        info = GibbsInfo(imputation_info, centred_info, interweaving_info, num_nonfinite)
        return GibbsState(parameters, latent), info

    return kernel


def build_second_step(
    model: Model, release: Release | LocalRelease
) -> Callable[[Key, Parameters, Records, Tuning], tuple[Parameters, Records, InterweavingInfo]]:
    """The step that moves parameters and records together: with records summed out if possible, else noise held."""
    if isinstance(release, LocalRelease) and has_windows(model, release):
        return build_summed_step(model, release)
    return build_interweaving_step(model, release)


def init_state(release: Release | LocalRelease, position: Position) -> GibbsState:
    """The state at a position."""
    return GibbsState(position.parameters, init_latent(release, position.records))


def check_position(model: Model, n: int, position: Position | Parameters, rng_key: Key | None) -> Position:
    """The position in the types of the model's own, with records drawn where there are none, or an error."""
    if isinstance(position, Position):
        parameters = check_parameters("position.parameters", model, position.parameters)
        check_prior("position.parameters", model, parameters)
        return Position(parameters, check_start("position.records", model, n, parameters, position.records))
    parameters = check_parameters("position", model, position)
    check_prior("position", model, parameters)
    if rng_key is None:
        remedy = "Call init(parameters, rng_key) or init(Position(...))."
        fail("rng_key", None, "a key, to draw the records", remedy)
    check_key("rng_key", rng_key)
    return Position(parameters, model.sample_records(rng_key, parameters, n))


def check_tuning(model: Model, tuning: Tuning) -> Tuning:
    """The tuning, or an error unless it has the size of the model's parameters."""
    expected = jax.tree.map(np.shape, unit_tuning(model))
    if not isinstance(tuning, Tuning) or jax.tree.map(np.shape, tuning) != expected:
        given = f"shapes {jax.tree.map(np.shape, tuning)}" if isinstance(tuning, Tuning) else type(tuning).__name__
        remedy = "Pass the tuning of a run of this model, or leave it out."
        fail("tuning", given, f"a Tuning of shapes {tuple(expected)}", remedy, error=TypeError)
    return tuning


def prior_tuning(model: Model, release: Release | LocalRelease, plan: Plan, num_chains: int = 4) -> Tuning:
    """The tuning fitted to draws of parameters and records from the model, under a fixed key."""
    if not plan.uses_tuning:
        return unit_tuning(model)
    tuning_key, parameter_key, record_key, step_key = jax.random.split(jax.random.key(0), 4)
    parameters = jax.vmap(model.sample_prior)(jax.random.split(parameter_key, num_chains))
    record_keys = jax.random.split(record_key, num_chains)
    records = jax.vmap(model.sample_records, in_axes=(0, 0, None))(record_keys, parameters, release.n)
    tuning = initial_tuning(tuning_key, model)
    return fit_step_size(step_key, model, plan.parameter_kernel, tuning, parameters, records)


def gibbs(
    model: Model,
    release: Release | LocalRelease,
    imputation: Imputation | None = None,
    interweave: bool | None = None,
    parameter_kernel: str | KernelBuilder | ParameterKernel | None = None,
    tuning: Tuning | None = None,
) -> SamplingAlgorithm:
    """A BlackJAX sampling algorithm that leaves p(parameters, records | release) invariant.

    Parameters
    ----------
    model
        The complete-data model.
    release
        What was released; one `Release` or `LocalRelease`.
    imputation
        ``imwg(...)``, ``soma(...)``, ``pcn(...)`` or an `Imputation` of your own; IMwG by default.
    interweave
        Whether to add the non-centred step; by default wherever the model has a non-centred form.
    parameter_kernel
        In place of the model's own update, any BlackJAX kernel: ``"nuts"``, ``"hmc"``, ``"mala"``,
        ``"normal_random_walk"``, ``"slice_sampling"``, ``"coordinate_slice"``, ``"elliptical_slice"``, a function
        ``log_density -> SamplingAlgorithm`` on whitened vectors, or one of these with its options and several steps a
        sweep, by `dpjax.parameter_kernel`. Models without an update have a default; see `default_kernel`.
    tuning
        The whitening and step size, such as `Posterior.tuning` of a short run; by default they are fitted to draws
        from the prior, under a fixed key: any tuning leaves the posterior invariant.

    Returns
    -------
    SamplingAlgorithm
        ``init(position, rng_key=None)`` takes a `Position`, or parameters alone with a key that draws the records;
        ``step(rng_key, state)`` makes one sweep.

    Raises
    ------
    TypeError, ValueError
        If the parts do not fit; see `make_plan`.
    """
    plan = make_plan(model, release, imputation, interweave, parameter_kernel)
    if is_open(plan.imputation):
        remedy = "dpjax.sample has one; here pass dpjax.imwg(), dpjax.soma(attempts) or dpjax.pcn(block, correlation)."
        fail("imputation", repr(imputation), "fixed numbers, because there is no warm-up", remedy)
    kernel = build_kernel(model, release, plan)
    fixed = prior_tuning(model, release, plan) if tuning is None else check_tuning(model, tuning)

    def init(position: Position | Parameters, rng_key: Key | None = None) -> GibbsState:
        return init_state(release, check_position(model, release.n, position, rng_key))

    def step(rng_key: Key, state: GibbsState) -> tuple[GibbsState, GibbsInfo]:
        return kernel(rng_key, state, fixed)

    return SamplingAlgorithm(init, step)
