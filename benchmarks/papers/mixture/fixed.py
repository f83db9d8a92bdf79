"""Chains with a fixed number of slots: all problems of one kind share a program, whatever a chain needs."""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import dpjax
from benchmarks.papers.mixture.chains import SAMPLERS, Length, is_known
from benchmarks.papers.mixture.densities import betas_density, measure_distances
from benchmarks.papers.mixture.problems import Problem
from dpjax import diagnostics, mixture

CAPACITY = 32
GRID = (np.arange(200) + 0.5) / 200
BORDER = 4
"""Points of the grid at each border: mass within .02 of it."""


class Chain(NamedTuple):
    """The mean density [points], and of each draw the number of clusters, acceptance, and whether slots ran out."""

    density: Any
    clusters: Any
    acceptance: Any
    overflow: Any


def run(sampler: str, problem: Problem, length: Length, starts: Sequence[tuple[int, int]]) -> list[Chain]:
    """A chain from each seed and number of groups of neighbours; of known records by Neal 8, compiled for them."""
    values = problem.values
    n = values.n if isinstance(values, dpjax.Release) else len(values)
    ranks = np.argsort(np.argsort(values)) if np.ndim(values) == 1 else np.arange(n)
    if is_known(problem):
        compiled = jax.jit(partial(trace, pose(problem, "Neal 8"), problem.component, length=length))
    else:
        compiled = partial(run_compiled, problem, sampler=sampler, length=length)
    found = [compiled(jax.random.key(seed), jnp.asarray(ranks * groups // n)) for seed, groups in starts]
    return [Chain(*map(np.asarray, each)) for each in found]


def pose(problem: Problem, sampler: str) -> Any:
    """The algorithm, which looks at known records and so is not made within a program that is compiled."""
    options = {"component": problem.component, "concentration": problem.concentration, "capacity": CAPACITY}
    return mixture.gibbs(*problem.released, sampler=SAMPLERS[sampler], **options)


@partial(jax.jit, static_argnames=("sampler", "length"))
def run_compiled(problem: Problem, key: Any, labels: jax.Array, sampler: str, length: Length) -> Chain:
    """A chain of a problem whose numbers are arguments of the program."""
    return trace(pose(problem, sampler), problem.component, key, labels, length)


def trace(algorithm: Any, component: mixture.Component, key: Any, labels: jax.Array, length: Length) -> Chain:
    """A chain that starts at labels."""
    keys = jax.random.split(key, 1 + length.warmup + length.draws)
    start_key, sweep_keys = keys[0], keys[1:]

    def sweep(state: Any, sweep_key: Any) -> Any:
        state, info = algorithm.step(sweep_key, state)
        weights, theta = state.mixing.weights / jnp.sum(state.mixing.weights), state.mixing.theta
        densities = jax.vmap(lambda y: jnp.exp(component.log_density(y, theta)))(jnp.asarray(GRID, float))
        return state, Chain(densities @ weights, jnp.sum(state.counts > 0), info.acceptance_rate, info.overflow)

    made = jax.lax.scan(sweep, algorithm.init(labels, start_key), sweep_keys)[1]
    kept = Chain(*(leaf[length.warmup :] for leaf in made))
    return kept._replace(density=jnp.mean(kept.density, axis=0))


def figures(chain: Chain) -> dict[str, float]:
    """How far the density is from the truth, its mass at the borders, and how the chain moved."""
    clusters = chain.clusters.astype(float)
    effective = float(diagnostics.ess_bulk(clusters[None])) if np.ptp(clusters) else 0.0
    return {
        "hellinger": measure_distances(chain.density, betas_density(GRID), GRID)["hellinger"],
        "borders": float(np.sum(chain.density[:BORDER]) + np.sum(chain.density[-BORDER:])) / len(GRID),
        "acceptance": float(np.mean(chain.acceptance)),
        "clusters": float(np.mean(clusters)),
        "effective_per_1000": 1_000 * effective / len(clusters),
        "overflow": float(np.mean(chain.overflow)),
    }
