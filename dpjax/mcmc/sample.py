"""From a model and a release to draws from the posterior: the loop everyone uses."""

import os
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import jax
import numpy as np

from dpjax._util.host import on_host
from dpjax._util.spelling import names_arguments
from dpjax._util.validation import is_refusal
from dpjax._util.warn import warn_at_the_call
from dpjax.base import Array, Imputation, Key, Model, Parameters
from dpjax.clt import NormalSum, predict_values
from dpjax.data_augmentation.parameters import KernelBuilder, ParameterKernel
from dpjax.data_augmentation.problem import Problem, augment, move_noise, with_records, with_refresh
from dpjax.data_augmentation.records.unknown_number import warn_of_room
from dpjax.data_augmentation.summed_out import Likelihood, SummedOut
from dpjax.diagnostics.warnings import warn_of_nonfinite
from dpjax.mcmc.alone import SearchingRun, make_run_alone, warn_of_left_out
from dpjax.mcmc.climb import standardised_effects
from dpjax.mcmc.draws import accepted_per_proposal, drawn_of, fill_gaps
from dpjax.mcmc.fingerprint import asked_of, make_fingerprint
from dpjax.mcmc.inputs import (
    check_collect,
    check_initial,
    collect_given,
    default_initial,
    default_likelihood,
    own_starts,
    read_collect,
)
from dpjax.mcmc.modes import warn_of_modes
from dpjax.mcmc.run import Collect, PosteriorRun, has_check, make_schedule, split_key
from dpjax.mcmc.starts import draw_large, equilibrate, starts_by, tune_by
from dpjax.mcmc.until import (
    Convergence,
    Until,
    UntilEnough,
    assess,
    check_until,
    how_it_ended,
    make_stopping_rule,
)
from dpjax.models.positions import check_derived
from dpjax.models.simulation import free_numbers
from dpjax.posterior.posterior import Posterior
from dpjax.release import PrivateRelease
from dpjax.runtime.checkpoint import PeriodicCheckpoint, check_path
from dpjax.runtime.devices import Devices, choose_mesh, gather_to_host, to_host
from dpjax.runtime.fingerprint import identify_keys, identify_parts
from dpjax.runtime.progress import Progress, ShowProgress
from dpjax.runtime.run import Status, at_work, check_run, find_saved, looking_for_starts, run_to_end

DIVERGENT, STEPS = "centred_is_divergent", "centred_num_integration_steps"
"""The reports on trajectories that have shorter names where trajectories are all there is."""

FAR_STARTS = (
    "The chains start from the prior: the Normal approximation that they would start from failed ({error}). With many "
    "records they are on the way for long: look at R-hat, and warm up for longer, or pass `initial` parameters."
)


