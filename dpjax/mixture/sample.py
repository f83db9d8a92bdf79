"""From what was released to the posterior of their mixture: the one call."""

from functools import partial
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from dpjax.base import Array, Key
from dpjax.mechanisms.base import Mechanism
from dpjax.mixture.base import Component, MixtureState
from dpjax.mixture.deprecated import translate
from dpjax.mixture.inputs import WITH_VALUES, check_collect, check_sampler, make_problem
from dpjax.mixture.problem import Problem
from dpjax.mixture.results.posterior import MixturePosterior
from dpjax.mixture.results.report import report
from dpjax.mixture.run import Run, Stage, Status, draw_all, trim
from dpjax.mixture.samplers import DEFAULT
from dpjax.mixture.samplers.base import Sampler, Setup
from dpjax.mixture.starts import NUM_GROUPS, start_labels, start_records
from dpjax.models import GammaPrior
from dpjax.running.chunk import for_chains
from dpjax.running.progress import Progress
from dpjax.sampling.inputs import check_run

__all__ = ["sample"]


def sample(
    key: Key,
    values: Any,
    channel: Mechanism | Literal["with the values"] | None = WITH_VALUES,
    *,
    component: Component | None = None,
    concentration: float | GammaPrior,
    sampler: Sampler = DEFAULT,
    num_chains: int = 4,
    num_warmup: int = 1_000,
    num_samples: int = 1_000,
    thin: int = 1,
    collect: tuple[str, ...] = (),
    progress: bool = True,
    **deprecated: Any,
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
    num_samples, thin
        Draws kept of each chain, `thin` sweeps apart.
    collect
        What else to keep of each draw: ``"labels"`` for `MixturePosterior.co_clustering`, ``"records"``.
    progress
        Whether to show a bar; there is none where standard error is not a terminal.
    **deprecated
        Names that this function had before: ``kernel``, ``base`` and the samplers' options. They warn with what to
        write in their place.

    Raises
    ------
    TypeError, ValueError
        If the input is unusable, before compilation.
    RuntimeError
        If more than 16,384 slots are needed.
    KeyboardInterrupt
        If the run is interrupted before its first draw; later, the draws made are returned with a warning.
    """
    component, sampler = translate(component, sampler, deprecated)
    check_run(key, num_chains, num_warmup, num_samples, thin, None, progress)
    problem = make_problem(values, channel, component, concentration)
    setup = Setup.of(check_sampler(sampler), problem)
    start_key, chain_key = jax.random.split(key)
    chain_keys = jax.vmap(partial(jax.random.fold_in, chain_key))(jnp.arange(num_chains))
    run = Run(problem, check_collect(collect), chain_keys)
    groups = jnp.asarray(np.resize(NUM_GROUPS, num_chains))
    states = start_chains(problem, setup, jax.random.split(start_key, num_chains), groups)
    return report(run, *go(run, Status(setup, states), num_warmup, num_samples, thin, progress))


@partial(jax.jit, static_argnames="setup")
def start_chains(problem: Problem, setup: Setup, keys: Key, groups: Array) -> MixtureState:
    """Over-dispersed starts [chain, ...]."""

    def one(key: Key, num_groups: Array) -> MixtureState:
        record_key, state_key = jax.random.split(key)
        records = start_records(problem, record_key)
        labels = start_labels(records, jnp.minimum(num_groups, setup.capacity))
        return setup.start(problem, state_key, labels, records)

    return for_chains(setup.in_turn, one)(keys, groups)


def go(run: Run, status: Status, num_warmup: int, num_samples: int, thin: int, progress: bool) -> tuple[Status, int]:
    """Warm up, fit the slots to what was needed, and draw; the end and how many draws were wanted."""
    steps = num_samples * thin
    with Progress(num_warmup + steps, 0, progress) as bar:
        warm = draw_all(run, Stage("warm-up", 0, num_warmup, 1), status, bar)
        if warm.interrupted:
            raise KeyboardInterrupt("mixture.sample was interrupted in warm-up, before the first draw.")
        warm = trim(warm)
        start = Status(warm.setup, warm.states)
        return draw_all(run, Stage("sampling", num_warmup, steps, thin), start, bar), num_samples
