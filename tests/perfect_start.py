"""The perfect-start test: a chain started from the joint law of parameters, records and release must stay in it.

Thousands of independent chains each draw parameters from the prior, records from the model and a release from the
mechanism, then run a few sweeps. Whatever a correct kernel does, the parameters keep the prior as their law and the
implied noise (release − statistic) keeps the law of the mechanism's noise, which is the sharper of the two checks.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
from scipy import stats

from dpjax.base import Imputation, Model
from dpjax.gibbs import Plan, Position, build_kernel, init_state
from dpjax.parameters import initial_tuning
from dpjax.release import Release

REJECT = 1e-4
"""A correct kernel fails at this level once in 10,000 keys; the keys are fixed."""


class Replicates(NamedTuple):
    """What the chains hold at the end: parameters [chains, ...], the implied noise [chains, d] and the report."""

    parameters: dict[str, np.ndarray]
    noise: np.ndarray
    acceptance_rate: np.ndarray


def run(
    key: jax.Array,
    model: Model,
    mechanism: Any,
    statistic: Callable,
    n: int,
    imputation: Imputation,
    *,
    interweave: bool = False,
    num_chains: int = 4_000,
    num_sweeps: int = 5,
    parameter_kernel: Callable | None = None,
    plan_kernel: Callable = build_kernel,
) -> Replicates:
    """The state of perfectly started chains after some sweeps."""
    tuning_key, chains_key = jax.random.split(key)
    tuning = initial_tuning(tuning_key, model)
    template = Release(np.zeros(jax.eval_shape(statistic_of_one(model, statistic)).shape), mechanism, statistic, n)

    def chain(chain_key: jax.Array) -> tuple:
        start_key, records_key, noise_key, run_key = jax.random.split(chain_key, 4)
        parameters = model.sample_prior(start_key)
        records = model.sample_records(records_key, parameters, n)
        release = template.sample(noise_key, records)
        kernel = plan_kernel(model, release, Plan(imputation, interweave, parameter_kernel))
        state = init_state(release, Position(parameters, records))
        state, info = jax.lax.scan(lambda s, k: kernel(k, s, tuning), state, jax.random.split(run_key, num_sweeps))
        return state.parameters, release.value - release.total(state.latent.records), info.imputation.acceptance_rate

    parameters, noise, acceptance_rate = jax.jit(jax.vmap(chain))(jax.random.split(chains_key, num_chains))
    return Replicates({k: np.asarray(v) for k, v in parameters.items()}, np.asarray(noise), np.asarray(acceptance_rate))


def statistic_of_one(model: Model, statistic: Callable) -> Callable:
    """A function of nothing whose shape is that of the statistic of one record."""

    def one() -> jax.Array:
        key = jax.random.key(0)
        records = model.sample_records(key, model.sample_prior(key), 1)
        return statistic(jax.tree.map(lambda field: field[0], records))

    return one


def noise_p_value(noise: np.ndarray, law: Any) -> float:
    """The smallest p-value over coordinates, corrected for their number, that the implied noise follows its law."""
    p_values = [stats.kstest(column, law.cdf).pvalue for column in noise.T]
    return min(1.0, min(p_values) * len(p_values))


def lattice_p_value(noise: np.ndarray, probability: Callable[[np.ndarray], np.ndarray], reach: int) -> float:
    """As `noise_p_value` for integer noise, by χ² on the values −reach, ..., reach and the two tails."""
    values = np.arange(-reach, reach + 1)
    expected = probability(values)
    tail = max(1.0 - expected.sum(), 1e-300)
    p_values = []
    for column in np.rint(noise).astype(int).T:
        observed = [np.sum(column == value) for value in values] + [np.sum(np.abs(column) > reach)]
        scaled = np.append(expected, tail) * len(column)
        p_values.append(stats.chisquare(observed, scaled / scaled.sum() * len(column)).pvalue)
    return min(1.0, min(p_values) * len(p_values))
