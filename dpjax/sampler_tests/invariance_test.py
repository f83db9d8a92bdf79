"""The invariance test: whether draws of parameters, however made, follow the invariant distribution of an exact kernel.

Let q be the distribution of the draws. Chains begin at θ ~ q with records x ~ p(x | θ, release), and then make sweeps
that leave p(θ, x | release) invariant. If q is the posterior, the distribution of θ does not change. If not, it moves
towards the posterior, further with more sweeps.
"""

from dataclasses import replace
from functools import partial
from math import ceil
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.spelling import takes_num_draws
from dpjax._util.threads import one_blas_thread
from dpjax._util.validation import check_count, check_flag, check_instance, check_key, fail
from dpjax.base import Array, Imputation, Key, Model, Parameters
from dpjax.data_augmentation.parameters import KernelBuilder, ParameterKernel, Tuning, fit_step_size
from dpjax.data_augmentation.plan import SweepPlan
from dpjax.data_augmentation.problem import Problem, augment, tune_plan
from dpjax.diagnostics import convergence
from dpjax.diagnostics.summary import entry_names
from dpjax.diagnostics.warnings import warn_of_nonfinite
from dpjax.mcmc.run import tune_to_draws
from dpjax.mcmc.starts import impute_all
from dpjax.models.checks import check_fit
from dpjax.models.positions import check_parameters
from dpjax.models.programs import jit_model
from dpjax.models.simulation import GibbsState, batch_size, parameter_shapes
from dpjax.posterior.posterior import Posterior
from dpjax.release import PrivateRelease
from dpjax.runtime.progress import PREPARING, Progress, ShowProgress, check_progress
from dpjax.sampler_tests.drifts import are_constant, merge_chains
from dpjax.sampler_tests.invariance_test_result import InvarianceTestResult
from dpjax.sampler_tests.record_warmup import RecordWarmup, choose_num_warmup, start_at, sweep_all
from dpjax.sampler_tests.unbiased import coupled_pairs, estimate

MIN_DRAWS, MAX_DRAWS = 20, 1_000
"""Smallest number of chains for standard errors, and largest default number."""

SPACING = 2
"""Ratio of effective draws to chains: at this spacing draws of an AR(1) process have correlation 0.02."""

MIN_RECORD_SETS = 32
"""Smallest number of sets of records from which the number of warm-up sweeps is chosen."""


@takes_num_draws
def invariance_test(
    key: Key,
    posterior: Posterior,
    *,
    num_samples: int | None = None,
    num_sweeps: int = 50,
    num_warmup: int | None = None,
    unbiased: bool = False,
    imputation: Imputation | str | None = None,
    interweave: bool | None = None,
    parameter_kernel: str | KernelBuilder | ParameterKernel | None = None,
    progress: ShowProgress = True,
) -> InvarianceTestResult:
    """Test whether sweeps that leave p(parameters, records | release) invariant change the distribution of the draws.

    Chains begin at draws of the posterior, with records from p(records | parameters, release). If the draws are
    correct, their distribution does not change; if not, it drifts towards the posterior.

    Parameters
    ----------
    key
        One typed key.
    posterior
        Draws, made by any method, with their model and release.
    num_samples
        Number of chains, which start at evenly spaced draws: at most half the number of effective draws, so that they
        are nearly independent. By default this number, or 1,000 if it is larger. The error of a drift falls with its
        root.
    num_sweeps
        Number of exact sweeps per chain: enough to forget most of the start, else the result is inconclusive.
    num_warmup
        Number of imputation sweeps before them with the parameters fixed, for the records to converge. By default eight
        times the number after which two sets of records at the same draw are decorrelated. See Notes.
    unbiased
        Whether to estimate the exact means and mean squares without bias as well, by coupled chains that start at
        draws. This takes longer, and needs a coupling for model and release; see `dpjax.coupling`.
    imputation
        Of the sweep; see `dpjax.sample`. By default that of the draws, or the default one; draws with the records
        summed out are tested by sweeps that impute them. A wrong kernel does not detect its own error: if the kernel
        itself is in doubt, pass another.
    interweave
        Of the sweep; see `dpjax.sample`.
    parameter_kernel
        Of the sweep; see `dpjax.sample`.
    progress
        What is shown of the chains that are done; see `dpjax.sample`.

    Returns
    -------
    InvarianceTestResult
        ``print(result)`` states it in words; ``result.passed``, ``result.table``, ``result.plot()``.

    Raises
    ------
    TypeError, ValueError
        If the posterior is not a `Posterior`, has no parameters or too few effective draws, or its parameters are
        impossible under the prior. If a count is unusable. If for some draw no records of positive density are found.
        If chains cannot be coupled, or do not meet within 20,000 steps.

    Warns
    -----
    UserWarning
        If proposals or moves were undone because a density, parameter or record was not finite.

    Notes
    -----
    If the records had not converged, the parameters would drift though the draws are correct. The result is therefore
    inconclusive if sets of records are still correlated with their starts after 1,024 sweeps.

    The tests are of each scalar parameter's ranks among the draws: location, scale and both tails. Correct draws are
    rejected with probability at most 0.01, for 20 chains and one parameter as for 1,000 and fifty. Draws that pass may
    be wrong in other respects, and chains that never leave a mode do not find another.

    Examples
    --------
    >>> from dpjax.sampler_tests import invariance_test
    >>> import dpjax, jax
    >>> model = dpjax.models.normal(dpjax.models.NormalPrior(0.0, 5.0), variance=4.0)
    >>> release = dpjax.Release([12.0], dpjax.Laplace(8.0), dpjax.statistics.total("y", -10.0, 10.0), n=10)
    >>> posterior = dpjax.sample(jax.random.key(1), model, release, num_warmup=100, num_samples=200, progress=False)
    >>> result = invariance_test(jax.random.key(2), posterior, num_samples=20, num_sweeps=2, progress=False)
    >>> result.num_sweeps
    2
    """
    check_key("key", key)
    check_instance("posterior", posterior, Posterior, "Pass a result of dpjax.sample, or draws in that form.")
    check_count("num_sweeps", num_sweeps)
    if num_warmup is not None:
        check_count("num_warmup", num_warmup, "Pass a whole number; None to have it chosen.", least=0)
    check_flag("unbiased", unbiased, "Pass True for estimates by coupled chains.")
    check_progress(progress)
    check_fit(posterior.model, posterior.release)
    draws = check_draws(posterior)
    number = check_number(num_samples, draws)
    choices = {"imputation": imputation, "interweave": interweave, "parameter_kernel": parameter_kernel}
    problem = choose_problem(posterior, choices)
    host = {name: np.asarray(leaf) for name, leaf in draws.items()}
    starts = take_spaced(host, number)
    check_possible(problem.model, starts)
    coupled = coupled_pairs(posterior, problem, starts, host) if unbiased else None
    sweep_key, coupled_key = jax.random.split(key)
    with one_blas_thread(), Progress(progress, "chain", PREPARING) as bar:
        bar.expect(number)
        result, num_nonfinite = run(sweep_key, problem, host, starts, num_sweeps, num_warmup, bar)
    warn_of_nonfinite(num_nonfinite[:, None], sweeps=num_sweeps)
    return result if coupled is None else replace(result, unbiased=estimate(coupled_key, coupled, result.draws))


