"""Tempered sequential Monte Carlo with independent islands: input checks, the compiled run, and the combined sample."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy

from dpjax._util.spelling import names_arguments
from dpjax._util.threads import one_blas_thread
from dpjax._util.validation import check_array, check_count, check_key, fail
from dpjax._util.warn import warn_at_the_call
from dpjax.base import Array, Imputation, Key, Model, Parameters
from dpjax.data_augmentation.parameters.centred import has_gradients, num_parameters
from dpjax.data_augmentation.parameters.kernels import HMC, EllipticalSlice, KernelBuilder, ParameterKernel
from dpjax.data_augmentation.plan import SweepPlan, check_tuned
from dpjax.data_augmentation.problem import Problem, augment
from dpjax.data_augmentation.records.unknown_number import warn_of_room
from dpjax.data_augmentation.summed_out import Likelihood, MarginalLikelihood, SummedOut, sum_out
from dpjax.data_augmentation.summed_out.impossible import impossible_in_words
from dpjax.data_augmentation.summed_out.likelihood import MOST_LEFT_OUT, in_words, left_out_at, log_ratios
from dpjax.diagnostics.warnings import name_stuck, warn_of_nonfinite
from dpjax.importance import weigh_alone
from dpjax.models.checks import check_prior_is_drawn
from dpjax.models.programs import jit_model
from dpjax.models.simulation import GibbsState, free_numbers, parameter_shapes
from dpjax.release import PrivateRelease
from dpjax.release.microdata import check_drawn_whole
from dpjax.runtime.progress import PREPARING, Progress, ShowProgress
from dpjax.smc.result import SMCSample, relative_error
from dpjax.smc.sampler import MAX_TEMPERATURES, Trace, run_island

MOST_FOR_SLICES = 10
"""Largest number of parameters that move alone by elliptical slices, which take no gradients; HMC moves more."""

NUM_PILOTS = 500
"""Draws from the prior, to the likeliest of which windows of whole numbers are fitted before a run."""

FEW_SUMMED = 2**10
"""Numbers of windows, of which the sums take about as long as a look at a table."""

LEAST_KEPT = 0.8
"""The least effective share of the particles of a rough table, weighed by the sums."""

NUM_LOOKED_AT, MOST_ATTEMPTS = 128, 4
"""At how many draws it is measured what windows of whole numbers leave out, and how many runs are made at most."""


@names_arguments
def sample_smc(
    key: Key,
    model: Model,
    release: PrivateRelease,
    *,
    num_particles: int = 500,
    num_islands: int = 8,
    num_sweeps: int = 5,
    target_ess: float = 0.7,
    likelihood: Likelihood | SummedOut | Callable[[Parameters], Array] | None = None,
    imputation: Imputation | str | None = None,
    interweave: bool | None = None,
    parameter_kernel: str | KernelBuilder | ParameterKernel | None = None,
    progress: ShowProgress = True,
) -> SMCSample:
    """Draw from p(parameters | release) by sequential Monte Carlo from the prior, and estimate log p(release value).

    For posteriors with separate modes, and for comparing models. The release's density is raised to a power that grows
    from 0 to 1, as fast as the weights allow.

    Parameters
    ----------
    key
        One typed key.
    model
        The model of the records.
    release
        The release.
    num_particles
        Number of particles per island. Each is a set of parameters with n records: ``num_islands * num_particles * n``
        records are in memory at once. If the records are summed out, as by `dpjax.sample`, a particle has none.
    num_islands
        Number of independent runs, from whose variation all standard errors are computed.
    num_sweeps
        Number of Gibbs sweeps of each particle at each power.
    target_ess
        The effective sample size of each step as a fraction of the particles, between 0 and 1: closer to 1 there are
        more steps, with less loss in each.
    likelihood
        That of the parameters alone, in place of imputed records; see `dpjax.sample`.
    imputation
        Of the sweep; see `dpjax.gibbs`. Records of a local release are drawn exactly if their support is finite, else
        by Metropolis steps.
    interweave
        Of the sweep; see `dpjax.gibbs`.
    parameter_kernel
        Of the sweep; see `dpjax.gibbs`. Its tuning is fitted to the particles at each power.
    progress
        See `dpjax.sample`. How many powers there will be is not known, so that no time left is shown.

    Raises
    ------
    TypeError, ValueError
        If the input is unusable (before compilation), the release has zero density at all particles from the prior,
        or 200 powers are not enough.

    Warns
    -----
    UserWarning
        If a few islands outweigh all others.

    Notes
    -----
    For given powers the estimate of p(release value) is unbiased; choosing them from the particles adds a bias that
    decreases with ``num_particles`` faster than the error does. A mode that no particle from the prior comes near is
    missed without a warning.

    Examples
    --------
    >>> import dpjax, jax
    >>> model = dpjax.models.normal(dpjax.models.NormalPrior(0.0, 5.0), variance=4.0)
    >>> release = dpjax.Release([12.0], dpjax.Laplace(8.0), dpjax.statistics.total("y", -10.0, 10.0), n=10)
    >>> size = {"num_particles": 50, "num_islands": 2, "num_sweeps": 1, "progress": False}
    >>> islands = dpjax.sample_smc(jax.random.key(1), model, release, **size)
    >>> islands.draws["mean"].shape
    (2, 50)
    """
    check_key("key", key)
    check_count("num_particles", num_particles, "Pass a whole number of at least 2.", least=2)
    check_count("num_islands", num_islands, "Errors come from the variation between islands: pass 2 or more.", least=2)
    check_count("num_sweeps", num_sweeps)
    check_share(target_ess)
    with Progress(progress) as bar, one_blas_thread():
        problem = augment(
            model, release, imputation, interweave, parameter_kernel, allow_sums=True, likelihood=likelihood
        )
        if problem.plan.sums_out:
            problem = problem.planned(parameter_kernel=kernel_of_particles(problem, parameter_kernel))
        else:
            check_drawn_whole(release)
        check_prior_is_drawn(model)
        check_tuned(problem.plan.imputation, imputation)
        labels = model.entry_labels(release.level_names | model.level_names)
        numbers, target = (num_islands, num_particles, num_sweeps), jnp.asarray(target_ess, float)
        draws, trace, left_out = run_until_sums_reach(problem, numbers, key, target, bar)
        # The islands have the numbers below.
        number_key, examine_key = (jax.random.fold_in(key, num_islands + place) for place in range(2))
        draws = problem.own_draws(number_key, draws)
    if problem.has_own_likelihood:
        problem.examine(examine_key, draws)
    combined = combine(draws, trace, num_sweeps, lambda: impossible_in_words(problem.model, problem.swept_release))
    warn_of_room(problem.release, draws)
    warn_of_stuck(problem.given_model, draws)
    if left_out > MOST_LEFT_OUT:
        remedy = "Pass more particles, or impute the records: imputation=dpjax.imwg()."
        warn_at_the_call(f"{in_words(left_out)} at some draws. {remedy}")
    return replace(combined, labels=labels)


def kernel_of_particles(problem: Problem, choice: Any) -> ParameterKernel | None:
    """The kernel of parameters that move alone: by default one whose steps take all particles about as long."""
    if choice is not None:
        return problem.plan.parameter_kernel
    few = num_parameters(problem.model) <= MOST_FOR_SLICES
    return EllipticalSlice() if few or not has_gradients(problem.model) else HMC()


def run_until_sums_reach(
    problem: Problem, numbers: tuple[int, int, int], key: Key, target: Array, bar: Progress
) -> tuple[dict[str, np.ndarray], Trace, float]:
    """Draws and traces, and what sums leave out of the likelihood at some draws: the run is made again if it is much.

    Windows of whole numbers are then fitted to those draws; before the first run, to likely draws from the prior. Long
    sums are looked up in a rough table about draws from the prior, and the particles are weighed by the sums at last.
    """
    rough = None
    if problem.plan.sums_out and problem.swept_release.is_approximate:
        given = problem.model, problem.release, problem.swept_release
        pilots, _, likelihood, _ = weigh_alone(key, *given, NUM_PILOTS, bar)
        problem, rough = replace(problem, likelihood=likelihood), rough_table(problem.model, likelihood, pilots)
    for attempt in range(MOST_ATTEMPTS):
        release = problem.swept_release
        bar.say(PREPARING)
        drawn = run(problem.model, problem.plan, *numbers, key, release if rough is None else rough, target)
        bar.say("moving particles to the posterior")
        draws, trace = jax.device_get(drawn)
        if not problem.plan.sums_out or not release.is_approximate:
            return draws, trace, 0.0
        if rough is not None:
            weighed = weigh_by_sums(
                jax.random.fold_in(key, numbers[0] + 2), problem.model, rough, release, draws, trace
            )
            rough = None
            if weighed is None:
                continue
            draws, trace = weighed
        weights = island_log_likelihoods(trace)
        if not np.any(np.isfinite(weights)):
            return draws, trace, 0.0
        some = resample_some(problem.model, draws, weights)
        left_out = left_out_at(release, some)
        if left_out <= MOST_LEFT_OUT or attempt == MOST_ATTEMPTS - 1:
            break
        problem = replace(problem, likelihood=sum_out(problem.model, problem.release, some))
    return draws, trace, left_out


def rough_table(model: Model, likelihood: Likelihood, pilots: dict[str, np.ndarray]) -> MarginalLikelihood | None:
    """The likelihood, up to a factor, by a table about draws from the prior [draw, ...]; None if sums are as fast."""
    if not isinstance(likelihood, MarginalLikelihood) or likelihood.size <= FEW_SUMMED:
        return None
    return likelihood.tabulated({name: jnp.asarray(pilots[name]) for name in parameter_shapes(model)}, rough=True)


def weigh_by_sums(
    key: Key,
    model: Model,
    rough: MarginalLikelihood,
    sums: MarginalLikelihood,
    draws: dict[str, np.ndarray],
    trace: Trace,
) -> tuple[dict[str, np.ndarray], Trace] | None:
    """The particles of a rough table [island, particle, ...], resampled by what the sums are to it, and their traces.

    It is one more step of the sampler, from the one likelihood to the other. None if the particles of some island would
    lose too much in it.
    """
    shape = next(iter(draws.values())).shape[:2]
    flat = {name: jnp.asarray(draws[name].reshape(-1, *draws[name].shape[2:])) for name in parameter_shapes(model)}
    logs = -np.asarray(log_ratios.on_host(model, rough, sums, flat), float).reshape(shape)
    logs = np.where(np.isfinite(logs), logs, -np.inf)
    totals = scipy.special.logsumexp(logs, axis=1, keepdims=True)
    weights = np.exp(logs - totals)
    if not np.all(np.isfinite(totals)) or np.any(1 / np.sum(weights**2, axis=1) < LEAST_KEPT * shape[1]):
        return None
    places = (np.arange(shape[1]) + np.asarray(jax.random.uniform(key, (shape[0], 1)), float)) / shape[1]
    chosen = np.stack([np.searchsorted(np.cumsum(one), at) for one, at in zip(weights, places, strict=True)])
    chosen = np.minimum(chosen, shape[1] - 1)
    taken = {name: leaf[np.arange(shape[0])[:, None], chosen] for name, leaf in draws.items()}
    increments = np.array(trace.log_increment)
    # The factor between the two likelihoods belongs to the evidence: it is added to the last step of each island.
    last = np.sum(np.isfinite(trace.temperature), axis=1) - 1
    increments[np.arange(shape[0]), last] += totals[:, 0] - np.log(shape[1])
    return taken, trace._replace(log_increment=jnp.asarray(increments))


def resample_some(model: Model, draws: dict[str, np.ndarray], log_weights: np.ndarray) -> Parameters:
    """Parameters [draw, ...] of some particles, of as many of an island [island] as it weighs."""
    weights = np.exp(log_weights - np.max(log_weights))
    islands = np.searchsorted(np.cumsum(weights), (np.arange(NUM_LOOKED_AT) + 0.5) / NUM_LOOKED_AT * np.sum(weights))
    names = list(parameter_shapes(model))
    places = np.arange(NUM_LOOKED_AT) * 7919 % next(draws[name].shape[1] for name in names)
    return {name: jnp.asarray(draws[name][islands, places]) for name in names}


def check_share(target_ess: Any) -> None:
    """Raise unless the target is a number strictly between 0 and 1."""
    expected, remedy = "a number between 0 and 1", "Pass the share of particles that a step may not fall below."
    if isinstance(target_ess, bool) or not isinstance(target_ess, (int, float, np.number)):
        fail("target_ess", repr(target_ess), expected, remedy, error=TypeError)
    check_array("target_ess", target_ess, lambda array: (array > 0) & (array < 1), expected, remedy)


@partial(jit_model, static_argnames=("plan", "num_islands", "num_particles", "num_sweeps"))
def run(
    model: Model,
    plan: SweepPlan,
    num_islands: int,
    num_particles: int,
    num_sweeps: int,
    key: Key,
    release: PrivateRelease | Likelihood,
    target_ess: Array,
) -> tuple[Parameters, Trace]:
    """Draws [island, particle, ...] and the islands' traces [island, step]."""

    def one(number: Array) -> tuple[Parameters, Trace]:
        island_key = jax.random.fold_in(key, number)
        island = run_island(model, plan, num_particles, num_sweeps, island_key, release, target_ess)
        return jax.vmap(draw)(island.particles), island.trace

    def draw(particle: GibbsState) -> Parameters:
        parameters, latent = particle
        return {**parameters, **model.derived(parameters), **model.reported(latent.records)}

    return jax.vmap(one)(jnp.arange(num_islands))


