"""A sweep of data augmentation: what it is made of, and the kernel that parameter updates and imputation compose."""

from collections.abc import Callable
from dataclasses import dataclass, is_dataclass, replace
from typing import Any, Literal, NamedTuple, TypeGuard

import jax

from dpjax.base import Array, Imputation, ImputationInfo, Key, Model, Parameters, Records
from dpjax.imputation.forms import OwnLatentData, latent_form
from dpjax.imputation.imwg import imwg
from dpjax.imputation.pcn import pcn
from dpjax.imputation.tunable import Tunable
from dpjax.imputation.windows import has_windows
from dpjax.models.fit import check_fit
from dpjax.parameters import (
    KernelBuilder,
    ParameterKernel,
    Tuning,
    build_centred_step,
    build_interweaving_step,
    build_summed_step,
    choose_kernel,
    fit_step_size,
    fit_to_prior,
    unit_tuning,
)
from dpjax.release import PrivateRelease, Release
from dpjax.release.unknown import check_number_known, is_unknown
from dpjax.simulate import draw_parameters, parameter_shapes
from dpjax.states import GibbsState, init_latent
from dpjax.tables import counts
from dpjax.tables.form import prefers_counts
from dpjax.validation import check_hashable_function, fail

MIN_BLOCKED = 50
"""From this many records on ``"auto"`` tunes blocks: at n = 20 they gain a quarter at best, and lose more elsewhere."""


class GibbsInfo(NamedTuple):
    """What a sweep reports: on imputation, centred step (None if exact) and the second step (None if off).

    ``num_nonfinite`` [] counts the offers and moves that were undone because a density, parameter or record was not
    finite.
    """

    imputation: ImputationInfo
    centred: Any
    interweaving: Any
    num_nonfinite: Array


@dataclass(frozen=True)
class SweepPlan:
    """How a sweep is made, such as `Posterior.plan`; hashable, so that compiled programs are found again.

    Parameters
    ----------
    imputation
        How the records move given the parameters.
    interweave
        Whether the non-centred step moves parameters and records together.
    parameter_kernel
        How the parameters move given the records; None for the model's own update.
    """

    imputation: Imputation
    interweave: bool
    parameter_kernel: ParameterKernel | None

    @property
    def uses_tuning(self) -> bool:
        """Whether a step of the sweep looks at the tuning."""
        return self.interweave or self.parameter_kernel is not None

    def describe(self) -> str:
        """The imputation, whether there is a non-centred step, and how the parameters move given the records."""
        update = "the model's exact update" if self.parameter_kernel is None else show(self.parameter_kernel)
        interweaving = "on" if self.interweave else "off"
        parts = {"imputation": show(self.imputation), "interweaving": interweaving, "parameters given records": update}
        return "\n".join(f"{name}: {part}" for name, part in parts.items())


def show(part: Any) -> str:
    """A part of a sweep with its numbers, or the name of a function."""
    return repr(part) if is_dataclass(part) else getattr(part, "__qualname__", type(part).__name__)


def make_plan(
    model: Model,
    release: PrivateRelease,
    imputation: Imputation | Literal["auto"] | None = None,
    interweave: bool | None = None,
    parameter_kernel: str | KernelBuilder | ParameterKernel | None = None,
    allow_counts: bool = False,
) -> SweepPlan:
    """The plan of a sweep, with the defaults filled in and every misfit refused before compilation.

    Parameters
    ----------
    allow_counts
        Whether counts stand for the records where that is cheaper and neither imputation nor interweaving is chosen.

    Raises
    ------
    TypeError, ValueError
        If the model and release are exchanged or do not fit, interweaving is asked of a model without a non-centred
        form, or there is no such parameter kernel.
    """
    check_fit(model, release)
    if not (interweave is None or isinstance(interweave, bool)):
        remedy = "None takes what the model allows."
        fail("interweave", repr(interweave), "True, False or None", remedy, error=TypeError)
    is_free = imputation in (None, "auto") and interweave is None and allow_counts
    chosen = choose_imputation(model, release, counts() if is_free and prefers_counts(model, release) else imputation)
    if parameter_kernel is not None and isinstance(chosen, OwnLatentData):
        chosen = chosen.given_parameters()
    model, release = latent_form(model, release, chosen)
    possible, default = interweaving(model, release, chosen)
    if interweave and not possible:
        expected = "a model, and latent data, with a non-centred form"
        fail("interweave", True, expected, "Give the model one, impute its records, or leave interweave out.")
    return SweepPlan(
        imputation=chosen,
        interweave=default if interweave is None else interweave,
        parameter_kernel=choose_kernel(model, parameter_kernel),
    )


def interweaving(model: Model, release: PrivateRelease, imputation: Imputation) -> tuple[bool, bool]:
    """Whether there is a step that moves parameters and latent data together, and whether it is on by default."""
    if isinstance(imputation, OwnLatentData):
        return imputation.can_interweave(model, release), imputation.interweaves(model, release)
    return model.noncentred is not None, model.noncentred is not None and bool(parameter_shapes(model))