@names_arguments
def sample(
    key: Key,
    model: Model,
    release: PrivateRelease,
    *,
    num_chains: int = 4,
    num_warmup: int = 1_000,
    num_samples: int = 1_000,
    thin: int = 1,
    likelihood: Likelihood | SummedOut | Callable[[Parameters], Array] | None = None,
    imputation: Imputation | str | None = None,
    interweave: bool | None = None,
    parameter_kernel: str | KernelBuilder | ParameterKernel | None = None,
    refresh: bool | None = None,
    collect: Collect | Literal["counts"] | None = None,
    initial: Parameters | Literal["large-sample"] | None = None,
    progress: ShowProgress = True,
    checkpoint: str | os.PathLike[str] | None = None,
    until: Until | None = None,
    devices: Devices = None,
) -> Posterior:
    """Draw from p(parameters | release) by data augmentation, with the confidential records imputed and left out.

    Parameters
    ----------
    key
        One typed key; equal keys give equal draws, however the run is interrupted and continued.
    model
        What is believed about the records.
    release
        What was released.
    num_chains
        Chains, run side by side.
    num_warmup
        Steps of each chain that are thrown away. The kernel is adapted in windows whose bounds depend on this number
        only, and is then left as it is.
    num_samples
        Draws kept of each chain.
    thin
        How many steps they are apart: a step is a sweep, or with `refresh` what of sweeps and refreshes is due.
    likelihood
        The likelihood of the parameters alone, in place of imputed records: ``dpjax.normal_sum()``, what
        `dpjax.marginal_likelihood` returns, or a function ``parameters -> []`` of your own, which is the log-density of
        what was released. By default the sum is taken to be Normal if the number of records is unknown and 300 or more
        are expected, as chains that impute them hardly mix. The posterior then says that it is approximate. They are
        imputed all the same if counts can stand for them, or `imputation`, `interweave`, `refresh` or `collect` is
        given.
    imputation
        See `dpjax.gibbs`. Here what is left open is possible too: ``soma("auto")``, ``pcn()``, and ``"auto"`` for the
        imputation that docs/choosing.md recommends for the release. By default counts stand for the records where these
        take no more different values than there are records, and neither `interweave` nor `collect` asks for records;
        see `dpjax.counts`. Values of single records are summed out where they can be and neither `interweave` nor
        `refresh` asks for records, except for at most 50 records of a model with an exact update; see
        `dpjax.summed_out`.
    interweave
        See `dpjax.gibbs`.
    parameter_kernel
        See `dpjax.gibbs`.
    refresh
        Whether new parameters and wholly new records are proposed together, so that chains reach regions which moves of
        the one given the other hardly enter; see docs/samplers.md. Warm-up chooses how often, and how rarely sweeps are
        then made. By default wherever there are parameters that are not integrated out; for a `LocalRelease` only of
        at most 50 records.
    collect
        ``state -> pytree``: what else to keep beside each draw, for instance ``lambda state: state.latent.records``.
        Imputed records are not kept otherwise. A function defined once compiles once. ``"counts"`` keeps the imputed
        counts of a table, for `Posterior.counts`.
    initial
        Parameters [chain, ...] to start from. By default over-dispersed starts are found from the prior. If 10,000
        records or more are imputed and there is a Normal approximation of their sum, chains start at draws of
        `dpjax.sample_clt`. With ``"large-sample"`` they do so for any number, and the coordinates of the kernel are
        whitened by these draws and stay so. If a sweep is slow, a warm-up of some hundred steps then suffices. Such
        starts are no wider than the posterior, so that R-hat does not see modes that they miss.
    progress
        Whether to show a bar, on a terminal or in a notebook; ``"lines"`` writes a line every ten seconds anywhere.
    checkpoint
        A file. The run is saved there from time to time and when it is interrupted; a call with the same arguments
        continues it, to the same draws. Arguments are the same if their code and what it refers to are. If nothing can
        be written any more, the draws are returned with a warning.
    until
        Stop before `num_samples` draws once these are good enough, or time is up: `dpjax.until`. The draws are the
        first ones of the run without it, and a checkpoint is continued whatever is asked for.
    devices
        The devices over which the chains are spread: their number among this process's devices, or a list of
        `jax.Device`. If it has those of several processes, each process makes the same call and gets the whole
        posterior; see docs/scaling.md. By default as many of this process's devices as divide the number of chains.

    Returns
    -------
    Posterior
        With ``draws[name]`` of shape [chain, draw, ...], and the `plan`, `tuning` and `refresh` that warm-up settled
        on.

    Raises
    ------
    TypeError, ValueError
        If the input is unusable (before compilation), no start of positive density is found, or the checkpoint is
        that of another run.
    RuntimeError
        If another run is using the checkpoint.
    KeyboardInterrupt
        If the run is interrupted before its first draw; later, the draws made are returned with a warning.

    Warns
    -----
    UserWarning
        If draws are missing, or proposals or moves were undone because a density, parameter or record was not finite.

    Notes
    -----
    Draws depend on the key, the arguments, and the hardware and versions that compute them. On another number of
    devices the chains have the same keys, and differ by rounding; see docs/scaling.md. Nothing is claimed about
    convergence: see `Posterior.summary`.

    Examples
    --------
    >>> import dpjax
    >>> import jax
    >>> model = dpjax.models.normal(dpjax.models.NormalPrior(0.0, 5.0), variance=4.0)
    >>> release = dpjax.Release([12.0], dpjax.Laplace(8.0), dpjax.statistics.total("y", -10.0, 10.0), n=10)
    >>> posterior = dpjax.sample(jax.random.key(1), model, release, num_warmup=100, num_samples=200, progress=False)
    >>> posterior.draws["mean"].shape
    (4, 200)
    """
    began = time.monotonic()
    collect, counts_allowed = read_collect(collect)
    check_run(key, num_chains, num_warmup, num_samples, thin, collect, progress)
    with Progress(progress) as bar, on_host():
        asks_for_records = any(choice is not None for choice in (imputation, interweave, refresh, collect))
        if likelihood is None and not asks_for_records and not isinstance(initial, str):
            likelihood = default_likelihood(model, release)
        allowed: dict[str, Any] = {
            "allow_counts": counts_allowed,
            "allow_sums": refresh is not True,
            "likelihood": likelihood,
        }
        problem = augment(model, release, imputation, interweave, parameter_kernel, **allowed)
        problem = with_records(problem, collect is not None)
        check_derived(model)
        check_until(until, model)
        initial, asked = check_initial(model, release, initial, num_chains), isinstance(initial, str)
        keys = split_key(key, num_chains)
        initial = own_starts(problem, keys.tuning, num_chains) if initial is None else initial
        initial = default_initial(problem) if initial is None else initial
        initial = None if asked and problem.plan.sums_out else initial  # these start at modes as it is
        mesh = choose_mesh(devices, num_chains)
        path = None if checkpoint is None else check_path(checkpoint, mesh)
        given = {"collect": collect_given(problem, collect), "keys": keys, "mesh": mesh}
        if problem.plan.sums_out:
            problem = with_refresh(problem, refresh)
            run: PosteriorRun = make_run_alone(problem, num_warmup, num_samples, thin, initial, **given)
        else:
            schedule = make_schedule(num_warmup, num_samples, thin, tune=not asked)
            problem = move_noise(problem) if has_check(schedule) else problem
            run = PosteriorRun(problem=with_refresh(problem, refresh), schedule=schedule, **given)
        check_collect(run.collect, run.state_shapes)
        file = None if path is None else PeriodicCheckpoint(path, make_fingerprint(key, run, initial), mesh, run.pack)
        rule = make_stopping_rule(until, run, partial(assess_run, run.problem.model), began)
        with at_work(file):
            first = find_saved(run, file) or begin(run, initial, asked)
            status = run_to_end(run, first, file, bar, rule)
            while (wider := run.widened(status)) is not None:
                run = wider
                status = run_to_end(run, begin(run, initial, asked), file, bar, rule)
    return make_posterior(run, status, initial, file, rule)


