"""Checks of what `sample` is to keep and where its chains are to start, before anything is compiled."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import jax

from dpjax._util.validation import Obstacle, fail, is_refusal, summarize_error
from dpjax.base import Key, Model, Parameters, Records
from dpjax.clt import check_problem, normal_sum, obstacle_to_clt, source_or_obstacle
from dpjax.data_augmentation.counts.form import prefers_counts
from dpjax.data_augmentation.counts.table import COUNTS
from dpjax.data_augmentation.problem import Problem
from dpjax.data_augmentation.summed_out import SummedOut
from dpjax.mcmc.run import Collect
from dpjax.models.checks import check_fit
from dpjax.models.positions import check_parameters, check_prior
from dpjax.models.simulation import GibbsState, parameter_shapes
from dpjax.models.table_starts import HasStarts
from dpjax.release import PrivateRelease
from dpjax.release.base import is_release
from dpjax.release.unknown_count import expected_number, is_unknown

LARGE_SAMPLE: Literal["large-sample"] = "large-sample"

RECORDS_FOR_LARGE_STARTS = 10_000
"""Number of records from which chains start at the Normal approximation.

From the prior they take hundreds of sweeps to arrive, of milliseconds each. The approximation takes some seconds at any
number.
"""

MANY_UNKNOWN = 300
"""An unknown number of records from which their sum is taken to be Normal by default.

Chains that also add and remove records mix the more slowly the more there are. A regression with some 1,200 had 188
effective draws in 55 CPU seconds, and an R-hat of 1.03. With little noise it was 1.4.
"""


def read_collect(collect: Collect | Literal["counts"] | None) -> tuple[Collect | None, bool]:
    """The function that collects, and whether counts may stand for the records with it."""
    if isinstance(collect, str) and collect == COUNTS:
        return take_counts, True
    return collect, collect is None  # type: ignore[return-value]


@dataclass(frozen=True)
class OfGivenParameters:
    """A function of a state without a likelihood's own numbers; equal where functions are, so that it compiles once."""

    function: Collect
    names: tuple[str, ...]

    def __call__(self, state: GibbsState) -> Any:
        """What the function returns."""
        return self.function(state._replace(parameters={name: state.parameters[name] for name in self.names}))


def collect_given(problem: Problem, collect: Collect | None) -> Collect | None:
    """The function that collects, which sees the parameters of the model that the user gave."""
    if collect is None or not problem.has_own_likelihood:
        return collect
    return OfGivenParameters(collect, tuple(parameter_shapes(problem.given_model)))


def take_counts(state: GibbsState) -> Records:
    """How many records take each possible value [c], where these are imputed."""
    return {COUNTS: state.latent.records[COUNTS][0]}


def check_collect(collect: Collect | None, states: GibbsState) -> None:
    """Raise unless a function can be called with the state of each chain [chain, ...].

    Raises
    ------
    ValueError
        If it fails, or returns what is no array.
    """
    if collect is None:
        return
    try:
        jax.eval_shape(jax.vmap(collect), states)
    except Exception as error:  # whatever a function of the user's own may raise
        fields = sorted(states.latent.records)
        given = f"a function that failed with {summarize_error(error)}"
        remedy = f"Here state.latent.records has the fields {fields}; it has counts where counts are imputed."
        fail("collect", given, "a function of a GibbsState that returns arrays", remedy)


def check_initial(
    model: Model, release: PrivateRelease, initial: Any, num_chains: int
) -> Parameters | Literal["large-sample"] | None:
    """The initial parameters [chain, ...] in the types of the model's own; None and a known word stay as they are.

    Raises
    ------
    TypeError, ValueError
        If names, shapes or values do not fit the model, or what a word asks for is not to be had for it.
    """
    if initial is None:
        return None
    if isinstance(initial, str):
        return check_word(model, release, initial)
    parameters = check_parameters("initial", model, initial, (num_chains,))
    check_prior("initial", model, parameters, (num_chains,))
    return parameters


def default_likelihood(model: Model, release: PrivateRelease) -> SummedOut | None:
    """The Normal sum for many records of an unknown number, unless counts can stand for them; else None."""
    if not is_release(release) or not is_unknown(release) or expected_number(release.n) < MANY_UNKNOWN:
        return None
    check_fit(model, release)
    if prefers_counts(model, release) or isinstance(source_or_obstacle(model, release), Obstacle):
        return None
    return normal_sum()


def default_initial(problem: Problem) -> Literal["large-sample"] | None:
    """Where chains start if the user does not say: near the posterior where many records are imputed one by one."""
    model, release = problem.given_model, problem.given_release
    own = problem.plan.own_latent_data
    if own is not None or problem.plan.sums_out or is_unknown(release) or release.n < RECORDS_FOR_LARGE_STARTS:
        return None
    return LARGE_SAMPLE if obstacle_to_clt(model, release) is None else None


def own_starts(problem: Problem, key: Key, num_chains: int) -> Parameters | None:
    """The parameters [chain, ...] at which the model starts chains of imputed records; None if it names none."""
    model = problem.given_model
    if problem.plan.sums_out or not isinstance(model, HasStarts):
        return None
    return model.first_parameters(
        jax.random.fold_in(jax.random.clone(key), num_chains), problem.given_release, num_chains
    )


def check_word(model: Model, release: PrivateRelease, initial: str) -> Literal["large-sample"]:
    """The word, or an error unless it is the known one and `dpjax.sample_clt` takes model and release."""
    if initial != LARGE_SAMPLE:
        fail("initial", repr(initial), f"parameters [chain, ...], {LARGE_SAMPLE!r} or None", "Leave it out.")
    with refused_by_name():
        check_problem(model, release)
    return LARGE_SAMPLE


@contextmanager
def refused_by_name() -> Iterator[None]:
    """Whatever `dpjax.sample_clt` refuses is an error that names `initial`; errors of a user's functions stay so."""
    try:
        yield
    except (TypeError, ValueError) as error:
        if not is_refusal(error):
            raise
        given = f"{LARGE_SAMPLE!r}, which dpjax.sample_clt refuses ({error})"
        remedy = "Leave `initial` out, or pass parameters."
        fail("initial", given, "a model and release with a Normal approximation", remedy, error=type(error))