def warn_of_stuck(model: Model, draws: dict[str, np.ndarray]) -> None:
    """Warn if all particles of an island [island, particle, ...] are identical."""
    found = name_stuck(draws, free_numbers(model, draws), "island")
    if found:
        text = f"All particles of an island are identical: {', '.join(found[:6])}. No move of theirs was accepted"
        warn_at_the_call(f"{text}. Pass more sweeps, another imputation or another parameter_kernel.")


def combine(
    draws: dict[str, np.ndarray], trace: Trace, num_sweeps: int = 1, reason: Callable[[], str] = str
) -> SMCSample:
    """The islands' draws with their weights; an error unless all reach λ = 1, a warning if a few dominate.

    The error says, beside, what `reason` finds.
    """
    num_steps = np.sum(np.isfinite(trace.temperature), axis=1)
    last = np.nanmax(trace.temperature, axis=1, initial=0)
    if np.all(num_steps == 0):
        given = f"a value of zero density at every particle of all {len(num_steps)} islands{reason()}"
        remedy = "Check the units of the value, mechanism and statistic; or pass more particles."
        fail("release", given, "positive density at some", remedy)
    if np.any((num_steps > 0) & (last < 1)):
        given = f"steps so short that {MAX_TEMPERATURES} of them end at {np.min(last[num_steps > 0]):.2g}"
        fail("target_ess", given, "steps that reach 1", "Pass a smaller share, more sweeps or more particles.")
    trace = Trace(*(figure[:, : np.max(num_steps)] for figure in trace))
    log_likelihoods = island_log_likelihoods(trace)
    log_total = scipy.special.logsumexp(log_likelihoods)
    weights = np.exp(log_likelihoods - log_total)
    warn_of_disagreement(weights)
    # Each particle makes this number of sweeps.
    sweeps = num_sweeps * next((leaf.shape[1] for leaf in draws.values()), 1)
    warn_of_nonfinite(np.nan_to_num(trace.num_nonfinite), runs="islands", sweeps=sweeps)
    return SMCSample(
        draws,
        log_likelihoods - log_total,
        float(log_total - np.log(len(weights))),
        relative_error(weights),
        *(np.asarray(figure) for figure in trace),
    )


def island_log_likelihoods(trace: Trace) -> np.ndarray:
    """The log-likelihoods that islands estimate [island]; none if all particles of an island have zero density."""
    num_steps = np.sum(np.isfinite(trace.temperature), axis=1)
    return np.where(num_steps > 0, np.nansum(trace.log_increment, axis=1, dtype=float), -np.inf)


def warn_of_disagreement(weights: np.ndarray) -> None:
    """Warn if the effective number of islands is less than half their number."""
    effective = 1 / np.sum(weights**2)
    if effective < len(weights) / 2:
        text = f"The islands disagree: {len(weights)} of them are worth {effective:.1f}"
        warn_at_the_call(f"{text}. Pass more particles, more sweeps or a target_ess nearer to 1.")
