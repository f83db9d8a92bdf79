"""Simulation-based calibration: whether the sampler draws from the posterior of the model that generated the data.

Parameters are drawn from the prior, records and a release from the model, and the true parameters are ranked among the
draws of a chain from the release's posterior. For independent draws from that posterior all ranks are equally likely
(Talts, Betancourt, Simpson, Vehtari and Gelman 2018, theorem 1). The same holds for every function of parameters,
records and release. Those of the data, such as the log-density of the release, detect errors that the parameters alone
do not (Modrák et al. 2023).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import ceil
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.jit import jit_unoptimized
from dpjax._util.spelling import takes_num_draws
from dpjax._util.threads import one_blas_thread
from dpjax._util.validation import check_count, check_hashable_function, check_key, fail, summarize_error
from dpjax._util.warn import warn_at_the_call
from dpjax.base import Array, Imputation, Key, Model, Parameters, Records
from dpjax.data_augmentation.parameters.kernels import KernelBuilder, ParameterKernel
from dpjax.data_augmentation.plan import check_tuned
from dpjax.data_augmentation.problem import Problem, augment, problem_of, with_equal_capacity, with_records
from dpjax.data_augmentation.summed_out import check_exact
from dpjax.mcmc.batch import begin, make_batch_run, split_keys
from dpjax.mcmc.batch_run import BatchRun, most_together
from dpjax.models.checks import check_fit, check_prior_is_drawn
from dpjax.models.programs import jit_model
from dpjax.models.simulation import (
    GibbsState,
    Position,
    batch_size,
    draw_position,
    init_state,
    parameter_shapes,
    position_shapes,
)
from dpjax.release import PrivateRelease
from dpjax.runtime.chunk import Segment
from dpjax.runtime.run import Status
from dpjax.sampler_tests.sbc_result import SBCResult

WINDOWS = (1, 1, 2, 4)
"""Lengths of the warm-up windows, in eighths of the warm-up; each has as many draws as are kept."""

MAX_AUTOCORRELATION = 0.3
"""Largest lag-1 autocorrelation without a warning: such draws have an effective size of a little over half."""

__all__ = ["LOG_DENSITY", "Quantities", "Ranked", "Replicates", "rank_replicates", "simulate"]

LOG_DENSITY = "log_density"
"""The name of the log-density of the release given the records, which is always ranked."""

Quantities = Callable[[Parameters, Records, PrivateRelease], dict[str, Any]]


@dataclass(frozen=True)
class Ranked:
    """The function that computes the ranked quantities of a state, for the truth and the draws alike."""

    quantities: Quantities | None

    def __call__(self, release: PrivateRelease, state: GibbsState) -> dict[str, Array]:
        """Parameters, quantities and log-density by name."""
        parameters, records = position = Position(state.parameters, state.latent.records)
        more = {} if self.quantities is None else self.quantities(parameters, records, release)
        # The log-density carried by a chain is updated from step to step, and may differ by rounding.
        log_density = init_state(release, position).latent.log_density
        return {**parameters, **jax.tree.map(jnp.asarray, more), LOG_DENSITY: log_density}


class CalibrationDesign(NamedTuple):
    """The parts common to all replicates: the true model, the problem of the fitted one, and what is ranked."""

    model: Model
    problem: Problem
    ranked: Ranked
    schedule: tuple[Segment, ...]


@takes_num_draws
def sbc(
    key: Key,
    model: Model,
    release_design: PrivateRelease,
    *,
    fit: Model | None = None,
    num_replicates: int = 200,
    num_samples: int = 99,
    thin: int = 10,
    num_warmup: int = 800,
    quantities: Quantities | None = None,
    imputation: Imputation | str | None = None,
    interweave: bool | None = None,
    parameter_kernel: str | KernelBuilder | ParameterKernel | None = None,
) -> SBCResult:
    """Rank true parameters, drawn from the prior, among draws from the posteriors of releases simulated from them.

    Uniform ranks show that model, release and sampler are consistent; other ranks, that one of them is wrong or that
    the chains are too short.

    Parameters
    ----------
    key
        One typed key.
    model
        The model that parameters and records are drawn from.
    release_design
        The release whose mechanism, statistic and n are used; its value is not.
    fit
        The model whose posterior is sampled, by default the same; a deliberately wrong one, of the same parameters,
        shows which errors the ranks detect.
    num_replicates
        Number of true parameters drawn. With 200, p-values fall below 1e-3 in nine of ten runs if all draws are off by
        half a posterior sd, or if their sd is a third too small.
    num_samples
        Number of draws per chain. Ranks take one value more, so that 99 gives equal bins.
    thin
        Number of steps between draws: enough to make them nearly independent.
    num_warmup
        Number of discarded steps per chain, rounded up to a multiple of ``8 * num_samples``; the kernel is adapted to
        each replicate in four windows.
    quantities
        ``(parameters, records, release) -> dict`` of more arrays to rank. A function defined once compiles once.
    imputation
        See `dpjax.sample`: by default the records are summed out where they are by default there.
    interweave
        Of the sweep; see `dpjax.gibbs`.
    parameter_kernel
        Of the sweep; see `dpjax.gibbs`.

    Raises
    ------
    TypeError, ValueError
        If the input is unusable (before compilation), or some chain finds no start of positive density.

    Warns
    -----
    UserWarning
        If neighbouring draws are so correlated that the ranks would not be uniform even for a correct sampler.

    Notes
    -----
    Chains run as those of `dpjax.sample_batch`, in batches whose records fit in memory. A chain starts like those of
    `dpjax.sample`, not at the truth, because a chain that never moved from there would pass.

    Examples
    --------
    >>> from dpjax.sampler_tests import sbc
    >>> import dpjax, jax
    >>> model = dpjax.models.normal(dpjax.models.NormalPrior(0.0, 5.0), variance=4.0)
    >>> release = dpjax.Release([12.0], dpjax.Laplace(8.0), dpjax.statistics.total("y", -10.0, 10.0), n=10)
    >>> ranks = sbc(jax.random.key(1), model, release, num_replicates=20, num_samples=9, thin=1, num_warmup=20)
    >>> ranks.ranks["mean"].shape
    (20,)
    """
    check_key("key", key)
    check_count("num_replicates", num_replicates, "Pass 20 or more, so that two bins hold ten ranks each.", least=20)
    check_count("num_samples", num_samples, "Pass a whole number of at least 4.", least=4)
    check_count("thin", thin)
    check_count("num_warmup", num_warmup)
    check_fit(model, release_design)
    check_prior_is_drawn(model)
    check_exact(imputation)
    fitted = model if fit is None else fit
    choices = imputation, interweave, parameter_kernel
    problem = augment(fitted, release_design, *choices, allow_sums=release_design.summed is None)
    problem = with_records(problem, wanted=True)
    check_tuned(problem.plan.imputation, imputation)
    check_same_parameters(model, fitted)
    true = problem if fit is None else problem_of(model, release_design, problem.plan)
    true, problem = with_equal_capacity([true, problem])
    check_same_records(true.model, problem.model)
    check_quantities(true.model, problem.release, quantities)
    schedule = make_schedule(num_warmup, num_samples, thin)
    design = CalibrationDesign(true.model, problem, Ranked(quantities), schedule)
    with one_blas_thread():
        return make_result(design, run_batches(design, num_replicates, key))


def check_same_parameters(model: Model, fit: Model) -> None:
    """Raise unless both models have parameters of the same names and shapes."""
    true, fitted = ({name: leaf.shape for name, leaf in parameter_shapes(each).items()} for each in (model, fit))
    if true != fitted:
        remedy = "Ranks compare parameters by name: fit a model that has the same."
        fail("fit", f"a model with parameters {fitted}", f"{true}", remedy)


def check_same_records(model: Model, fit: Model) -> None:
    """Raise unless both models, in the form of the latent data, have records of the same shapes."""
    true, fitted = (position_shapes(each, each.num_records or 1).records for each in (model, fit))
    if true != fitted:
        fail("fit", f"a model with records {fitted}", f"{true}", "Fit a model of the same records.")


def check_quantities(model: Model, release_design: PrivateRelease, quantities: Quantities | None) -> None:
    """Raise unless the quantities are a function of (parameters, records, release) with distinct names."""
    remedy = "Pass a function defined once: (parameters, records, release) -> dict of arrays."
    if quantities is not None:
        check_hashable_function("quantities", quantities, "a hashable function or None", remedy)

    function: Any = quantities

    def call(parameters: Parameters, records: Records) -> Any:
        try:
            return function(parameters, records, release_design)
        except Exception as error:  # whatever a function of the user's own may raise
            return fail("quantities", f"a function that raised {summarize_error(error)}", "a dict of arrays", remedy)

    def draw(key: Key) -> tuple[Any, Any]:
        position = draw_position(key, model, release_design.n)
        more = {} if quantities is None else call(*position)
        if not isinstance(more, dict):
            fail("quantities", f"a function that returns {type(more).__name__}", "a dict", remedy, error=TypeError)
        clashes = sorted((set(position.parameters) & (set(more) | {LOG_DENSITY})) | (set(more) & {LOG_DENSITY}))
        if clashes:
            fail("quantities", f"names {clashes} twice", "distinct names", "Rename them.")
        return more, Ranked(quantities)(release_design, init_state(release_design, position))

    jax.eval_shape(draw, jax.eval_shape(jax.random.key, 0))


def make_schedule(num_warmup: int, num_samples: int, thin: int) -> tuple[Segment, ...]:
    """The segments of the warm-up, and that of the ranked draws."""
    unit = ceil(num_warmup / (sum(WINDOWS) * num_samples))
    starts = np.cumsum([0, *WINDOWS]) * unit * num_samples
    windows = [
        Segment("warm-up", int(start), num_samples, unit * length, tune=True)
        for start, length in zip(starts[:-1], WINDOWS, strict=True)
    ]
    return (*windows, Segment("sampling", int(starts[-1]), num_samples, thin))


def autocorrelation(draws: Array) -> Array:
    """The lag-1 autocorrelation [...] of draws [draw, ...]; 0 for constant ones."""
    centred = draws.astype(float) - jnp.mean(draws.astype(float), axis=0, keepdims=True)
    variance = jnp.sum(centred**2, axis=0)
    return jnp.sum(centred[1:] * centred[:-1], axis=0) / jnp.where(variance > 0, variance, 1.0)


class Replicates(NamedTuple):
    """The results of replicates, by name, each [replicate, ...].

    Attributes
    ----------
    ranks
        The number of draws below the true value.
    autocorrelation
        The lag-1 autocorrelation of the draws.
    """

    ranks: dict[str, Array]
    autocorrelation: dict[str, Array]


def run_batches(design: CalibrationDesign, num_replicates: int, key: Key) -> Replicates:
    """The results [replicate, ...], from batches of equal size."""
    most = min(batch_size(design.model, design.problem.release), most_together(num_chains=1))
    size = ceil(num_replicates / ceil(num_replicates / most))
    keys = jax.random.split(key, 3)
    # The last batch may have surplus replicates: another size would be compiled again.
    batches = [run_batch(design, keys, start + np.arange(size)) for start in range(0, num_replicates, size)]
    return jax.tree.map(lambda *leaves: np.concatenate(leaves)[:num_replicates], *batches)


def run_batch(design: CalibrationDesign, keys: Key, numbers: np.ndarray) -> Replicates:
    """The results of the replicates with these indices [replicate, ...], one chain each.

    Replicate k uses ``fold_in(key, k)`` of each of the keys for truths, chains and ranks.
    """
    truth_key, chain_key, rank_key = keys
    releases, truths = simulate(design.model, design.ranked, truth_key, design.problem.release, numbers)
    run_keys = split_keys(chain_key, numbers, 1)
    run = make_batch_run(
        design.problem,
        releases=releases,
        collect=design.ranked,
        keys=run_keys,
        reports=False,
        schedule=design.schedule,
    )
    status = begin_or_explain(run)
    while not run.is_done(status):
        status, _ = run.make_chunk(status, run.schedule[status.segment].draws)
    draws = {name: leaf[:, 0] for name, leaf in status.draws.collected.items()}
    reports: Replicates = jax.device_get(rank_replicates(rank_key, numbers, draws, truths))
    return reports


def begin_or_explain(run: BatchRun) -> Status:
    """The status before the first step; if a chain has no start, the error says where its release comes from."""
    try:
        return begin(run)
    except ValueError as error:
        error.add_note("Releases are simulated: check that `fit` can give what `model` gives.")
        raise


def make_result(design: CalibrationDesign, reports: Replicates) -> SBCResult:
    """The ranks, with a warning if neighbouring draws are correlated."""
    correlations = {name: np.mean(leaf, axis=0) for name, leaf in reports.autocorrelation.items()}
    high = sorted(name for name, leaf in correlations.items() if np.any(leaf > MAX_AUTOCORRELATION))
    if high:
        found = f"Neighbouring draws of {', '.join(high[:6])} correlate by more than {MAX_AUTOCORRELATION}"
        warn_at_the_call(f"{found}, so that their ranks need not be uniform. Pass a larger `thin`.")
    ranks = {name: np.asarray(leaf) for name, leaf in reports.ranks.items()}
    return SBCResult(ranks, design.schedule[-1].draws, correlations)


@partial(jit_model, static_argnames=("ranked",))
def simulate(
    model: Model, ranked: Ranked, key: Key, template: PrivateRelease, numbers: Array
) -> tuple[PrivateRelease, dict[str, Array]]:
    """Releases simulated from prior and model, and the true values of the ranked quantities, [replicate, ...].

    Replicate k uses ``fold_in(key, k)``, and the mechanism, statistic and n of the template.
    """

    def one(number: Array) -> tuple[PrivateRelease, dict[str, Array]]:
        truth_key, release_key = jax.random.split(jax.random.fold_in(key, number))
        truth = draw_position(truth_key, model, template.n)
        release = template.sample(release_key, truth.records)
        return release, ranked(release, init_state(release, truth))

    simulated: tuple[PrivateRelease, dict[str, Array]] = jax.vmap(one)(numbers)
    return simulated


@jit_unoptimized
def rank_replicates(key: Key, numbers: Array, draws: dict[str, Array], truths: dict[str, Array]) -> Replicates:
    """The results for draws [replicate, draw, ...]; replicate k uses ``fold_in(key, k)``."""

    def one(number: Array, draws: dict[str, Array], truth: dict[str, Array]) -> Replicates:
        ranks = rank(jax.random.fold_in(key, number), draws, truth)
        return Replicates(ranks, jax.tree.map(autocorrelation, draws))

    return jax.vmap(one)(numbers, draws, truths)


def rank(key: Key, draws: dict[str, Array], truth: dict[str, Array]) -> dict[str, Array]:
    """The number of draws [draw, ...] below the truth [...]; ties are broken at random."""
    ranks = {}
    for index, (name, leaf) in enumerate(draws.items()):
        below = jnp.sum(leaf < truth[name][None], axis=0)
        equal = jnp.sum(leaf == truth[name][None], axis=0)
        ranks[name] = below + jax.random.randint(jax.random.fold_in(key, index), equal.shape, 0, equal + 1)
    return ranks
