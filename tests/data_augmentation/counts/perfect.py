"""The perfect-start test of tables: chains started from the joint law of parameters, table and release stay in it.

Parameters keep the prior as their law, counts the law that prior and model give them, noise the mechanism's, and known
totals stay what they are. Within a chain counts and noise also stay independent, which neither of their laws tells.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from dpjax.base import Model
from dpjax.data_augmentation.parameters import initial_tuning
from dpjax.data_augmentation.problem import augment
from dpjax.data_augmentation.sweep import build_kernel
from dpjax.models.simulation import Position, init_state
from dpjax.release import Release

REJECT = 1e-4
LEAST_EXPECTED = 8
"""Of a χ² test's classes."""


class Ends(NamedTuple):
    """What the chains hold at the end: parameters [chains, ...], counts [chains, c] and noise [chains, d]."""

    parameters: dict[str, np.ndarray]
    counts: np.ndarray
    noise: np.ndarray


def run(
    key: jax.Array, model: Model, template: Release, *, num_chains: int = 4_000, num_sweeps: int = 4, **choices: Any
) -> Ends:
    """The ends of perfectly started chains; of the template's value only the shape matters."""
    tuning_key, chains_key = jax.random.split(key)
    tuning = initial_tuning(tuning_key, model)
    problem = augment(model, template, **choices)
    model, template = problem.model, problem.release

    def chain(chain_key: jax.Array) -> tuple:
        start_key, table_key, noise_key, run_key = jax.random.split(chain_key, 4)
        parameters = model.sample_prior(start_key)
        records = model.sample_records(table_key, parameters, 1)
        release = replace(template, value=template.mechanism.sample(noise_key, template.total(records)))
        kernel = build_kernel(model, release, problem.plan)

        def sweep(state: Any, index: jax.Array) -> tuple:
            return kernel(jax.random.fold_in(run_key, index), state, tuning)[0], None

        state, _ = jax.lax.scan(sweep, init_state(release, Position(parameters, records)), jnp.arange(num_sweeps))
        return state.parameters, state.latent.records["counts"][0], release.value - release.total(state.latent.records)

    return Ends(*jax.device_get(jax.jit(jax.vmap(chain))(jax.random.split(chains_key, num_chains))))


def lattice_p_value(values: np.ndarray, pmf: Callable[[np.ndarray], np.ndarray], span: range) -> float:
    """By χ² that whole numbers [chains] follow a law on the span, with rare values taken together."""
    numbers = np.arange(span.start, span.stop)
    expected = pmf(numbers) * len(values)
    observed = np.array([np.sum(values == number) for number in numbers], float)
    common = expected >= LEAST_EXPECTED
    expected = np.append(expected[common], len(values) - expected[common].sum())
    observed = np.append(observed[common], len(values) - observed[common].sum())
    if expected[-1] < LEAST_EXPECTED:
        expected, observed = merge_last(expected), merge_last(observed)
    return float(stats.chisquare(observed, expected).pvalue)


def merge_last(counts: np.ndarray) -> np.ndarray:
    return np.append(counts[:-2], counts[-2:].sum())


def independence_p_value(counts: np.ndarray, noise: np.ndarray) -> float:
    """The smallest p-value, corrected, that no count is correlated with a noise."""
    pairs = [(one, other) for one in counts.T for other in noise.T if np.ptp(one) > 0 and np.ptp(other) > 0]
    return corrected([stats.spearmanr(*pair).pvalue for pair in pairs])


def corrected(p_values: list[float]) -> float:
    return min(1.0, min(p_values) * len(p_values))


def beta_binomial(n: int, alpha: np.ndarray, cell: int) -> Callable[[np.ndarray], np.ndarray]:
    """The law of one count of a table of n records."""
    return stats.betabinom(n, alpha[cell], alpha.sum() - alpha[cell]).pmf


def discrete_gaussian(scale: float) -> Callable[[np.ndarray], np.ndarray]:
    weights = np.exp(-0.5 * (np.arange(-200, 201) / scale) ** 2)
    return lambda noise: np.exp(-0.5 * (noise / scale) ** 2) / weights.sum()


def discrete_laplace(scale: float) -> Callable[[np.ndarray], np.ndarray]:
    return stats.dlaplace(1 / scale).pmf
