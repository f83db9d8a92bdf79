"""A model and a release as they are sampled together: the form of their latent data, and the plan of a sweep.

What both say together is asked by `augment` at the head of a call, and carried in a `Problem`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, get_args

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.validation import check_choice, check_hashable_function, fail, name_of, summarize_error
from dpjax.base import Imputation, ImputationKernel, Key, Model, Parameters
from dpjax.data_augmentation.counts import counts
from dpjax.data_augmentation.counts.form import prefers_counts
from dpjax.data_augmentation.kernel_checks import check_kernel, is_known
from dpjax.data_augmentation.parameters import (
    KernelBuilder,
    ParameterKernel,
    can_move_noise,
    choose_kernel,
    should_move_noise,
)
from dpjax.data_augmentation.plan import Noise, SweepPlan, needs_tuning, show
from dpjax.data_augmentation.records.exchanges import has_known_totals
from dpjax.data_augmentation.records.forms import OwnLatentData, SecondStep, is_collapsed, is_constrained, latent_form
from dpjax.data_augmentation.records.imwg import imwg
from dpjax.data_augmentation.records.pcn import pcn
from dpjax.data_augmentation.records.soma import soma
from dpjax.data_augmentation.records.unknown_number import rows_of, with_capacity
from dpjax.data_augmentation.summed_out import (
    Likelihood,
    MarginalLikelihood,
    OwnLikelihood,
    SummedOut,
    preferred_sums,
    summed_out,
    summed_state,
)
from dpjax.data_augmentation.summed_out.within import check_imputed
from dpjax.data_augmentation.sweep import find_second_step
from dpjax.models.checks import check_fit
from dpjax.models.data_sets import NUMBER
from dpjax.models.programs import jit_model
from dpjax.models.simulation import GibbsState, draw_state, parameter_shapes
from dpjax.release import PrivateRelease
from dpjax.release.summed import one_sum_of
from dpjax.release.unknown_count import UnknownCount, check_number_known, is_unknown
from dpjax.release.weights import check_unweighted

MAX_RECORDS = 2**31 - 1
"""Largest number of records, as indices have 32 bits."""

IMPUTATIONS = {choose.__name__: choose for choose in (counts, imwg, pcn, soma, summed_out)}
"""What a name stands for: the function of that name without arguments."""

UNCALLED = tuple((choose, f"dpjax.{name}") for name, choose in IMPUTATIONS.items())
"""Functions that return an imputation, and may be passed by mistake."""

MIN_BLOCKED = 50
"""Smallest number of records from which ``"auto"`` tunes blocks: at n = 20 they gain a quarter at best."""

FEW_LOCAL = 50
"""Largest number of values released one by one from which refreshes are on by default: all of them have to fit."""


@dataclass(frozen=True, eq=False)
class Problem:
    """A model and a release, their latent form, and the plan of a sweep of p(parameters, latent data | release).

    Parameters
    ----------
    given_model
        As the user knows it.
    given_release
        As the user knows it.
    model
        In the form of the latent data; see `latent_form`.
    release
        In the form of the latent data.
    plan
        The sweep.
    likelihood
        The likelihood of the parameters alone, with windows fitted to where they are; None if that is not known.
    """

    given_model: Model
    given_release: PrivateRelease
    model: Model
    release: PrivateRelease
    plan: SweepPlan
    likelihood: Likelihood | None = None

    def planned(self, **choices: Any) -> "Problem":
        """The problem with other choices in its plan, which leave the form of the latent data as it is."""
        return replace(self, plan=replace(self.plan, **choices))

    @cached_property
    def imputation_with_defaults(self) -> Imputation:
        """The imputation with a default for every option that is left to the warm-up."""
        imputation = self.plan.imputation
        return imputation.with_defaults(self.model, self.release) if needs_tuning(imputation) else imputation

    @cached_property
    def conditional_imputation(self) -> Imputation:
        """The imputation by which latent data move given the parameters, with those defaults."""
        imputation = self.imputation_with_defaults
        return imputation.given_parameters() if isinstance(imputation, OwnLatentData) else imputation

    @cached_property
    def swept_release(self) -> Any:
        """The release as a sweep reads it: the likelihood of the parameters where the records are summed out."""
        if not isinstance(self.plan.imputation, SummedOut):
            return self.release
        return self.likelihood or self.plan.imputation.sum_out(self.given_model, self.given_release)

    @property
    def has_own_likelihood(self) -> bool:
        """Whether the likelihood is another than that of the records summed out."""
        return self.plan.sums_out and not isinstance(self.swept_release, MarginalLikelihood)

    @property
    def own_functions(self) -> dict[str, Any]:
        """The functions of a user's own that the likelihood consists of, by the argument's name."""
        return {} if self.likelihood is None else self.likelihood.functions

    def given_parameters(self, parameters: Parameters) -> Parameters:
        """Parameters without the numbers that a likelihood has of its own, and does not report."""
        own = parameter_shapes(self.model).keys() - parameter_shapes(self.given_model).keys()
        own -= set(self.swept_release.reported)
        return {name: leaf for name, leaf in parameters.items() if name not in own}

    def own_draws(self, key: Key, draws: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Draws [chain, draw, ...] without a likelihood's own numbers, but with what it draws given these."""
        if not self.has_own_likelihood:
            return draws
        split = partial(jax.random.split, num=np.shape(next(iter(draws.values())))[:2])
        given = self.model, self.swept_release
        # Mostly nothing is drawn, for which no program is compiled.
        nothing = not draw_given.eval_shape(*given, jax.eval_shape(split, key), draws)
        drawn = {} if nothing else jax.device_get(draw_given(*given, split(key), draws))
        return self.given_parameters(draws) | drawn

    def examine(self, key: Key, draws: dict[str, np.ndarray]) -> dict[str, Any]:
        """Reports of a likelihood on how good it is at its `own_draws`; an error if it is too coarse for them."""
        names = (*parameter_shapes(self.given_model), NUMBER)
        return self.swept_release.examine(key, {name: draws[name] for name in names if name in draws})

    @property
    def num_imputed(self) -> int:
        """How many records are imputed: none if they are summed out."""
        return 0 if self.plan.sums_out else self.release.n

    @cached_property
    def kernel(self) -> ImputationKernel:
        """The kernel of the latent data, with those defaults; an error if it does not fit."""
        return self.imputation_with_defaults(self.model, self.release)

    def state_shapes(self, axes: tuple[int, ...]) -> GibbsState:
        """The shapes and types of the states of chains with these leading axes."""
        own, model, release = self.plan.own_latent_data, self.model, self.release
        if own is not None:
            shapes = own.state_shapes(model, release)
        elif self.plan.sums_out:
            shapes = jax.eval_shape(partial(summed_state, self.plan), parameter_shapes(model), self.swept_release)
        else:
            key = jax.eval_shape(jax.random.key, 0)
            shapes = jax.eval_shape(partial(draw_state, model=model, release=release), key)
        return jax.tree.map(partial(with_axes, axes), shapes)

    @cached_property
    def is_collapsed(self) -> bool:
        """Whether the parameters are integrated out of the imputation."""
        return is_collapsed(self.plan.imputation, self.model, self.release)

    @cached_property
    def second_step(self) -> SecondStep | None:
        """The step that moves parameters and latent data together, if there is one."""
        return find_second_step(self.model, self.release, self.plan)


