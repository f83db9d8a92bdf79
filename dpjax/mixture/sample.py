"""From what was released to the posterior of their mixture: the one call."""

from functools import partial
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from dpjax.base import Array, Key, Mechanism
from dpjax.mixture.base import Component, MixtureState
from dpjax.mixture.chunks import for_chains
from dpjax.mixture.inputs import WITH_VALUES, check_collect, check_problem, choose_component, take_apart
from dpjax.mixture.results.posterior import MixturePosterior
from dpjax.mixture.results.report import report
from dpjax.mixture.run import Phase, Run, Status, draw_all, trim
from dpjax.mixture.samplers.conditional import Problem, Scheme
from dpjax.mixture.samplers.relabelled import MarginalScheme
from dpjax.mixture.schemes import add_split_merge, choose_scheme, functions_of
from dpjax.mixture.starts import NUM_GROUPS, start_labels, start_records
from dpjax.models import GammaPrior
from dpjax.sampling.inputs import check_run
from dpjax.sampling.progress import Progress

__all__ = ["sample"]


def sample(
    key: Key,
    values: Any,
    channel: Mechanism | Literal["with the values"] | None = WITH_VALUES,
    *,
    kernel: Literal["gaussian", "beta"] | Component = "gaussian",
    base: Any = None,
    concentration: float | GammaPrior,
    sampler: Literal["conditional", "neal2", "neal3", "neal5", "neal8"] = "conditional",
    weights: Literal["posterior", "stick"] = "posterior",
    truncation: int | None = None,
    offers: int | None = None,
    auxiliaries: int | None = None,
    redraw: bool = True,
    split_merge: int = 0,
    launch_scans: int = 5,
    num_chains: int = 4,
    num_warmup: int = 1_000,
    num_samples: int = 1_000,
    thin: int = 1,
    collect: tuple[str, ...] = (),
    progress: bool = True,
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
    kernel, base
        The mixture kernel f by name with the base measure G0 of its parameters, or a `Component` that has both.
    concentration
        The concentration α, or its `dpjax.models.GammaPrior`.
    sampler
        ``"conditional"``: the mixing measure is drawn given the clusters, then all records at once. The others
        integrate it out and move one record after another (Neal 2000): ``"neal5"`` offers each a cluster and a value,
        behind any channel; ``"neal8"`` needs the channel's marginal under the kernel, ``"neal2"`` and ``"neal3"`` also
        a base measure conjugate to the released values, such as `TruncatedNormalInverseGamma`.
    weights
        Of the conditional sampler: ``"posterior"`` for weights free of the clusters' order, ``"stick"`` for the sticks
        of Kalli, Griffin and Walker (2011), which move less.
    truncation
        Of the conditional sampler: cut the process to so many atoms (Ishwaran and James 2001); by default it is not
        cut, and the slots held in memory grow with what the draws need.
    offers
        Of the conditional sampler: offers to each record a sweep; 0 for exact draws. By default exact where the
        channel's marginal under the kernel is known, else 1; always 1 for a release of all records.
    auxiliaries
        Of ``"neal5"``: the records that estimate the density of an offer, by default 1, and always for a release of all
        records. Of ``"neal8"``: the fresh
        parameters offered to each record, by default 3.
    redraw
        Whether ``"neal5"`` keeps one of several auxiliary records and draws the others anew each sweep, so that one
        record a person informs the parameters. If not, it keeps all of them (algorithm 1 of the paper), which moves
        less, and the records collected are [chain, draw, n, auxiliaries, ...].
    split_merge, launch_scans
        Proposals before each sweep to split a cluster or merge two (Jain and Neal 2004), for base measures that are
        conjugate to the records; and how many scans prepare each. Not with ``weights="stick"``, `truncation` or
        ``redraw=False``.
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

    Raises
    ------
    TypeError, ValueError
        If the input is unusable, before compilation.
    RuntimeError
        If more than 16,384 slots are needed.
    KeyboardInterrupt
        If the run is interrupted before its first draw; later, the draws made are returned with a warning.
    """
    check_run(key, num_chains, num_warmup, num_samples, thin, None, progress)
    values, channel = take_apart(values, channel)
    problem = check_problem(values, channel, choose_component(kernel, base, channel), concentration)
    scheme = choose_scheme(problem, sampler, weights, truncation, offers, auxiliaries, redraw)
    scheme = add_split_merge(problem, scheme, split_merge, launch_scans)
    start_key, chain_key = jax.random.split(key)
    chain_keys = jax.vmap(partial(jax.random.fold_in, chain_key))(jnp.arange(num_chains))
    run = Run(problem, functions_of(scheme)[1], check_collect(collect), chain_keys)
    groups = jnp.asarray(np.resize(NUM_GROUPS, num_chains))
    states = start_chains(problem, scheme, jax.random.split(start_key, num_chains), groups)
    return report(run, *go(run, scheme, states, num_warmup, num_samples, thin, progress))


@partial(jax.jit, static_argnames="scheme")
def start_chains(problem: Problem, scheme: Scheme | MarginalScheme, keys: Key, groups: Array) -> MixtureState:
    """Over-dispersed starts [chain, ...]."""
    start, _ = functions_of(scheme)

    def one(key: Key, num_groups: Array) -> MixtureState:
        record_key, state_key = jax.random.split(key)
        records = start_records(problem, record_key)
        labels = start_labels(records, jnp.minimum(num_groups, scheme.capacity))
        return start(problem, scheme, state_key, labels, records)

    return for_chains(scheme.in_turn, one)(keys, groups)


def go(
    run: Run,
    scheme: Scheme | MarginalScheme,
    states: MixtureState,
    num_warmup: int,
    num_samples: int,
    thin: int,
    progress: bool,
) -> tuple[Status, int]:
    """Warm up, fit the slots to what was needed, and draw; the end and how many draws were wanted."""
    steps = num_samples * thin
    with Progress(num_warmup + steps, 0, progress) as bar:
        warm = draw_all(run, Phase("warm-up", 0, num_warmup, 1), Status(scheme, states), bar)
        if warm.interrupted:
            raise KeyboardInterrupt("mixture.sample was interrupted in warm-up, before the first draw.")
        warm = trim(warm)
        start = Status(warm.scheme, warm.states)
        return draw_all(run, Phase("sampling", num_warmup, steps, thin), start, bar), num_samples