def begin(run: PosteriorRun, initial: Parameters | Literal["large-sample"] | None, asked: bool) -> Status:
    """The status before the first step, with chains at starts of positive density.

    Parameters
    ----------
    asked
        Whether the user asked for starts at the Normal approximation; if it is the default, it may fail.
    """
    if (known := run.at_known_starts()) is not None:
        return known
    problem, num_chains = run.problem, len(run.keys.chains)
    with looking_for_starts(run):
        start = partial(starts_by(problem.plan.imputation), run.keys.starts, problem.model, problem.release, num_chains)
        if not isinstance(initial, str):
            return run.open(start(initial), run.first_tuning(), run.first_refresh)
        draw_key, record_key = jax.random.split(run.keys.tuning)
        try:
            draws = draw_large(draw_key, problem.given_model, problem.given_release, num_chains)
            states = start({name: leaf[:, -1] for name, leaf in draws.items()})
        except ValueError as error:
            if asked or not is_refusal(error):
                raise
            warn_at_the_call(FAR_STARTS.format(error=error))
            return run.open(start(None), run.first_tuning(), run.first_refresh)
        return run.open(equilibrate(record_key, run, states), *tune_by(run, draws))


def assess_run(model: Model, status: Status) -> Convergence:
    """How good the draws made so far are."""
    draws = {name: leaf[:, : status.filled] for name, leaf in drawn_of(status.draws).items()}
    return assess(draws, free_numbers(model, draws))


def make_posterior(
    run: PosteriorRun,
    status: Status,
    initial: Parameters | Literal["large-sample"] | None,
    file: PeriodicCheckpoint | None,
    rule: UntilEnough | None,
) -> Posterior:
    """The posterior of the draws made, with a warning if some are missing and an error if all are."""
    problem = run.problem
    interrupted, ended = how_it_ended("sample", run, status, file, rule)
    draws = jax.tree.map(lambda leaf: leaf[:, : status.filled], status.draws)
    info = fill_gaps(draws.info)
    warn_of_nonfinite(info["num_nonfinite"], sweeps=run.schedule[-1].thin)
    warn_of_room(problem.release, draws.reported)
    warn_of_left_out(info)
    if isinstance(run, SearchingRun) and run.ascent is not None:
        warn_of_modes(standardised_effects(problem.model), run.ascent.others, draws.parameters)
    if not problem.plan.sums_out:
        rates = accepted_per_proposal(to_host(status.chains.accepted), info, status, run.schedule[-1])
        info = {**info, "acceptance_rate_per_record": rates}
    fields: dict[str, Any] = {
        "draws": drawn_of(draws),
        "info": info,
        "collected": draws.collected,
        "interrupted": interrupted,
        "keys": identify_keys(run.keys.chains),
        "ended": ended,
        "settings": asked_of(problem.plan, run.schedule[-1], initial) | identify_parts(problem.own_functions),
    }
    if problem.has_own_likelihood:
        return posterior_of_likelihood(problem, run.keys.rates, fields)
    return posterior_of(
        replace(problem, plan=status.kernel.plan),
        final_states=gather_to_host(run.mesh, status.chains.state),
        tuning=status.kernel.tuning,
        refresh=jax.tree.map(np.asarray, status.kernel.refresh),
        **fields,
    )


def posterior_of_likelihood(problem: Problem, key: Key, fields: dict[str, Any]) -> Posterior:
    """The posterior by another likelihood than that of the records, of which nothing is imputed."""
    number_key, examine_key = jax.random.split(key)
    draws, info = problem.own_draws(number_key, fields["draws"]), fields["info"]
    fields["info"] = {name: leaf for name, leaf in info.items() if name not in (DIVERGENT, STEPS)}
    if DIVERGENT in info:
        # It is a share of the steps since the last draw.
        fields["info"]["num_divergent"] = np.rint(info[DIVERGENT] * fields["settings"]["thin"]).astype(int)
        fields["info"]["num_integration_steps"] = info[STEPS]
    fields["info"] |= problem.examine(examine_key, draws)
    is_normal = isinstance(problem.swept_release, NormalSum)
    return Posterior(
        model=problem.given_model,
        release=problem.given_release,
        approximate=is_normal,
        predictor=predict_values if is_normal else None,
        final_states=None,
        tuning=None,
        plan=None,
        **fields | {"draws": draws},
    )


def posterior_of(problem: Problem, **fields: Any) -> Posterior:
    """The posterior of a problem, of which the form of the latent data is not derived again."""
    posterior = Posterior(model=problem.given_model, release=problem.given_release, plan=problem.plan, **fields)
    return posterior._carry(problem)