@jit_model
def draw_given(model: Model, likelihood: Likelihood, keys: Key, draws: Parameters) -> Parameters:
    """What a model reports of what a likelihood draws given parameters [chain, draw, ...]."""

    def draw(given: tuple[Key, Parameters]) -> Parameters:
        return model.reported(likelihood.sample_records(*given))

    found: Parameters = jax.lax.map(partial(jax.lax.map, draw), (keys, draws))
    return found


def with_axes(axes: tuple[int, ...], leaf: jax.ShapeDtypeStruct) -> jax.ShapeDtypeStruct:
    """The shape with leading axes before its own."""
    return jax.ShapeDtypeStruct((*axes, *leaf.shape), leaf.dtype, weak_type=leaf.weak_type)


def augment(
    model: Model,
    release: PrivateRelease,
    imputation: Imputation | str | None = None,
    interweave: bool | None = None,
    parameter_kernel: str | KernelBuilder | ParameterKernel | None = None,
    allow_counts: bool = False,
    allow_sums: bool = False,
    likelihood: Any = None,
) -> Problem:
    """The problem with the plan of a sweep, defaults filled in; incompatible choices are refused before compilation.

    Parameters
    ----------
    allow_counts
        Whether counts stand for the records where that is cheaper and neither imputation nor interweaving is chosen.
    allow_sums
        Whether the records are summed out where they can be, likewise.
    likelihood
        That of the parameters alone, if the user gives it.

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
    if likelihood is not None:
        imputation, likelihood = choose_likelihood(model, release, likelihood, imputation, interweave)
    elif (imputation is None or is_auto(imputation)) and interweave is None:
        if allow_counts and prefers_counts(model, release):
            imputation = counts()
        elif allow_sums and (likelihood := preferred_sums(model, release)) is not None:
            imputation = summed_out()
    problem = impute_by(model, release, imputation, likelihood)
    own = problem.plan.own_latent_data
    if parameter_kernel is not None and own is not None:
        problem = problem.planned(imputation=own.given_parameters())
    second_step = problem.second_step
    if interweave and second_step is None:
        expected = "a model, and latent data, with a non-centred form"
        fail("interweave", True, expected, "Give the model one, impute its records, or leave interweave out.")
    return problem.planned(
        interweave=second_step is not None and (second_step.by_default() if interweave is None else interweave),
        parameter_kernel=choose_kernel(
            problem.model, parameter_kernel, alone=problem.plan.sums_out, smooth=problem.has_own_likelihood
        ),
    )


def choose_likelihood(
    model: Model, release: PrivateRelease, choice: Any, imputation: Any, interweave: Any
) -> tuple[SummedOut, Likelihood | None]:
    """The imputation that stands for a likelihood, and the likelihood if it is not made from model and release."""
    if imputation is not None or interweave:
        given = "one beside an imputation or interweaving, which impute records"
        fail("likelihood", given, "no choice of how records are imputed", "Leave imputation and interweave out.")
    whole = [name for name, x in parameter_shapes(model).items() if not jnp.issubdtype(x.dtype, jnp.floating)]
    if whole:
        given = f"one of a model with parameters {whole} of whole numbers"
        fail("likelihood", given, "real-valued parameters", "Leave it out.")
    if isinstance(choice, SummedOut):
        return choice, None
    if not parameter_shapes(model):
        fail("likelihood", "one of a model without parameters", "real-valued parameters", "Leave it out.")
    if isinstance(choice, Likelihood):
        choice.check_is_of(model, release)
        return SummedOut(), choice
    check_hashable_function("likelihood", choice, "dpjax.normal_sum(), or a hashable function of the parameters")
    check_returns_number(choice, parameter_shapes(model))
    return SummedOut(), OwnLikelihood(choice)


def check_returns_number(function: Any, shapes: Any) -> None:
    """Raise unless a function of the parameters returns one real number."""
    expected, remedy = "a log-density [] of the parameters, a dict by name", "Sum over what was released."
    try:
        found = jax.eval_shape(function, shapes)
    except Exception as error:  # whatever a function of the user's own may raise
        fail("likelihood", f"a function that failed with {summarize_error(error)}", expected, remedy)
    if getattr(found, "shape", None) != () or not jnp.issubdtype(found.dtype, jnp.floating):
        given = f"{found.dtype}{list(found.shape)}" if hasattr(found, "shape") else type(found).__name__
        fail("likelihood", f"a function that returns {given}", expected, remedy)


def impute_by(
    model: Model,
    release: PrivateRelease,
    choice: Imputation | str | None,
    likelihood: Likelihood | None = None,
) -> Problem:
    """The problem whose plan has the imputation for a choice, the model's own update, and no interweaving.

    Parameters
    ----------
    likelihood
        That of the parameters alone, if it is known already.

    Raises
    ------
    TypeError, ValueError
        If the choice is no function, programs cannot be compiled for it, or it does not fit the model and the release.
        Also if there are more records to impute than can be indexed.
    """
    imputation = choose_imputation(release, choice)
    if isinstance(imputation, SummedOut):
        likelihood = likelihood or imputation.sum_out(model, release)
        return Problem(
            model, release, likelihood.extend(model), release, SweepPlan(imputation, False, None), likelihood
        )
    problem = problem_of(model, release, SweepPlan(imputation, False, None))
    check_number_known(problem.release)
    check_imputed(model, release)
    if not callable(problem.kernel):
        given = f"{show(problem.plan.imputation)}, which returns {name_of(problem.kernel)}"
        fail("imputation", given, "a function that returns a kernel", "See dpjax.base.Imputation.", error=TypeError)
    if not is_known(problem.kernel):
        check_kernel(show(problem.plan.imputation), problem.kernel, problem.state_shapes(()), problem.release.n)
    if problem.release.n > MAX_RECORDS:
        remedy = "Impute counts if records take few values, or approximate the sum as normal: dpjax.sample_clt."
        fail("release", f"n = {problem.release.n} records to impute", f"at most {MAX_RECORDS}", remedy)
    return problem


def problem_of(model: Model, release: PrivateRelease, plan: SweepPlan) -> Problem:
    """The problem of a model and a release for a plan that is known."""
    return Problem(model, release, *latent_form(model, release, plan.imputation), plan)


def draw_number(model: Model, release: PrivateRelease) -> tuple[Model, PrivateRelease]:
    """Model and release as they are, or in a form whose latent data have a number of records drawn from its prior."""
    if not is_unknown(release):
        return model, release
    return latent_form(model, release, counts() if prefers_counts(model, release) else imwg())


def is_auto(choice: Any) -> bool:
    """Whether the choice is left to dpjax by its word; arrays do not say whether they equal one."""
    return isinstance(choice, str) and choice == "auto"


def choose_imputation(release: PrivateRelease, choice: Imputation | str | None) -> Imputation:
    """The imputation for a choice or its name: IMwG by default, and for ``"auto"`` pCN if its blocks can save time."""
    if is_auto(choice):
        is_sum = one_sum_of(release) is not None and not is_unknown(release)
        choice = pcn() if is_sum and release.n >= MIN_BLOCKED else imwg()
    if isinstance(choice, str):
        remedy = "Or pass one with its options, such as dpjax.soma(attempts)."
        check_choice("imputation", choice, ("auto", *IMPUTATIONS), remedy)
        choice = IMPUTATIONS[choice]()
    given: Any = choice
    if name := next((name for choose, name in UNCALLED if choose is given), None):
        fail("imputation", f"{name} itself", "the choice that it returns", f"Call it: {name}().", error=TypeError)
    imputation: Imputation = imwg() if choice is None else choice
    check_hashable_function("imputation", imputation, "a hashable function, such as dpjax.imwg()")
    return imputation


def move_noise(problem: Problem) -> Problem:
    """The problem with the noise of the records moved by surrogate, if there are many of them and such a step."""
    plan = problem.plan
    if plan.own_latent_data is not None or not plan.interweave or not should_move_noise(problem.model, problem.release):
        return problem
    return problem.planned(noise="moved by surrogate")


def with_noise(problem: Problem, noise: Noise) -> Problem:
    """The problem with another choice of what is done with the noise, or an error where there is no such step."""
    known = noise in get_args(Noise)
    possible = known and problem.plan.interweave and can_move_noise(problem.model, problem.release)
    if noise != "held" and not possible:
        expected = "'held'" if known else " or ".join(map(repr, get_args(Noise)))
        remedy = "Noise moves for identically distributed records with Normal scores, and one sum with real noise."
        fail("plan", f"noise={noise!r}", expected, remedy)
    return problem.planned(noise=noise)


def with_refresh(problem: Problem, choice: bool | None) -> Problem:
    """The problem with refreshes where they are chosen, or by default where they are possible and may be accepted.

    Raises
    ------
    TypeError, ValueError
        If the choice is none, or refreshes are asked for where there are none.
    """
    if not (choice is None or isinstance(choice, bool)):
        remedy = "None makes refreshes wherever they are possible."
        fail("refresh", repr(choice), "True, False or None", remedy, error=TypeError)
    obstacle, release = refresh_obstacle(problem), problem.given_release
    if choice and obstacle:
        expected = "parameters of real numbers that are kept in the state"
        fail("refresh", f"True with {obstacle}", expected, "Leave refresh out.")
    few = not release.fields or release.n <= FEW_LOCAL
    return problem.planned(refresh=few and not obstacle if choice is None else choice)


def with_records(problem: Problem, wanted: bool) -> Problem:
    """The problem with records drawn for each draw that is kept, if they are wanted though they are summed out."""
    imputation = problem.plan.imputation
    if wanted:
        check_unweighted(problem.given_model, problem.given_release, "collect", "states with records")
    return problem.planned(imputation=imputation.with_records(wanted)) if isinstance(imputation, SummedOut) else problem


def refresh_obstacle(problem: Problem) -> str:
    """What is in the way of refreshes; empty where they are possible."""
    shapes, imputation = jax.tree.leaves(parameter_shapes(problem.given_model)), problem.plan.imputation
    if not all(jnp.issubdtype(leaf.dtype, jnp.floating) for leaf in shapes):
        return "parameters that are not real numbers"
    if not shapes:
        return "a model without parameters"
    if not problem.given_model.draws_prior:
        return "a prior that cannot be drawn from"
    if problem.plan.sums_out:
        return "records that are summed out, so that none are proposed"
    if problem.given_release.exact:
        return "fields that are exact, which new records do not have"
    if problem.is_collapsed:
        return f"{show(imputation)}, which integrates the parameters out"
    known = is_constrained(imputation, problem.release) or has_known_totals(problem.release)
    return "known totals, which new counts hardly ever have" if known else ""


def tune_plan(problem: Problem, state: GibbsState, key: Key) -> SweepPlan:
    """The plan with every option of the imputation chosen at the chains' states [chain, ...]."""
    plan = problem.plan
    if not needs_tuning(plan.imputation):
        return plan
    chosen = plan.imputation.tune(key, problem.model, problem.release, state.latent, state.parameters)
    return replace(plan, imputation=chosen)


def with_equal_capacity(problems: Sequence[Problem]) -> list[Problem]:
    """The problems with arrays of as many rows as the one of them that needs most; those without rows as they are."""
    rows = [statistic.capacity for each in problems if (statistic := rows_of(each.release)) is not None]
    return [with_rows(each, max(rows)) for each in problems] if rows else list(problems)


def with_rows(problem: Problem, capacity: int) -> Problem:
    """The problem of records of an unknown number with arrays of so many rows."""
    model, release = with_capacity(problem.model, problem.release, capacity)
    given = replace(problem.given_release, n=UnknownCount(release.statistic.prior, capacity))
    return replace(problem, given_release=given, model=model, release=release)
