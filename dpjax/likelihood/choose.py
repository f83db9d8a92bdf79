"""Input checks of `maximum_likelihood` before compilation, the choice of how the likelihood is computed, and starts."""

from functools import partial
from typing import Any, Literal, NamedTuple, get_args

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.validation import (
    Obstacle,
    check_choice,
    check_count,
    check_free,
    check_key,
    check_positive_number,
    fail,
    name_of,
)
from dpjax.base import Imputation, Key, Model, Parameters
from dpjax.clt import REFINEMENT, check_problem, default_points, obstacle_to_clt
from dpjax.clt.density import release_noise, simulate_variance
from dpjax.clt.moments import make_points
from dpjax.clt.starts import check_starts, find_starts
from dpjax.data_augmentation.counts import counts
from dpjax.data_augmentation.counts.form import find_obstacle, prefers_counts
from dpjax.data_augmentation.plan import check_tuned
from dpjax.data_augmentation.problem import Problem, impute_by
from dpjax.data_augmentation.summed_out import (
    MarginalLikelihood,
    SummedOut,
    check_exact,
    sum_out,
    summed_out,
    try_sum_out,
)
from dpjax.likelihood.approximate import Approximate, scale_rules
from dpjax.likelihood.imputed import Imputed
from dpjax.likelihood.other_starts import far_starts
from dpjax.likelihood.summed import Summed, find_likely
from dpjax.likelihood.surface import Surface
from dpjax.mcmc.starts import starts_by
from dpjax.mechanisms.smoothed import smoothed
from dpjax.models.checks import check_fit
from dpjax.models.positions import check_derived, check_parameters
from dpjax.models.simulation import parameter_shapes
from dpjax.models.unconstrained import to_vector
from dpjax.release import PrivateRelease
from dpjax.release.summed import as_sum
from dpjax.release.unknown_count import is_unknown
from dpjax.runtime.progress import check_progress

__all__ = ["LikelihoodStart", "Method", "check_inputs", "choose_method", "open_surface"]

Method = Literal["auto", "imputation", "clt"]

Form = MarginalLikelihood | Literal["imputation", "clt"]
"""How the likelihood is computed: with the records summed out as here, by chains of imputation, or by a Normal sum."""

RECORDS_FOR_NORMAL_SUM = 1_000
"""Smallest number of records that are not imputed one by one if their sum can be taken to be Normal. With a thousand
and noise at ε = 1 a fiftieth of the information is left, and chains take minutes to tell it from none."""

START_CHAINS = 4
"""Climbs from the prior, of which the best is taken."""


class LikelihoodStart(NamedTuple):
    """A likelihood, a start [1, k], the chains there [1, group, ...], and other starts [start, k]."""

    surface: Surface
    vectors: np.ndarray
    chains: Any
    others: np.ndarray = np.zeros((0, 0))


def check_inputs(
    key: Any, model: Any, release: Any, method: Any, num_chains: Any, num_steps: Any, precision: Any, progress: Any
) -> None:
    """Raise unless the arguments are usable and there is something to estimate.

    Raises
    ------
    TypeError, ValueError
        With the argument, what was given, what was expected and the remedy.
    """
    check_key("key", key)
    check_fit(model, release)
    check_derived(model)
    check_real(model)
    if is_unknown(release):
        remedy = "A prior of the number of records has no place in a likelihood: use dpjax.sample."
        fail("release.n", repr(release.n), "a known number of records", remedy)
    check_choice("method", method, get_args(Method), "Leave it out for 'auto'.")
    check_count("num_chains", num_chains, "Errors come from the variation between chains: pass 8 or more.", least=8)
    check_count("num_steps", num_steps, "Pass a whole number of at least 64.", least=64)
    check_positive_number("precision", precision, "Pass a number such as 0.05.")
    check_progress(progress)


def check_real(model: Model) -> None:
    """Raise unless there are parameters, all of them real numbers."""
    shapes = parameter_shapes(model)
    if not shapes:
        fail("model", "a model without parameters", "parameters to estimate", "Give one of its numbers a prior.")
    whole = [name for name, leaf in shapes.items() if not jnp.issubdtype(leaf.dtype, jnp.floating)]
    if whole:
        fail("model", f"parameters {whole} of whole numbers", "real numbers", "Fit each of their values by itself.")


def choose_method(model: Model, release: PrivateRelease, method: Method, imputation: Imputation | str | None) -> Form:
    """The form: sums where they are possible, else imputation, or a Normal sum of many records.

    That is taken where records would be imputed one by one.
    """
    if method == "clt":
        if imputation is not None:
            fail("imputation", repr(imputation), "None with method='clt', which imputes nothing", "Leave one out.")
        check_free(obstacle_to_normal_sum(model, release))
        return "clt"
    check_exact(imputation)
    # The derivatives of records beside totals are not those of rows, one by one.
    if not release.fields or release.summed is None:
        if asks_for_sums(imputation):
            return sum_out(model, release)
        if method == "auto" and imputation is None and (found := try_sum_out(model, release)) is not None:
            return found
    if release.fields and release.local is None:
        given = "Microdata whose records are not summed out"
        remedy = "Leave method and imputation out; or use dpjax.sample, with a wide prior if none is wanted."
        fail("release", given, "a Release, a LocalRelease, or records that can be summed out", remedy)
    if method != "auto" or imputation is not None or counts_fit(model, release) or release.n < RECORDS_FOR_NORMAL_SUM:
        return "imputation"
    return "clt" if obstacle_to_normal_sum(model, release) is None else "imputation"


