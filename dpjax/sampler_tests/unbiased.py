"""Unbiased estimates of posterior means by coupled chains that start at draws, compared with the means of the draws."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import jax
import jax.numpy as jnp
import numpy as np

from dpjax.base import Array, Key, Model, Parameters
from dpjax.coupling import coupled_gibbs, meeting_times, suggest_k_m, unbiased_estimates
from dpjax.coupling.pairs import CoupledKernel
from dpjax.data_augmentation.problem import Problem
from dpjax.data_augmentation.records.forms import FreshProposals, OwnLatentData
from dpjax.data_augmentation.records.imwg import imwg
from dpjax.diagnostics import convergence
from dpjax.models.simulation import Position, draw_position_at
from dpjax.posterior.posterior import Posterior
from dpjax.sampler_tests.drifts import are_constant, columns, merge_chains
from dpjax.sampler_tests.invariance_test_result import Estimates

NUM_PAIRS = 200
"""Number of pairs; each averages over ten times as many steps as nearly all pairs need to meet."""

MAX_STEPS = 20_000


class Scores(NamedTuple):
    """The function that is averaged: standardised parameters [row] and their squares."""

    names: tuple[str, ...]
    centre: Array
    scale: Array

    def of(self, position: Position) -> Array:
        """The numbers [2, row]."""
        values = [jnp.ravel(position.parameters[name]).astype(float) for name in self.names]
        scores = (jnp.concatenate(values) - self.centre) / self.scale
        return jnp.stack([scores, scores**2])


class CoupledPairs(NamedTuple):
    """The coupled kernel and the function that is averaged, for which programs are compiled."""

    kernel: CoupledKernel
    function: Callable[[Position], Array]


PAIRS_CACHE: WeakKeyDictionary[Posterior, dict[Any, CoupledPairs]] = WeakKeyDictionary()
"""The last pairs of each live posterior, by imputation and number of starts, so that programs compile once."""

MOST_CACHED = 8
"""How many pairs of a posterior are kept."""


def coupled_pairs(
    posterior: Posterior, problem: Problem, starts: Parameters, draws: dict[str, np.ndarray]
) -> CoupledPairs:
    """Coupled chains that start at parameters [start, ...] among all draws [chain, draw, ...].

    Raises
    ------
    TypeError, ValueError
        If no coupling of chains is known for the model, the release or the imputation; see `dpjax.coupling`.
    """
    known = isinstance(problem.imputation_with_defaults, (FreshProposals, OwnLatentData))
    problem = problem.planned(imputation=problem.imputation_with_defaults if known else imwg())
    built = PAIRS_CACHE.setdefault(posterior, {})
    which = (problem.plan.imputation, len(next(iter(starts.values()))))
    if which not in built:
        if len(built) >= MOST_CACHED:
            built.pop(next(iter(built)))
        built[which] = CoupledPairs(build_coupled(problem, starts), scores_of(draws))
    return built[which]


def build_coupled(problem: Problem, starts: Parameters) -> CoupledKernel:
    """The coupled kernel, started at records from the model."""
    start = partial(draw_start, model=problem.model, n=problem.release.n, starts=starts)
    return coupled_gibbs(problem.given_model, problem.given_release, problem.plan.imputation, sample_start=start)


def scores_of(draws: dict[str, np.ndarray]) -> Callable[[Position], Array]:
    """The function of positions that is averaged, standardised by the draws [chain, draw, ...]."""
    centre, scale = centre_and_scale(draws)
    return Scores(tuple(draws), jnp.asarray(centre, float), jnp.asarray(scale, float)).of


def centre_and_scale(draws: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Means and standard deviations [row] of draws; infinite sds for constants."""
    flat = columns(draws, 2)
    scale = flat.std(axis=(0, 1))
    return flat.mean(axis=(0, 1)), np.where(are_constant(draws, merge_chains(draws)) | (scale == 0), np.inf, scale)


def draw_start(key: Key, model: Model, n: int, starts: Parameters) -> Position:
    """One of the starts [start, ...], with records from the model."""
    choice_key, record_key = jax.random.split(key)
    number = jax.random.randint(choice_key, (), 0, len(next(iter(starts.values()))))
    return draw_position_at(record_key, model, {name: jnp.asarray(leaf)[number] for name, leaf in starts.items()}, n)


def estimate(key: Key, pairs: CoupledPairs, draws: dict[str, np.ndarray]) -> Estimates:
    """The differences of the exact means and mean squares from those of the draws [chain, draw, ...].

    Raises
    ------
    ValueError
        If some pair of chains does not meet within 20,000 steps.
    """
    pilot_key, run_key = jax.random.split(key)
    options: dict[str, Any] = {"num_pairs": NUM_PAIRS, "max_steps": MAX_STEPS}
    meetings = meeting_times(pilot_key, pairs.kernel, **options)
    meetings.require_all("unbiased estimates")
    k, m = map(round_up, suggest_k_m(meetings))
    options["max_steps"] = max(MAX_STEPS, 2 * m)
    exact = unbiased_estimates(run_key, pairs.kernel, pairs.function, k=k, m=m, **options).estimate()
    centre, scale = centre_and_scale(draws)
    scores = (columns(draws, 2) - centre) / scale
    here = np.stack([scores.mean(axis=(0, 1)), (scores**2).mean(axis=(0, 1))])
    error = np.stack([convergence.mcse_mean(scores), convergence.mcse_mean(scores**2)])
    return Estimates(exact.mean - here, np.hypot(exact.standard_error, error))


def round_up(steps: int) -> int:
    """The next power of two, so that choices that differ by chance share a compiled program."""
    return 1 << max(0, steps - 1).bit_length()
