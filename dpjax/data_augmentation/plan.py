"""The parts of a data-augmentation sweep, chosen for a model and a release."""

from dataclasses import dataclass, is_dataclass, replace
from typing import Any, Literal, TypeGuard, get_args

import jax
import jax.numpy as jnp

from dpjax._util.validation import check_hashable_function, fail
from dpjax.base import Imputation, Key, Model
from dpjax.data_augmentation.counts import Counts, counts
from dpjax.data_augmentation.counts.form import prefers_counts
from dpjax.data_augmentation.counts.table import table_of
from dpjax.data_augmentation.parameters import (
    KernelBuilder,
    ParameterKernel,
    can_move_noise,
    choose_kernel,
    should_move_noise,
)
from dpjax.data_augmentation.records import parts
from dpjax.data_augmentation.records.forms import OwnLatentData, Tunable, latent_form
from dpjax.data_augmentation.records.imwg import IMwG, imwg
from dpjax.data_augmentation.records.microdata import values_summed_out
from dpjax.data_augmentation.records.pcn import pcn
from dpjax.data_augmentation.records.soma import soma
from dpjax.models.checks import check_fit
from dpjax.models.simulation import GibbsState, parameter_shapes
from dpjax.release import PrivateRelease, Release
from dpjax.release.microdata import has_exact
from dpjax.release.unknown_count import check_number_known, is_unknown

MAX_RECORDS = 2**31 - 1
"""Largest number of records, as indices have 32 bits."""

UNCALLED = tuple((choose, f"dpjax.{choose.__name__}") for choose in (counts, imwg, pcn, soma))
"""Functions that return an imputation, and may be passed by mistake."""

MIN_BLOCKED = 50
"""Smallest number of records from which ``"auto"`` tunes blocks: at n = 20 they gain a quarter at best."""

FEW_LOCAL = 50
"""Largest number of values released one by one from which refreshes are on by default: all of them have to fit."""

MOST_SUMMED_OUT = 1024
"""Largest number of records whose hidden fields are summed out by default. For twelve people with a perturbed label the
step gave six times as many effective draws; for 100,000 it takes some thirty times as long as the rest of a sweep."""

Noise = Literal["held", "moved", "moved by surrogate"]