def asks_for_sums(imputation: Imputation | str | None) -> bool:
    """Whether a choice of imputation is that there is none."""
    return isinstance(imputation, SummedOut) or (isinstance(imputation, str) and imputation == summed_out.__name__)


def obstacle_to_normal_sum(model: Model, release: Any) -> Obstacle | None:
    """Why the sum cannot be taken to be Normal, with noise that is Normal given its variance."""
    if obstacle := obstacle_to_clt(model, release):
        return obstacle
    real = release.with_mechanism(smoothed(release.mechanism))
    if not release_noise(real, jnp.ones_like(real.value)).held:
        return None
    expected = "Gaussian or Laplace noise, for method='clt'"
    return Obstacle("release", f"noise of {name_of(release.mechanism)}", expected, "Use method='imputation'.")


def counts_fit(model: Model, release: PrivateRelease) -> bool:
    """Whether how many records take each value can be imputed, and these are fewer than the records."""
    if find_obstacle(model, release):
        return False
    return prefers_counts(model, release) or model.domain.size <= release.n


def choose_latent(model: Model, release: PrivateRelease, imputation: Imputation | str | None) -> Problem:
    """The problem of the imputation asked for, or else of counts if they fit, and of records."""
    problem = impute_by(model, release, counts() if imputation is None and counts_fit(model, release) else imputation)
    if imputation is not None:
        check_tuned(problem.plan.imputation, imputation)
    return problem


def open_surface(
    key: Key,
    model: Model,
    release: PrivateRelease,
    method: Form,
    imputation: Imputation | str | None,
    num_chains: int,
    initial: Parameters | None,
) -> LikelihoodStart:
    """The likelihood by a method, at a start."""
    start = None if initial is None else check_parameters("initial", model, initial)
    if method == "clt":
        return open_approximate(key, model, release, start)
    if isinstance(method, MarginalLikelihood):
        return open_summed(key, model, release, method, start)
    problem = choose_latent(model, release, imputation)
    model, release, held = problem.model, problem.release, problem.conditional_imputation
    surface = Imputed(model=model, release=release, imputation=held, num_chains=num_chains)
    several = None if start is None else jax.tree.map(lambda leaf: jnp.stack([leaf] * num_chains), start)
    search_key, climb_key = jax.random.split(key)
    states = starts_by(held)((search_key, climb_key), model, release, num_chains, several)
    vectors = np.asarray(jax.vmap(lambda parameters: to_vector(model, parameters)[0])(states.parameters), float)
    chains = jax.tree.map(lambda leaf: leaf[None], states.latent.records)
    others = far_starts(vectors) if initial is None else vectors[:0]
    return LikelihoodStart(surface, np.mean(vectors, axis=0, keepdims=True), chains, others)


def open_summed(
    key: Key, model: Model, release: PrivateRelease, likelihood: MarginalLikelihood, start: Parameters | None
) -> LikelihoodStart:
    """The likelihood with the records summed out, at a start or else the most likely of some draws from the prior."""
    surface = Summed(model=model, release=release, likelihood=likelihood)
    if start is not None:
        return LikelihoodStart(surface, np.asarray(to_vector(model, start)[0], float)[None], None)
    vectors = find_likely(key, surface)
    return LikelihoodStart(surface, vectors[:1], None, far_starts(vectors))


def open_approximate(key: Key, model: Model, release: Any, start: Parameters | None) -> LikelihoodStart:
    """The likelihood of a sum that is taken to be Normal, at the mode of its posterior unless a start is given."""
    source, given = check_problem(model, release), as_sum(release)
    rule_key, noise_key, scale_key, start_key = jax.random.split(key, 4)
    release = given.with_mechanism(smoothed(given.mechanism))
    make = partial(make_points, rule_key, model, source, default_points(source))
    simulated = simulate_variance(noise_key, release)
    surface = Approximate(
        model=model,
        release=release,
        given=given,
        source=source,
        rule=make(1),
        finer=make(REFINEMENT),
        simulated=simulated,
        scales=scale_rules(scale_key, release, simulated),
    )
    if start is not None:
        return LikelihoodStart(surface, np.asarray(to_vector(model, start)[0], float)[None], None)
    starts = find_starts(start_key, model, release, source, surface.rule, simulated, START_CHAINS)
    check_starts(starts, release)
    return LikelihoodStart(surface, np.asarray(starts.tuning.location, float)[None], None)
