"""From what was released to the posterior of their mixture: the one call."""

import os
import time
from contextlib import nullcontext
from functools import partial
from typing import Any, Literal

import jax
import jax.numpy as jnp

from dpjax.base import Key
from dpjax.mechanisms.base import Mechanism
from dpjax.mixture.base import Component
from dpjax.mixture.checkpoint import Checkpoint, make_fingerprint, restore_status
from dpjax.mixture.draws import Collect
from dpjax.mixture.inputs import WITH_VALUES, check_collect, check_sampler, make_problem
from dpjax.mixture.results.posterior import MixturePosterior
from dpjax.mixture.results.report import look, report
from dpjax.mixture.run import Run, Status, make_chunk, make_schedule, open_run
from dpjax.mixture.samplers import DEFAULT
from dpjax.mixture.samplers.base import Sampler, Setup
from dpjax.models import GammaPrior
from dpjax.running.checkpoint import check_path
from dpjax.running.devices import Devices, choose_mesh
from dpjax.running.inputs import check_run
from dpjax.running.loop import finish
from dpjax.sampling.until import Until, check_until, make_watch
from dpjax.threads import one_blas_thread

__all__ = ["sample"]


def sample(
    key: Key,
    values: Any,
    channel: Mechanism | Literal["with the values"] | None = WITH_VALUES,
    *,
    component: Component,
    concentration: float | GammaPrior,
    sampler: Sampler = DEFAULT,
    num_chains: int = 4,
    num_warmup: int = 1_000,
    num_samples: int = 1_000,
    thin: int = 1,
    collect: Collect | str | tuple[str, ...] | None = None,
    progress: bool = True,
    checkpoint: str | os.PathLike[str] | None = None,
    until: Until | None = None,
    devices: Devices = None,
) -> MixturePosterior:
    """Draw from the posterior of a Dirichlet-process mixture of records, given what was released of each or of all.

    z_i ~ q(· | y_i), y_i ~ f(· | θ_i), θ_i ~ P, P ~ DP(α, G0): equation 4 of Beraha, Favaro and Rao (2025). Where
    the values are one release of all records, w ~ η(· | y_1, ..., y_n) in place of the z_i: equation 13.

    Parameters
    ----------
    key
        One typed key; equal keys give equal draws.
    values : [n] or [n, k]
        What was released, one row a record; or a `dpjax.LocalRelease`; or a `dpjax.Release` of the records' histogram:
        noisy counts, or draws by `dpjax.SmoothedHistogram`.
    channel
        The mechanism that was applied to each record, such as `dpjax.Laplace` or `dpjax.HaarWavelet`, or any object
        with ``log_density(value, statistic)`` and ``sample(key, statistic)``. None if the values are the records. Left
        out for a release.
    component
        The mixture kernel f with the base measure G0 of its parameters: `NormalInverseGamma`, `NormalInverseWishart`,
        `TruncatedNormalInverseGamma`, `GammaShapes` or a `Component` of your own. It has no default.
    concentration
        The concentration α, or its `dpjax.models.GammaPrior`.
    sampler
        How the posterior is sampled: `conditional`, `neal2`, `neal3`, `neal5` or `neal8`, each with its options, or one
        of them after `split_merge` moves.
    num_chains
        Chains, run side by side.
    num_warmup
        Sweeps of each chain that are thrown away.
    num_samples
        Draws kept of each chain.
    thin
        How many sweeps the draws are apart.
    collect
        What else to keep beside each draw: ``state -> pytree`` of a `MixtureState`, or names among ``"labels"``, which
        `MixturePosterior.co_clustering` needs, and ``"records"``. A function defined once compiles once.
    progress
        Whether to show a bar; there is none where standard error is not a terminal.
    checkpoint
        A file. The run is saved there from time to time and when it is interrupted; a call with the same arguments
        continues it, to the same draws. Arguments are the same if their code and what it refers to are. Where nothing
        can be written any more, the draws are returned with a warning.
    until
        Stop before `num_samples` draws once these are good enough, or time is up: `dpjax.until`. It looks at the number
        of clusters and the concentration, where these change.
    devices
        What the chains are spread over; see `dpjax.sample`.

    Raises
    ------
    TypeError, ValueError
        If the input is unusable, before compilation, or the checkpoint is that of another run.
    RuntimeError
        If more than 16,384 slots are needed, or another run is using the checkpoint.
    KeyboardInterrupt
        If the run is interrupted before its first draw; later, the draws made are returned with a warning.

    Warns
    -----
    UserWarning
        If draws are missing, or offers or moves were undone because a density, parameter or record was not finite.

    Notes
    -----
    Equal keys give equal draws, however the run is interrupted and continued.
    """
    began = time.monotonic()
    check_run(key, num_chains, num_warmup, num_samples, thin, None, progress)
    check_until(until)
    collected = check_collect(collect)
    mesh = choose_mesh(devices, num_chains)
    path = None if checkpoint is None else check_path(checkpoint, mesh)
    problem = make_problem(values, channel, component, concentration)
    setup = Setup.of(check_sampler(sampler), problem)
    schedule = make_schedule(num_warmup, num_samples, thin)
    run = Run(problem, collected, schedule, *split_key(key, num_chains), mesh)
    file = None if path is None else Checkpoint(path, make_fingerprint(key, run, setup), mesh)
    watch = make_watch(until, schedule, partial(look, problem), mesh, began)
    advance = partial(make_chunk, run)
    held = nullcontext() if file is None else file.held()
    with held, one_blas_thread():
        status = finish(schedule, begin(run, setup, file), advance, file, progress, watch)
        return report(run, status, file, watch)


def begin(run: Run, setup: Setup, file: Checkpoint | None) -> Status:
    """Where the run starts: at its checkpoint if there is one, else over-dispersed."""
    saved: Status | None = None if file is None else file.load(partial(restore_status, run, setup))
    return open_run(run, setup) if saved is None else saved


def split_key(key: Key, num_chains: int) -> tuple[Key, Key]:
    """The keys [chain] of the starts and of the chains."""
    start_key, chain_key = jax.random.split(key)
    chain_keys = jax.vmap(partial(jax.random.fold_in, chain_key))(jnp.arange(num_chains))
    return jax.random.split(start_key, num_chains), chain_keys