@dataclass(frozen=True)
class SweepPlan:
    """The choices that define a sweep, such as `Posterior.plan`; hashable, so that compiled programs are reused.

    Parameters
    ----------
    imputation
        How the records move given the parameters.
    interweave
        Whether the non-centred step moves parameters and records together.
    parameter_kernel
        How the parameters move given the records; None for the model's own update.
    noise
        What the non-centred step does with the noise of the records: it is fixed (held); or its mean and scatter are
        moved with the parameters, optionally by a surrogate of the released sum that is corrected exactly.
    refresh
        Whether `dpjax.sample` makes refreshes between sweeps: proposals of new parameters and wholly new records.

    Examples
    --------
    >>> import dpjax
    >>> plan = SweepPlan(dpjax.imwg(), interweave=True, parameter_kernel=None)
    >>> print(plan.describe())
    imputation: IMwG(scan='systematic', window=None)
    interweaving: on
    parameters given records: the model's exact update
    """

    imputation: Imputation
    interweave: bool
    parameter_kernel: ParameterKernel | None
    noise: Noise = "held"
    refresh: bool = False

    @property
    def uses_tuning(self) -> bool:
        """Whether a step of the sweep uses the tuning."""
        return self.interweave or self.parameter_kernel is not None

    def describe(self, collapsed: bool = False) -> str:
        """The imputation, whether there is a non-centred step, and how the parameters move given the records.

        Parameters
        ----------
        collapsed
            Whether the parameters are integrated out of the imputation; see `is_collapsed`.
        """
        update = "the model's exact update" if self.parameter_kernel is None else show(self.parameter_kernel)
        if collapsed:
            update = f"integrated out of the imputation, and drawn for each draw kept by {update}"
        noise = "" if self.noise == "held" else f", with noise {self.noise}"
        interweaving = f"on{noise}" if self.interweave else "off"
        parts = {"imputation": show(self.imputation), "interweaving": interweaving, "parameters given records": update}
        parts |= {"refreshes": "on"} if self.refresh else {}
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
    """The plan of a sweep, with defaults filled in; incompatible choices are refused before compilation.

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
    check_size(release)
    possible, default = interweaving(model, release, chosen)
    if interweave and not possible:
        expected = "a model, and latent data, with a non-centred form"
        fail("interweave", True, expected, "Give the model one, impute its records, or leave interweave out.")
    return SweepPlan(
        imputation=chosen,
        interweave=default if interweave is None else interweave,
        parameter_kernel=choose_kernel(model, parameter_kernel),
    )


def check_size(release: PrivateRelease) -> None:
    """Raise if there are more records to impute than can be indexed."""
    if not is_unknown(release) and release.n > MAX_RECORDS:
        remedy = "Impute counts if records take few values, or approximate the sum as normal: dpjax.sample_clt."
        fail("release", f"n = {release.n} records to impute", f"at most {MAX_RECORDS}", remedy)


def move_noise(model: Model, release: PrivateRelease, plan: SweepPlan) -> SweepPlan:
    """The plan with the noise of the records moved by surrogate, where there are many of them and there is such a step.

    Parameters
    ----------
    model
        In the form of the latent data.
    release
        In the form of the latent data.
    """
    if isinstance(plan.imputation, OwnLatentData) or not plan.interweave or not should_move_noise(model, release):
        return plan
    return replace(plan, noise="moved by surrogate")


def with_noise(model: Model, release: PrivateRelease, plan: SweepPlan, noise: Noise) -> SweepPlan:
    """The plan with another choice of what is done with the noise, or an error where there is no such step."""
    known = noise in get_args(Noise)
    if noise != "held" and (not known or not plan.interweave or not can_move_noise(model, release)):
        expected = "'held'" if known else " or ".join(map(repr, get_args(Noise)))
        remedy = "Noise moves for identically distributed records with Normal scores, and one sum with real noise."
        fail("plan", f"noise={noise!r}", expected, remedy)
    return replace(plan, noise=noise)


def with_refresh(model: Model, release: PrivateRelease, plan: SweepPlan, choice: bool | None) -> SweepPlan:
    """The plan with refreshes where they are chosen, or by default where they are possible and may be accepted.

    Parameters
    ----------
    model
        As the user knows it.
    release
        As the user knows it.

    Raises
    ------
    TypeError, ValueError
        If the choice is none, or refreshes are asked for where there are none.
    """
    if not (choice is None or isinstance(choice, bool)):
        remedy = "None makes refreshes wherever they are possible."
        fail("refresh", repr(choice), "True, False or None", remedy, error=TypeError)
    obstacle = refresh_obstacle(model, release, plan)
    if choice and obstacle:
        expected = "parameters of real numbers that are kept in the state"
        fail("refresh", f"True with {obstacle}", expected, "Leave refresh out.")
    few = isinstance(release, Release) or release.n <= FEW_LOCAL
    return replace(plan, refresh=few and not obstacle if choice is None else choice)


def refresh_obstacle(model: Model, release: PrivateRelease, plan: SweepPlan) -> str:
    """What is in the way of refreshes; empty where they are possible."""
    shapes = jax.tree.leaves(parameter_shapes(model))
    if not all(jnp.issubdtype(leaf.dtype, jnp.floating) for leaf in shapes):
        return "parameters that are not real numbers"
    if not shapes:
        return "a model without parameters"
    if has_exact(release):
        return "fields that are exact, which new records do not have"
    model, release = latent_form(model, release, plan.imputation)
    if is_collapsed(plan.imputation, model, release):
        return f"{show(plan.imputation)}, which integrates the parameters out"
    known = isinstance(plan.imputation, Counts) and table_of(release).known
    return "known totals, which new counts hardly ever have" if known else ""


def interweaving(model: Model, release: PrivateRelease, imputation: Imputation) -> tuple[bool, bool]:
    """Whether there is a step that moves parameters and latent data together, and whether it is on by default."""
    if isinstance(imputation, OwnLatentData):
        return imputation.can_interweave(model, release), imputation.interweaves(model, release)
    if has_exact(release):
        # Exact fields do not move with the parameters: these move alone where all else is summed out.
        possible = values_summed_out(model, release) is not None
        return possible, possible and bool(parameter_shapes(model)) and release.n <= MOST_SUMMED_OUT
    return model.noncentred is not None, model.noncentred is not None and bool(parameter_shapes(model))


def choose_imputation(model: Model, release: PrivateRelease, choice: Imputation | Literal["auto"] | None) -> Imputation:
    """The imputation for a choice: by default IMwG; for ``"auto"`` pCN tuned in warm-up if its blocks can pay.

    Raises
    ------
    TypeError, ValueError
        If it is no function, programs cannot be compiled for it, or it does not fit the model and the release.
    """
    if choice == "auto":
        known = isinstance(release, Release) and not is_unknown(release)
        choice = pcn() if known and release.n >= MIN_BLOCKED else imwg()
    given: Any = choice
    if name := next((name for choose, name in UNCALLED if choose is given), None):
        fail("imputation", f"{name} itself", "the choice that it returns", f"Call it: {name}().", error=TypeError)
    imputation: Imputation = imwg() if choice is None else choice
    check_hashable_function("imputation", imputation, "a hashable function, such as dpjax.imwg()")
    trial = close(imputation, model, release)
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


def close(imputation: Imputation, model: Model, release: PrivateRelease) -> Imputation:
    """The imputation with every open option at some valid value; itself where none is open."""
    return imputation.closed(model, release) if is_open(imputation) else imputation


def check_closed(imputation: Imputation, given: Any = None) -> None:
    """Raise if the imputation, `given` perhaps as ``"auto"``, leaves a choice to the warm-up of `dpjax.sample`."""
    if is_open(imputation):
        expected = "fixed numbers, as only the warm-up of dpjax.sample chooses them"
        remedy = "Pass dpjax.imwg(), dpjax.soma(attempts) or dpjax.pcn(block, correlation)."
        fail("imputation", repr(given or imputation), expected, remedy)


def adapt_plan(model: Model, release: PrivateRelease, plan: SweepPlan, state: GibbsState, key: Key) -> SweepPlan:
    """The plan with the imputation's open options chosen at the chains' states [chain, ...]."""
    if not is_open(plan.imputation):
        return plan
    return replace(plan, imputation=plan.imputation.adapt(key, model, release, state.latent, state.parameters))


def has_parts(plan: SweepPlan, n: int) -> bool:
    """Whether sweeps of n records between refreshes may be over parts of them: where their noise moves, too."""
    systematic = isinstance(plan.imputation, IMwG) and plan.imputation.scan == "systematic"
    return plan.refresh and systematic and plan.noise != "held" and n <= parts.MAX_RECORDS


def is_collapsed(imputation: Imputation, model: Model, release: PrivateRelease) -> bool:
    """Whether the parameters are integrated out of the imputation."""
    return isinstance(imputation, OwnLatentData) and imputation.is_collapsed(model, release)