def choose_imputation(model: Model, release: PrivateRelease, choice: Imputation | Literal["auto"] | None) -> Imputation:
    """The imputation meant: by default IMwG; for ``"auto"`` pCN tuned in warm-up where its blocks can pay.

    Raises
    ------
    TypeError, ValueError
        If it is no function, programs cannot be compiled for it, or it does not fit the model and the release.
    """
    if choice == "auto":
        known = isinstance(release, Release) and not is_unknown(release)
        choice = pcn() if known and release.n >= MIN_BLOCKED else imwg()
    imputation: Imputation = imwg() if choice is None else choice
    check_hashable_function("imputation", imputation, "a hashable function, such as dpjax.imwg()")
    trial = imputation.closed() if is_open(imputation) else imputation
    pair = latent_form(model, release, trial)
    check_number_known(pair[1])
    trial(*pair)
    return imputation


def draw_number(model: Model, release: PrivateRelease) -> tuple[Model, PrivateRelease]:
    """Model and release as they are, or in a form whose latent data have a number of records drawn from its prior."""
    if not is_unknown(release):
        return model, release
    return latent_form(model, release, counts() if prefers_counts(model, release) else imwg())


def is_open(imputation: Imputation) -> TypeGuard[Tunable]:
    """Whether the imputation leaves a choice to the warm-up."""
    return isinstance(imputation, Tunable) and imputation.is_open


def check_closed(imputation: Imputation, given: Any = None) -> None:
    """Raise if the imputation, `given` perhaps as ``"auto"``, leaves a choice to the warm-up of `dpjax.sample`."""
    if is_open(imputation):
        expected = "fixed numbers, as only the warm-up of dpjax.sample chooses them"
        remedy = "Pass dpjax.imwg(), dpjax.soma(attempts) or dpjax.pcn(block, correlation)."
        fail("imputation", repr(given or imputation), expected, remedy)


def adapt_plan(model: Model, release: PrivateRelease, plan: SweepPlan, state: GibbsState, key: Key) -> SweepPlan:
    """The plan with what the imputation leaves open chosen where the chains are, state [chain, ...]."""
    if not is_open(plan.imputation):
        return plan
    return replace(plan, imputation=plan.imputation.adapt(key, model, release, state.latent, state.parameters))


def build_kernel(
    model: Model, release: PrivateRelease, plan: SweepPlan
) -> Callable[[Key, GibbsState, Tuning], tuple[GibbsState, GibbsInfo]]:
    """The sweep ``(rng_key, state, tuning) -> (state, info)``: it leaves p(parameters, records | release) invariant.

    Centred step, non-centred step (if interweaving), imputation: Ju, Awan, Gong and Rao (2022), Algorithm 1, with the
    second step of Yu and Meng (2011). Where the parameters are integrated out of the imputation it comes first, and the
    parameters are drawn given what it imputed.

    Parameters
    ----------
    model, release
        In the form of the latent data; see `latent_form`.
    """
    if is_collapsed(plan.imputation, model, release):
        return build_collapsed_kernel(model, release, plan)
    centred = build_centred_step(model, plan.parameter_kernel)
    interweaving = build_second_step(model, release, plan.imputation) if plan.interweave else None
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


def is_collapsed(imputation: Imputation, model: Model, release: PrivateRelease) -> bool:
    """Whether the parameters are integrated out of the imputation."""
    return isinstance(imputation, OwnLatentData) and imputation.is_collapsed(model, release)


def build_collapsed_kernel(
    model: Model, release: PrivateRelease, plan: SweepPlan
) -> Callable[[Key, GibbsState, Tuning], tuple[GibbsState, GibbsInfo]]:
    """The sweep that imputes with the parameters integrated out, and then draws these exactly."""
    assert plan.parameter_kernel is None, "a draw of the parameters that is not exact needs an imputation given them"
    centred, impute = build_centred_step(model, None), plan.imputation(model, release)

    def kernel(rng_key: Key, state: GibbsState, tuning: Tuning) -> tuple[GibbsState, GibbsInfo]:
        imputation_key, centred_key = jax.random.split(rng_key)
        latent, imputation_info = impute(imputation_key, state.latent, state.parameters)
        parameters, _, num_nonfinite = centred(centred_key, state.parameters, latent.records, tuning)
        info = GibbsInfo(imputation_info, None, None, num_nonfinite + imputation_info.num_nonfinite)
        return GibbsState(parameters, latent), info

    return kernel


def build_second_step(
    model: Model, release: PrivateRelease, imputation: Imputation
) -> Callable[[Key, Parameters, Records, Tuning], tuple[Parameters, Records, Any]]:
    """The step that moves parameters and records together: with records summed out if possible, else noise held."""
    if isinstance(imputation, OwnLatentData):
        return imputation.build_second_step(model, release)
    if has_windows(release, model):
        return build_summed_step(model, release)
    return build_interweaving_step(model, release)


def prior_tuning(model: Model, n: int, plan: SweepPlan, num_chains: int = 4) -> Tuning:
    """The tuning fitted to draws of parameters and n records from the model, under a fixed key."""
    if not plan.uses_tuning:
        return unit_tuning(model)
    tuning_key, parameter_key, record_key, step_key = jax.random.split(jax.random.key(0), 4)
    parameters = draw_parameters(parameter_key, model, num_chains)
    records = jax.vmap(model.sample_records, in_axes=(0, 0, None))(
        jax.random.split(record_key, num_chains), parameters, n
    )
    return fit_step_size(step_key, model, plan.parameter_kernel, fit_to_prior(tuning_key, model), parameters, records)
