"""From what was released to the posterior of their mixture: the one call."""

import os
import time
from functools import partial
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.host import on_host
from dpjax._util.spelling import names_arguments
from dpjax.base import Key
from dpjax.diagnostics.warnings import warn_of_nonfinite
from dpjax.mcmc.until import Convergence, Until, UntilEnough, assess, check_until, how_it_ended, make_stopping_rule
from dpjax.mechanisms.base import Mechanism
from dpjax.mixture.base import Component
from dpjax.mixture.inputs import WITH_VALUES, check_collect, check_sampler, exercise, make_problem
from dpjax.mixture.posterior import MixturePosterior
from dpjax.mixture.problem import MixtureProblem
from dpjax.mixture.run import Collect, MixtureRun, join, join_numbers, make_schedule
from dpjax.mixture.samplers import DEFAULT
from dpjax.mixture.samplers.base import Sampler, Setup
from dpjax.models import GammaPrior
from dpjax.runtime.checkpoint import PeriodicCheckpoint, check_path
from dpjax.runtime.devices import Devices, choose_mesh, gather_to_host
from dpjax.runtime.fingerprint import Plain, identify_arrays, identify_parts, identify_run, plain_values
from dpjax.runtime.progress import Progress, ShowProgress
from dpjax.runtime.run import Status, at_work, check_run, find_saved, looking_for_starts, run_to_end

__all__ = ["sample"]


@names_arguments
def sample(
    key: Key,
    values: Any,
    channel: Mechanism | Any | Literal["with the values"] | None = WITH_VALUES,
    *,
    component: Component,
    concentration: float | GammaPrior,
    discount: float = 0.0,
    sampler: Sampler = DEFAULT,
    num_chains: int = 4,
    num_warmup: int = 1_000,
    num_samples: int = 1_000,
    thin: int = 1,
    collect: Collect | str | tuple[str, ...] | None = None,
    progress: ShowProgress = True,
    checkpoint: str | os.PathLike[str] | None = None,
    until: Until | None = None,
    devices: Devices = None,
) -> MixturePosterior:
    """Draw from the posterior of a nonparametric mixture of records, given what was released of each or of all.

    z_i ~ q(· | y_i), y_i ~ f(· | θ_i), θ_i ~ P, P ~ DP(α, G0): equation 4 of Beraha, Favaro and Rao (2025). With a
    discount P ~ PY(d, α, G0). If the values are one release of all records, w ~ η(· | y_1, ..., y_n) in place of the
    z_i: equation 13.

    Parameters
    ----------
    key
        One typed key; equal keys give equal draws.
    values : [n] or [n, k]
        What was released, one row a record; or a `dpjax.LocalRelease`; or a `dpjax.Release` of the records' histogram:
        noisy counts, or draws by `dpjax.mechanisms.SmoothedHistogram`.
    channel
        The mechanism that was applied to each record, such as `dpjax.Laplace` or `dpjax.mechanisms.HaarWavelet`, or any
        object with ``log_density(value, statistic)`` and ``sample(key, statistic)``. None if the values are the
        records. Left out for a release.
    component
        The mixture kernel f with the base measure G0 of its parameters: `NormalInverseGamma`, `NormalInverseWishart`,
        `TruncatedNormalInverseGamma`, `GammaShapes` or a `Component` of your own. It has no default.
    concentration
        The concentration α above 0, or its `dpjax.models.GammaPrior`.
    discount
        The discount d in [0, 1) of a Pitman–Yor process PY(d, α, G0), which has more small clusters; 0 for a Dirichlet
        process. The mass of all atoms after the first m falls as m^(-(1 - d) / d). So a large discount needs many
        slots: for 100 records and α = 1 `conditional` took 96 for d = 0.1, and for 0.5 it needs more than there can
        be. `neal8` took 112 for 0.25 and 1,824 for 0.5. The mixing measures of Neal's samplers then leave out at most a
        hundredth of the mass, in place of a thousandth.
    sampler
        How the posterior is sampled: `conditional`, `neal2`, `neal3`, `neal5` or `neal8`, each with its options.
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
        What is shown of the run; see `dpjax.sample`.
    checkpoint
        A file. The run is saved there from time to time and when it is interrupted; a call with the same arguments
        continues it, to the same draws. Arguments are the same if their code and what it refers to are. If nothing can
        be written any more, the draws are returned with a warning.
    until
        Stop before `num_samples` draws once these are good enough, or time is up: `dpjax.until`. It looks at the number
        of clusters and the concentration, if these change.
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
        If draws are missing, or proposals or moves were undone because a density, parameter or record was not finite.

    Notes
    -----
    Equal keys give equal draws, however the run is interrupted and continued.

    Examples
    --------
    >>> import jax
    >>> from dpjax import mixture
    >>> component = mixture.NormalInverseGamma(mean=0.0, precision=0.1, shape=2.0, scale=1.0)
    >>> posterior = mixture.sample(
    ...     jax.random.key(1),
    ...     [-2.1, -1.8, 2.2],
    ...     channel=None,
    ...     component=component,
    ...     concentration=1.0,
    ...     sampler=mixture.neal2(),
    ...     num_chains=2,
    ...     num_warmup=20,
    ...     num_samples=20,
    ...     progress=False,
    ... )
    >>> posterior.draws["num_clusters"].shape
    (2, 20)
    """
    began = time.monotonic()
    check_run(key, num_chains, num_warmup, num_samples, thin, None, progress)
    check_until(until)
    collected = check_collect(collect)
    mesh = choose_mesh(devices, num_chains)
    path = None if checkpoint is None else check_path(checkpoint, mesh)
    with Progress(progress) as bar, on_host():
        problem = make_problem(values, channel, component, concentration, discount)
        start_keys, chain_keys = split_key(key, num_chains)
        run = MixtureRun(
            problem=problem,
            setup=Setup.of(check_sampler(sampler), problem),
            collect=collected,
            start_keys=start_keys,
            chain_keys=chain_keys,
            schedule=make_schedule(num_warmup, num_samples, thin),
            mesh=mesh,
        )
        file = None if path is None else PeriodicCheckpoint(path, make_fingerprint(key, run), mesh, run.pack)
        rule = make_stopping_rule(until, run, partial(assess_run, problem), began)
        with at_work(file):
            status = run_to_end(run, find_saved(run, file) or begin(run), file, bar, rule)
    return make_posterior(run, status, file, rule)


