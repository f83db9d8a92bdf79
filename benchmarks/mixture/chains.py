"""Chains of any sampler from over-dispersed starts, timed without their warm-up, and what is read off them."""

import time
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from dpjax.mixture.samplers.relabelled import MarginalScheme
from dpjax.mixture.schemes import functions_of

from dpjax import diagnostics
from dpjax.mixture import MixturePosterior
from dpjax.mixture.base import Component, Mixing, MixtureState, Theta
from dpjax.mixture.results.report import report
from dpjax.mixture.run import Phase, Run, Status, draw_all
from dpjax.mixture.samplers.conditional import Problem, Scheme, init_state
from dpjax.mixture.samplers.marginal import init_marginal
from dpjax.mixture.starts import NUM_GROUPS, start_labels
from dpjax.sampling.progress import Progress

CAPACITY = 40
"""Slots to begin with; where more are needed the run goes on with twice as many."""

SAMPLERS: dict[str, Scheme | MarginalScheme] = {
    "exact": Scheme("posterior", CAPACITY, 0, in_turn=True),
    "metropolis": Scheme("posterior", CAPACITY, 1, in_turn=True),
    "4 offers": Scheme("posterior", CAPACITY, 4, in_turn=True),
    "paper's slice": Scheme("stick", CAPACITY, 1, in_turn=True),
    "Neal 5, m = 1": MarginalScheme("neal5", CAPACITY, 1, in_turn=True),
    "Neal 5, m = 5": MarginalScheme("neal5", CAPACITY, 5, in_turn=True),
    "Neal 8": MarginalScheme("neal8", CAPACITY, 3, in_turn=True),
    "Neal 2": MarginalScheme("neal2", CAPACITY, in_turn=True),
    "Neal 3": MarginalScheme("neal3", CAPACITY, in_turn=True),
}
"""The conditional sampler with exact, Metropolis and i-SIR records; the paper's samplers; and those of Neal (2000)."""

COLORS = dict(zip(SAMPLERS, ("C0", "C1", "C2", "C3", "C4", "C5", "C6", "C7", "C8"), strict=True))


class Length(NamedTuple):
    """How long chains are: sweeps thrown away, draws kept, and how many sweeps these lie apart."""

    warmup: int
    draws: int
    thin: int = 1


def run_chains(
    sampler: str,
    problem: Problem,
    seed: int,
    length: Length,
    *,
    num_chains: int = 1,
    collect: tuple[str, ...] = (),
    records: Any = None,
) -> tuple[MixturePosterior, float]:
    """Draws, and the CPU seconds that they took after the warm-up.

    `records` [n] are what the chains start from instead of the released values.
    """
    scheme = SAMPLERS[sampler]
    start_key, chain_key = jax.random.split(jax.random.key(seed))
    run = Run(problem, functions_of(scheme)[1], collect, jax.random.split(chain_key, num_chains))
    given = problem.values if records is None else jnp.asarray(records, float)
    starts = [start(problem, scheme, jax.random.fold_in(start_key, i), given, groups(i)) for i in range(num_chains)]
    states = jax.tree.map(lambda *leaves: jnp.stack(leaves), *starts)
    return advance_chains(run, Status(scheme, states), length)


def advance_chains(run: Run, status: Status, length: Length) -> tuple[MixturePosterior, float]:
    """The draws after the warm-up, and the CPU seconds that they took."""
    warm, _ = time_draws(run, Phase("warm-up", 0, length.warmup, 1), status)
    phase = Phase("sampling", length.warmup, length.draws * length.thin, length.thin)
    drawn, seconds = time_draws(run, phase, Status(warm.scheme, warm.states))
    return report(run, drawn, length.draws), seconds


def time_draws(run: Run, phase: Phase, status: Status) -> tuple[Status, float]:
    """The end of a phase, and its CPU seconds; not a number where a program was compiled for more slots in them."""
    with Progress(phase.steps, 0, False) as bar:
        began = time.process_time()
        drawn = draw_all(run, phase, status, bar)
        seconds = time.process_time() - began
    return drawn, seconds if drawn.scheme == status.scheme else np.nan


def groups(chain: int) -> int:
    """The number of clusters with which a chain starts."""
    return NUM_GROUPS[-1 - chain % len(NUM_GROUPS)]


def start(
    problem: Problem, scheme: Scheme | MarginalScheme, key: jax.Array, records: jax.Array, num_groups: int
) -> MixtureState:
    """A state with these records, in groups of neighbours; one small program serves all samplers and sizes."""
    labels = start_labels(records, jnp.asarray(num_groups))
    features = np.asarray(jax.vmap(problem.component.features)(records))
    members = np.asarray(labels) == np.arange(scheme.capacity)[:, None]
    counts = jnp.asarray(members.sum(axis=1), float)
    theta = draw_theta(problem.component, key, counts, jnp.asarray(members @ features, float))
    mixing = Mixing(jnp.zeros(scheme.capacity), theta, jnp.zeros(()))
    init = init_marginal if isinstance(scheme, MarginalScheme) else init_state
    return init(problem, scheme, mixing, problem.concentration, labels, records)


@jax.jit
def draw_theta(component: Component, key: jax.Array, counts: jax.Array, totals: jax.Array) -> Theta:
    """Parameters of the clusters given their statistics; the weights are drawn by the first sweep."""
    prior_key, update_key = jax.random.split(key)
    return component.update(update_key, component.sample_prior(prior_key, counts.shape[0]), counts, totals)


def read_clusters(posterior: MixturePosterior, seconds: float, length: Length) -> dict[str, float]:
    """The acceptance rate, and how well the number of clusters is known, of a run of one chain or several."""
    number = posterior.draws["num_clusters"].astype(float)
    sweeps = number.size * length.thin
    effective = float(diagnostics.ess_bulk(number)) if np.ptp(number) > 0 else np.nan
    return {
        "acceptance": float(np.mean(posterior.info["acceptance_rate"])),
        "clusters": float(np.mean(number)),
        "effective": effective,
        "effective_per_1000": 1_000 * effective / sweeps,
        "effective_per_second": effective / seconds,
        "microseconds": 1e6 * seconds / sweeps,
    }
