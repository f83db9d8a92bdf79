"""The problems of the DP-HMC experiments and what they pay; what they measure is not tested."""

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from benchmarks.papers.dphmc.algorithms import count_iterations, make_kernel
from benchmarks.papers.dphmc.distances import measure
from benchmarks.papers.dphmc.problems import make_problem

PER_CHAIN = json.loads((Path(__file__).parents[1] / "references/dphmc_iterations.json").read_text())


@pytest.mark.parametrize("name", ["banana", "gaussian"])
def test_exact_draws_are_those_of_the_posterior(name: str) -> None:
    """The log-density of exact draws, less that of a Normal law on the straight scale, is constant."""
    problem = make_problem(name, n=500)
    draws = problem.draw(np.random.default_rng(1), 20_000)
    error = problem.draw(np.random.default_rng(2), 20_000).std(axis=0) / np.sqrt(len(draws))
    assert np.all(np.abs(draws.mean(axis=0) - problem.mean) < 5 * error)
    straight = draws.copy()
    if name == "banana":
        straight[:, 1] += 20 * straight[:, 0] ** 2
    centred = straight - straight.mean(axis=0)
    quadratic = np.einsum("ni,ij,nj->n", centred, np.linalg.inv(np.cov(straight.T)), centred)
    records = jax.tree.map(lambda leaf: leaf.reshape(-1, leaf.shape[-1])[:500], problem.target.records)

    def log_density(theta: jax.Array) -> jax.Array:
        terms = jax.vmap(problem.target.log_likelihood, (None, 0))(theta, records)
        return jnp.sum(terms) + problem.target.log_prior(theta)

    some = np.asarray(jax.jit(jax.vmap(log_density))(jnp.asarray(draws[:200])))
    slope = np.polyfit(-0.5 * quadratic[:200], some, 1)[0]
    assert slope == pytest.approx(1.0, abs=0.1)
    assert np.corrcoef(quadratic[:200], some)[0, 1] < -0.99
    assert measure(problem, draws[:4_000].reshape(4, 1_000, -1), np.random.default_rng(3))["mmd"] < 0.1


@pytest.mark.parametrize("model", ["banana", "gaussian"])
def test_budgets_allow_the_iterations_of_the_closed_form(model: str) -> None:
    problem = make_problem(model, n=100)
    for name in ("DP-HMC", "DP-penalty"):
        kernel = make_kernel(name, problem)
        counts = [count_iterations(kernel, epsilon, 10**7)[0] for epsilon in (2, 6, 15)]
        assert counts == PER_CHAIN[model][name]