def begin(run: MixtureRun) -> Status:
    """The status before the first step."""
    with looking_for_starts(run):
        return run.open()


def split_key(key: Key, num_chains: int) -> tuple[Key, Key]:
    """The keys [chain] of the starts and of the chains."""
    start_key, chain_key = jax.random.split(key)
    chain_keys = jax.vmap(partial(jax.random.fold_in, chain_key))(jnp.arange(num_chains))
    return jax.random.split(start_key, num_chains), chain_keys


def assess_run(problem: MixtureProblem, status: Status) -> Convergence:
    """How good the draws made so far are."""
    return assess(join_numbers(status.draws), {"concentration": problem.learns_concentration})


def make_posterior(
    run: MixtureRun, status: Status, file: PeriodicCheckpoint | None, rule: UntilEnough | None
) -> MixturePosterior:
    """The posterior of the draws made, with a warning if some are missing and an error if all are."""
    interrupted, ended = how_it_ended("mixture.sample", run, status, file, rule)
    draw = join(status.draws, status.kernel.setup.capacity)
    info = {name: getattr(draw.info, name) for name in ("acceptance_rate", "num_nonfinite", "num_slots")}
    warn_of_nonfinite(info["num_nonfinite"])
    return MixturePosterior(
        draws={"num_clusters": draw.num_clusters, "concentration": draw.concentration},
        mixing=draw.mixing,
        info=info,
        collected=draw.collected,
        truncation_error=status.kernel.setup.sampler.truncation_error(run.problem, float(np.max(draw.concentration))),
        interrupted=interrupted,
        problem=run.problem,
        final_states=gather_to_host(run.mesh, status.chains),
        ended=ended,
    )


def make_fingerprint(key: Key, run: MixtureRun) -> dict[str, Plain]:
    """All that decides the draws of a run, under names that a user knows."""
    problem, sampler = run.problem, run.setup.sampler
    arrays = {name: getattr(problem, name) for name in ("values", "channel", "component", "concentration", "discount")}
    parts = {name: getattr(problem, name) for name in ("channel", "component")}
    parts |= {"known marginal": problem.tractable, "sampler": sampler, "collect": run.collect}
    return {
        **identify_run(key, len(run.chain_keys), run.schedule[-1]),
        **{f"sampler.{name}": value for name, value in plain_values(sampler).items()},
        **identify_parts(parts),
        **identify_arrays(arrays),
        **identify_arrays({"functions of component": jax.jit(exercise)(problem.component)}, rounded=True),
    }
