"""Samplers of any exchangeable density, against the enumerated laws of a small one."""

from collections.abc import Callable
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import dpjax
from dpjax import coupling, exchangeable
from tests.coupling.enumerated import STATES, N, exact_law, log_density, log_proposal, propose, soma_matrix

NUM = 20_000
SLOW = pytest.mark.slow
QUICK = ("soma", "imwg random, general")


def general(records: jax.Array) -> jax.Array:
    return log_density(jnp.sum(records)[None])


def statistic(record: jax.Array) -> jax.Array:
    return record[None]


SAMPLERS = {
    "soma": lambda q: exchangeable.soma(log_density, propose, q, statistic=statistic),
    "soma windows": lambda q: exchangeable.soma(log_density, propose, q, statistic=statistic, attempts=2),
    "soma, general": lambda q: exchangeable.soma(general, propose, q),
    "imwg": lambda q: exchangeable.imwg(log_density, propose, q, statistic=statistic),
    "imwg random, general": lambda q: exchangeable.imwg(general, propose, q, scan="random"),
}


def ends(step: Callable, starts: np.ndarray) -> np.ndarray:
    """The numbers of the states after one step from each start."""
    keys = jax.random.split(jax.random.key(6), len(starts))
    return np.asarray(step(keys, jnp.asarray(starts, float))).astype(int) @ 2 ** np.arange(N)[::-1]


def one_step(algorithm: dpjax.base.SamplingAlgorithm) -> Callable:
    """The program of a step from many starts."""
    return jax.jit(jax.vmap(lambda key, start: algorithm.step(key, algorithm.init(start))[0].records))


@cache
def right_step(name: str) -> Callable:
    return one_step(SAMPLERS[name](log_proposal))


def invariance_p_value(step: Callable) -> float:
    starts = STATES[np.random.default_rng(0).choice(len(STATES), NUM, p=exact_law())]
    counts = np.bincount(ends(step, starts), minlength=len(STATES))
    return stats.chisquare(counts, NUM * exact_law()).pvalue


@pytest.mark.keys
@pytest.mark.parametrize("name", [name if name in QUICK else pytest.param(name, marks=SLOW) for name in SAMPLERS])
def test_the_target_is_invariant(name: str) -> None:
    assert invariance_p_value(right_step(name)) > 1e-4


@SLOW
def test_weights_that_are_not_proper_are_rejected() -> None:
    assert invariance_p_value(one_step(SAMPLERS["soma"](lambda record: jnp.zeros(())))) < 1e-4


def test_a_step_of_soma_is_n_enumerated_attempts() -> None:
    law = np.linalg.matrix_power(soma_matrix(), N)[0]
    counts = np.bincount(ends(right_step("soma"), np.zeros((NUM, N))), minlength=len(STATES))
    assert stats.chisquare(counts, NUM * law).pvalue > 1e-4


@pytest.mark.x64
def test_both_paths_compute_the_same_weights() -> None:
    start = {"a": jnp.array([1, 0, 2]), "b": jnp.array([[0.1, 2.0], [0.3, -1.0], [0.2, 0.4]])}

    def draw(key: jax.Array) -> dict:
        first, second = jax.random.split(key)
        return {"a": jax.random.randint(first, (), 0, 3), "b": jax.random.normal(second, (2,), float)}

    def log_q(record: dict) -> jax.Array:
        return -jnp.sum(record["b"] ** 2) / 2

    def total(record: dict) -> jax.Array:
        return jnp.append(record["b"], record["a"].astype(float))

    def of_sum(value: jax.Array) -> jax.Array:
        return -jnp.sum(jnp.abs(value - 1.0))

    def of_records(records: dict) -> jax.Array:
        return of_sum(jnp.sum(jax.vmap(total)(records), axis=0))

    pair = exchangeable.soma(of_sum, draw, log_q, statistic=total), exchangeable.soma(of_records, draw, log_q)
    steps = [jax.jit(lambda key, one=one: one.step(key, one.init(start))[0]) for one in pair]
    for seed in range(3):
        states = [step(jax.random.key(seed)) for step in steps]
        assert states[1].records["a"].dtype == start["a"].dtype
        for one, other in zip(*map(jax.tree.leaves, states), strict=True):
            np.testing.assert_allclose(one, other, atol=1e-10)


@pytest.mark.parametrize(
    ("imputation", "relabel"),
    [(dpjax.imwg(scan="random"), "within"), pytest.param(dpjax.imwg(), "between", marks=SLOW)],
)
def test_both_coupled_chains_keep_the_target(imputation: object, relabel: str) -> None:
    rng = np.random.default_rng(1)
    firsts, seconds = (jnp.asarray(STATES[rng.choice(len(STATES), NUM, p=exact_law())], float) for _ in range(2))
    kernel = coupling.coupled_exchangeable(
        general, propose, log_proposal, lambda key: jnp.zeros(N), imputation=imputation, relabel=relabel
    )

    def one(key: jax.Array, first: jax.Array, second: jax.Array) -> tuple:
        pair, _ = kernel.step(key, kernel.join(jnp.sort(first), second, jnp.asarray(False)))
        return kernel.first(pair), kernel.second(pair)

    _, second = jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(7), NUM), firsts, seconds)
    counts = np.bincount(np.asarray(second).sum(axis=1).astype(int), minlength=N + 1)
    law = np.bincount(STATES.sum(axis=1), exact_law())
    assert stats.chisquare(counts, NUM * law).pvalue > 1e-4
