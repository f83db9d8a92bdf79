"""From a model and a list of releases to the posterior of each."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.host import on_host
from dpjax._util.jit import jit_unoptimized
from dpjax._util.pytree import signature
from dpjax._util.spelling import names_arguments
from dpjax._util.validation import fail
from dpjax.base import Array, Imputation, Key, Model
from dpjax.data_augmentation.parameters import KernelBuilder, ParameterKernel
from dpjax.data_augmentation.plan import check_tuned
from dpjax.data_augmentation.problem import (
    Problem,
    augment,
    problem_of,
    with_equal_capacity,
    with_records,
    with_refresh,
)
from dpjax.data_augmentation.records.unknown_number import warn_of_room
from dpjax.data_augmentation.summed_out import check_exact
from dpjax.diagnostics.warnings import warn_of_nonfinite
from dpjax.mcmc.alone import warn_of_left_out
from dpjax.mcmc.alone_batch import AloneBatchRun
from dpjax.mcmc.batch_run import BatchRun, map_groups
from dpjax.mcmc.draws import accepted_per_proposal, drawn_of, fill_gaps
from dpjax.mcmc.fingerprint import asked_of
from dpjax.mcmc.inputs import read_collect
from dpjax.mcmc.run import Collect, RunKeys, make_schedule, split_key
from dpjax.mcmc.starts import FEW_RECORDS, Candidate, climb, fail_to_start, search
from dpjax.mechanisms.base import scale_of
from dpjax.models.positions import check_derived
from dpjax.models.programs import jit_model
from dpjax.models.simulation import GibbsState
from dpjax.numerics import take_entry
from dpjax.posterior.batch import BatchPosterior
from dpjax.release import PrivateRelease
from dpjax.release.base import is_release
from dpjax.runtime.devices import Devices, choose_mesh, gather_to_host, to_host
from dpjax.runtime.fingerprint import identify_keys
from dpjax.runtime.progress import Progress, ShowProgress
from dpjax.runtime.run import Status, at_work, check_run, is_interrupted, looking_for_starts, run_to_end

__all__ = ["begin", "make_batch_run", "sample_batch", "split_keys", "stack"]


@names_arguments
def sample_batch(
    key: Key,
    model: Model,
    releases: list[PrivateRelease],
    *,
    num_chains: int = 4,
    num_warmup: int = 1_000,
    num_samples: int = 1_000,
    thin: int = 1,
    imputation: Imputation | str | None = None,
    interweave: bool | None = None,
    parameter_kernel: str | KernelBuilder | ParameterKernel | None = None,
    refresh: bool | None = None,
    collect: Collect | Literal["counts"] | None = None,
    progress: ShowProgress = True,
    devices: Devices = None,
) -> BatchPosterior:
    """Draw from p(parameters | release) for each of many releases, such as those of a simulation study.

    Each release has its own chains, and its own warm-up, by one program. Release i is sampled as by `sample` with the
    key ``jax.random.fold_in(key, i)``, to rounding, but for the rates of sweeps and refreshes, which are chosen for all
    together. With ``refresh=False`` a study may look at any of them again alone. (Records of an unknown number have as
    many rows for all releases as one of them needs: pass that ``capacity`` to repeat one.)

    Parameters
    ----------
    key
        One typed key.
    model
        What is believed about the records of each release.
    releases
        Releases of one kind: of the same statistic, kind of mechanism and n, with other values or scales; where counts
        stand for records, with the same known totals.
    num_chains
        Chains of each release.
    num_warmup
        Steps of each chain that are left out, as in `sample`.
    num_samples
        Draws of each chain.
    thin
        Steps from one draw to the next.
    imputation
        As in `sample`; nothing may be left to the warm-up, whose choice could differ between releases: by default
        `counts` of a table have windows of 16. If the records are summed out, windows are as long for all releases
        as the longest.
    interweave
        As in `sample`; but noise is not moved with the parameters, as it is there for very many records.
    parameter_kernel
        As in `sample`.
    refresh
        As in `sample`; the rates of sweeps and refreshes are the same for all releases.
    collect
        ``state -> pytree``: what else to keep beside each draw; ``"counts"`` keeps the imputed counts of a table.
    progress
        What is shown of the run; see `sample`.
    devices
        What the releases are spread over; see `sample`. By default as many of this process's devices as divide their
        number.

    Raises
    ------
    TypeError, ValueError
        If the input is unusable or releases are of different kinds (before compilation), or for some release no start
        of positive density is found.
    KeyboardInterrupt
        If the run is interrupted before its first draw; later, the draws made are returned with a warning.

    Warns
    -----
    UserWarning
        If draws are missing, or proposals or moves were undone because a density, parameter or record was not finite.

    Examples
    --------
    >>> import jax, dpjax
    >>> model = dpjax.models.normal(mean_prior=dpjax.models.NormalPrior(0.0, 2.0), variance=1.0)
    >>> total, noise = dpjax.statistics.total("y", -5, 5), dpjax.Laplace(2.0)
    >>> released = [dpjax.Release([value], noise, total, n=20) for value in (8.0, 31.0)]
    >>> settings = {"num_warmup": 64, "num_samples": 50, "progress": False}
    >>> batch = dpjax.sample_batch(jax.random.key(1), model, released, **settings)
    >>> batch.draws["mean"].shape
    (2, 4, 50)
    >>> batch[1]
    Posterior: 4 chains of 50 draws of mean...
    """
    collect, counts_allowed = read_collect(collect)
    check_run(key, num_chains, num_warmup, num_samples, thin, collect, progress)
    given = check_releases(releases)
    check_exact(imputation)
    with Progress(progress) as bar, on_host():
        allowed = {"allow_counts": counts_allowed, "allow_sums": refresh is not True and given[0].summed is None}
        first = augment(model, given[0], imputation, interweave, parameter_kernel, **allowed)
        first = with_refresh(with_records(first, collect is not None), refresh)
        if imputation is not None:
            check_tuned(first.plan.imputation, imputation)
        check_derived(model)
        mesh = choose_mesh(devices, len(given), "the number of releases")
        problems = with_equal_capacity([first, *(problem_of(model, release, first.plan) for release in given[1:])])
        keys = split_keys(key, np.arange(len(given)), num_chains)
        schedule, kept = make_schedule(num_warmup, num_samples, thin), None if collect is None else OfState(collect)
        problem = problems[0].planned(imputation=noisiest(problems).imputation_with_defaults)
        stacked = stack(check_formed([each.release for each in problems]))
        run = make_batch_run(problem, releases=stacked, collect=kept, keys=keys, schedule=schedule, mesh=mesh)
        with at_work(None):
            status = run_to_end(run, begin(run), None, bar)
            while isinstance(wider := run.widened(status), BatchRun):
                run = wider
                status = run_to_end(run, begin(run), None, bar)
    return make_batch_posterior(run, problems, status)


def make_batch_run(problem: Problem, **given: Any) -> BatchRun:
    """The run of a problem of one of the releases."""
    if not problem.plan.sums_out:
        return BatchRun(problem=problem, **given)
    return AloneBatchRun(problem=problem, **given).settled()


@dataclass(frozen=True)
class OfState:
    """A function of a state as one of release and state; equal where the functions are, so that it compiles once."""

    function: Collect

    def __call__(self, release: PrivateRelease, state: GibbsState) -> Any:
        return self.function(state)


def noisiest(problems: Sequence[Problem]) -> Problem:
    """The problem of the widest noise, to which windows of counts that all releases share are fitted."""

    def width_of(problem: Problem) -> float:
        summed = problem.given_release.summed
        scale = None if summed is None else scale_of(summed.mechanism)
        return 0.0 if scale is None else float(np.max(scale))

    return max(problems, key=width_of)


def make_batch_posterior(run: BatchRun, problems: list[Problem], status: Status) -> BatchPosterior:
    """The posteriors of the draws made, with a warning if some are missing and an error if all are."""
    interrupted = is_interrupted("sample_batch", run, status, None)
    draws = jax.tree.map(lambda leaf: leaf[:, :, : status.filled], status.draws)
    nonfinite = draws.info["num_nonfinite"]
    by_chain = nonfinite.reshape(-1, nonfinite.shape[-1])
    warn_of_nonfinite(by_chain, sweeps=run.schedule[-1].thin)
    warn_of_room(run.releases, draws.reported)
    info = fill_gaps(draws.info)
    warn_of_left_out(info)
    if not run.problem.plan.sums_out:
        rates = accepted_per_proposal(to_host(status.chains.accepted), info, status, run.schedule[-1])
        info = {**info, "acceptance_rate_per_record": rates}
    return BatchPosterior(
        draws=drawn_of(draws),
        info=info,
        collected=draws.collected,
        interrupted=interrupted,
        model=run.problem.given_model,
        releases=tuple(problem.given_release for problem in problems),
        final_states=gather_to_host(run.mesh, status.chains.state),
        tuning=status.kernel.tuning,
        refresh=jax.tree.map(np.asarray, status.kernel.refresh),
        plan=run.problem.plan,
        keys=tuple(identify_keys(keys) for keys in run.keys.chains),
        settings=asked_of(run.problem.plan, run.schedule[-1]),
    )


@partial(jit_unoptimized, static_argnames=("num_chains",))
def split_keys(key: Key, numbers: Array, num_chains: int) -> RunKeys:
    """The keys of the runs of releases of these numbers [release]: release i has those of ``fold_in(key, i)``."""
    return jax.vmap(lambda number: split_key(jax.random.fold_in(key, number), num_chains))(numbers)


def begin(run: BatchRun) -> Status:
    """The status before the first step, with chains at starts of positive density."""
    if (known := run.at_known_starts()) is not None:
        return known
    with looking_for_starts(run):
        return run.open(find_all(run, run.keys.starts), run.first_tuning(), run.first_refresh)


def find_all(run: BatchRun, keys: tuple[Key, Key]) -> GibbsState:
    """States [release, chain, ...] of positive density; an error says for which release there is none."""
    own, (num_releases, num_chains) = run.problem.plan.own_latent_data, run.keys.chains.shape
    if own is None:
        return find_records(run, keys)
    found = []
    for number in range(num_releases):
        with naming(number):
            given = take_entry(keys, number), run.problem.model, take_entry(run.releases, number)
            found.append(own.find_starts(*given, num_chains, None))
    states: GibbsState = stack(found)
    return states


def find_records(run: BatchRun, keys: tuple[Key, Key]) -> GibbsState:
    """The states that `dpjax.mcmc.starts.find_starts` finds for each release."""
    model, n = run.problem.model, run.problem.release.n
    look = search_all.unoptimized if run.keys.chains.size * n <= FEW_RECORDS else search_all
    best = look(model, run.keys.chains.shape[1], run.group, keys[0], run.releases)
    if not np.all(best.found):
        best = climb_all(model, run.group, keys[1], run.releases, best)
    found = np.asarray(best.found)
    for number in np.flatnonzero(~np.all(found, axis=1)).tolist():
        with naming(number):
            fail_to_start(take_entry(run.releases, number), found[number], None)
    return best.state


@partial(jit_model, static_argnames=("num_chains", "group"))
def search_all(model: Model, num_chains: int, group: int, keys: Key, releases: PrivateRelease) -> Candidate:
    """The candidates [release, chain, ...] of `search`, for so many releases at a time."""
    best: Candidate = map_groups(lambda given: search(model, num_chains, *given, None), (keys, releases), group)
    return best


@partial(jit_model, static_argnames=("group",))
def climb_all(model: Model, group: int, keys: Key, releases: PrivateRelease, best: Candidate) -> Candidate:
    """The candidates [release, chain, ...] after `climb`, for so many releases at a time."""
    climbed: Candidate = map_groups(lambda given: climb(model, *given), (keys, releases, best), group)
    return climbed


@contextmanager
def naming(number: int) -> Iterator[None]:
    """Adds to an error which release it is about."""
    try:
        yield
    except ValueError as error:
        error.add_note(f"It is release {number} of the batch.")
        raise


def check_releases(releases: Any) -> list[PrivateRelease]:
    """The releases as a list, or an error unless they differ in their numbers alone."""
    if not isinstance(releases, Sequence) or not releases:
        given = repr(releases) if isinstance(releases, Sequence) else type(releases).__name__
        remedy = "Pass a list, such as [release.sample(key, records) for key in jax.random.split(key, 200)]."
        fail("releases", given, "a list of releases", remedy, error=TypeError)
    for number, release in enumerate(releases):
        if not is_release(release):
            given = f"{type(release).__name__} in place {number}"
            fail("releases", given, "dpjax.Release or dpjax.LocalRelease", "Pass releases only.", error=TypeError)
        if signature(release) != signature(releases[0]):
            expected = "releases of one statistic, mechanism and n, with values of one shape and type"
            remedy = "Make a batch of each kind."
            fail("releases", f"release {number}, which is of another kind than release 0", expected, remedy)
    return list(releases)


def check_formed(formed: list[PrivateRelease]) -> list[PrivateRelease]:
    """The releases in the form of their latent data, or an error where that form is not the same for all."""
    for number, release in enumerate(formed):
        if signature(release) != signature(formed[0]):
            given = f"release {number}, whose known totals, or fitted coefficients, are others than those of release 0"
            remedy = "Make a batch of each, or impute records: dpjax.imwg()."
            fail("releases", given, "the same sums of counts, for which counts are moved", remedy)
    return formed


def stack(trees: list[Any]) -> Any:
    """Trees of numbers as one tree of arrays with a leading axis."""
    return jax.tree.map(lambda *leaves: jnp.stack([jnp.asarray(leaf) for leaf in leaves]), *trees)