def check_draws(posterior: Posterior) -> Parameters:
    """The draws of the model's parameters [chain, draw, ...] in its dtypes, or an error if they do not fit it."""
    shapes = parameter_shapes(posterior.model)
    if not shapes:
        fail("posterior", "a model without parameters", "parameters to compare", "There is nothing to test.")
    given = {name: posterior.draws[name] for name in shapes if name in posterior.draws}
    return check_parameters("posterior.draws", posterior.model, given, np.shape(next(iter(given.values()), ()))[:2])


def check_number(num_samples: int | None, draws: Parameters) -> int:
    """The number of draws to start at, or an error if there are too few nearly independent ones."""
    host = {name: np.asarray(leaf) for name, leaf in draws.items()}
    rows = [row for name, leaf in host.items() for row in entry_names(name, {name: leaf[0, 0]})]
    sizes = np.concatenate([np.ravel(convergence.ess_bulk(leaf)) for leaf in host.values()])
    total = len(next(iter(merge_chains(host).values())))
    sizes = np.where(are_constant(host, merge_chains(host)), total, sizes)
    worst = int(np.argmin(sizes))
    available, effective = (
        int(min(sizes[worst] / SPACING, total)),
        f"{sizes[worst]:.0f} effective draws of {rows[worst]}",
    )
    if available < MIN_DRAWS:
        fail("posterior", effective, f"at least {SPACING * MIN_DRAWS}", "Sample more.")
    if num_samples is None:
        return min(available, MAX_DRAWS)
    check_count("num_samples", num_samples, f"Pass a whole number of at least {MIN_DRAWS}.", least=MIN_DRAWS)
    if num_samples > available:
        remedy = "Pass a smaller number, or sample more: draws closer together are not nearly independent."
        fail("num_samples", num_samples, f"at most {available}, as there are {effective}", remedy)
    return num_samples


def choose_problem(posterior: Posterior, choices: dict[str, Any]) -> Problem:
    """The problem with the plan of the draws, or the default if it is not known; another if any choice is given.

    Draws with the records summed out are tested by sweeps that impute them.
    """
    chosen = any(choice is not None for choice in choices.values())
    if posterior.plan is not None and not chosen and not posterior.plan.sums_out:
        problem = posterior.problem
    else:
        problem = augment(posterior.model, posterior.release, **choices, allow_counts=True)
    if problem.plan.sums_out:
        remedy = "Leave imputation out, or pass dpjax.imwg()."
        fail("imputation", "records that are summed out", "latent data that are imputed", remedy)
    return problem


