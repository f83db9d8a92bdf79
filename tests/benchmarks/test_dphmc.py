"""The problems of the DP-HMC experiments and what they pay; what they measure is not tested."""

import json
from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import ndtri

from benchmarks.papers.dphmc import reused_gradient, subsampled_test
from benchmarks.papers.dphmc.algorithms import count_iterations, make_kernel
from benchmarks.papers.dphmc.distances import measure
from benchmarks.papers.dphmc.problems import make_problem
from dpjax import private

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


def test_a_cap_that_the_budget_allows_needs_no_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """What subsampled queries can afford takes minutes to find, of which quick runs consisted."""
    monkeypatch.setattr(private.Ledger, "affordable", lambda self, queries: pytest.fail("searched"))
    kernel = make_kernel("DP-penalty", make_problem("banana", n=100))
    assert count_iterations(kernel, 15, 5)[0] == 5


@pytest.mark.x64
@pytest.mark.parametrize("accept", [subsampled_test.penalty, subsampled_test.decision, subsampled_test.barker])
def test_tests_of_one_acceptance_leave_the_posterior_invariant(accept: Callable) -> None:
    """The acceptance of r is eʳ times that of −r; without the penalty's half, which a mutant of it lacks, it is not."""
    ratio, move = np.linspace(0.01, 8, 50), np.full(50, 0.7)
    for unit in (0.5, 3.0):
        forth, back = accept(unit, ratio, move), accept(unit, -ratio, move)
        np.testing.assert_allclose(forth, np.exp(ratio) * back, rtol=1e-9)
        wrong = accept(unit, ratio + 0.1, move), accept(unit, 0.1 - ratio, move)
        assert not np.allclose(wrong[0], np.exp(ratio) * wrong[1], rtol=1e-2)


@pytest.mark.x64
def test_a_decision_costs_no_more_than_its_gaussian_query_and_accepts_more_than_the_penalty() -> None:
    """Φ⁻¹ of the acceptance grows by at most 1/σ for each unit of the ratio, as behind noise of deviation σ."""
    ratio = np.linspace(-8.0, 8.0, 4_001)
    for deviation in (0.5, 1.5, 4.0):
        move = np.full(len(ratio), deviation)
        score = ndtri(subsampled_test.decision(1.0, ratio, move))
        inside = np.abs(score) < 5
        steepest = np.max(np.diff(score[inside]) / np.diff(ratio[inside]))
        assert steepest == pytest.approx(1 / deviation, rel=1e-3)
        lead = subsampled_test.decision(1.0, ratio, move) - subsampled_test.penalty(1.0, ratio, move)
        assert np.min(lead) > -1e-9
        assert np.max(lead) > 0.003


@pytest.mark.x64
def test_a_reused_gradient_s_noise_stays_with_its_position() -> None:
    """A rejection that keeps the noise of another position spreads the draws: the variance has to be 1."""
    right, wrong = (
        reused_gradient.summarize(reused_gradient.run(way, **reused_gradient.HARD, chains=1_000, steps=200))
        for way in ("reused", "reused from rejected ends")
    )
    assert abs(right["variance"] - 1) < 4 * right["standard_error"]
    assert abs(wrong["variance"] - 1) > 4 * wrong["standard_error"]