def take_spaced(draws: Parameters, number: int) -> Parameters:
    """Draws [number, ...] evenly spaced among those of all chains, one after the other."""
    return {name: leaf[spaced(len(leaf), number)] for name, leaf in merge_chains(draws).items()}


def spaced(available: int, wanted: int) -> np.ndarray:
    """Places [wanted] evenly spaced among those available, the first of equal ranges."""
    return np.arange(wanted) * available // wanted


def check_possible(model: Model, starts: Parameters) -> None:
    """Raise unless the prior has positive density at all starts [draw, ...]."""
    impossible = int(np.sum(~np.isfinite(log_priors.unoptimized(model, starts))))
    if impossible:
        given = f"{impossible} of {len(next(iter(starts.values())))} draws of zero prior density"
        fail("posterior", given, "draws within the prior's support", "They are not of this model's posterior.")


@jit_model
def log_priors(model: Model, starts: Parameters) -> Array:
    """The log-density of the prior at each start [draw]."""
    return jax.vmap(model.log_prior)(starts)


def run(
    key: Key,
    problem: Problem,
    draws: Parameters,
    starts: Parameters,
    num_sweeps: int,
    num_warmup: int | None,
    bar: Progress,
) -> tuple[InvarianceTestResult, np.ndarray]:
    """The result for starts [draw, ...], and the number of undone proposals and moves of each chain [draw].

    Parameters
    ----------
    draws
        All draws [chain, draw, ...], to which the kernel is fitted.
    """
    first_key, plan_key, step_key, settle_key, batch_key = jax.random.split(key, 5)
    model, release, plan = problem.model, problem.release, problem.plan
    number = len(next(iter(starts.values())))
    size = choose_size(number, batch_size(model, release))
    pairs = start_at(first_key, model, release, plan, paired(starts, max(size, MIN_RECORD_SETS) // 2))
    warmup = RecordWarmup(num_warmup or 0, settled=True)
    if num_warmup is None:
        warmup, pairs = choose_num_warmup(settle_key, model, release, problem.conditional_imputation, pairs)
    plan = tune_plan(problem, pairs, plan_key)
    tuning = tune_to_draws.unoptimized(model, draws) if plan.uses_tuning else None
    tuning = fit_step_size(step_key, model, plan.parameter_kernel, tuning, pairs.parameters, pairs.latent.records)
    sweeps = problem.conditional_imputation, plan, tuning, warmup.num_sweeps, num_sweeps
    advance = partial(run_batch, model, release, *sweeps)
    ends, num_nonfinite = run_batches(batch_key, model, release, plan, starts, size, advance, bar)
    return InvarianceTestResult(draws, starts, ends, num_sweeps, warmup.num_sweeps, warmup.settled), num_nonfinite


def choose_size(number: int, most: int) -> int:
    """The size of the batches for so many draws: few sizes are compiled for whatever number, a quarter apart at most.

    It is even, so that pairs and batches share compiled programs.
    """
    equal = ceil(number / ceil(number / most))
    step = 2 ** max(equal.bit_length() - 3, 1)
    rounded = step * ceil(equal / step)
    return rounded if rounded <= most else 2 * ceil(equal / 2)


def paired(starts: Parameters, number: int) -> Parameters:
    """Starts [2 number, ...] whose halves are the same, spread over those given; repeated if there are fewer."""
    places = np.tile(np.arange(number) * len(next(iter(starts.values()))) // number, 2)
    return {name: leaf[places] for name, leaf in starts.items()}


def run_batches(
    key: Key,
    model: Model,
    release: PrivateRelease,
    plan: SweepPlan,
    starts: Parameters,
    size: int,
    advance: Any,
    bar: Progress,
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """The ends of all chains [draw, ...] and the undone moves of each [draw], in batches of `size`."""
    number = len(next(iter(starts.values())))
    results = []
    for first in range(0, number, size):
        find_key, move_key = jax.random.split(jax.random.fold_in(key, first))
        # The last batch is filled up from the first starts: another size would be compiled again.
        batch = {name: leaf[(first + np.arange(size)) % number] for name, leaf in starts.items()}
        results.append(jax.device_get(advance(move_key, start_at(find_key, model, release, plan, batch))))
        bar.advance(min(size, number - first), "sweeps")
    return jax.tree.map(lambda *leaves: np.concatenate(leaves)[:number], *results)


def run_batch(
    model: Model,
    release: PrivateRelease,
    held: Imputation,
    plan: SweepPlan,
    tuning: Tuning | None,
    num_warmup: int,
    num_sweeps: int,
    key: Key,
    states: GibbsState,
) -> tuple[Parameters, jax.Array]:
    """The parameters of a batch [chain, ...] after warm-up of its records and exact sweeps, and the undone moves."""
    warmup_key, sweep_key = jax.random.split(key)
    states = impute_all(model, held, warmup_key, release, states, jnp.asarray(num_warmup))
    return sweep_all(model, plan, sweep_key, release, tuning, states, jnp.asarray(num_sweeps))
