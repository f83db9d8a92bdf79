"""Particles moved on a rough table of long sums, and weighed by the sums at the end, against enumeration on a grid."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
from numpyro import distributions as dist
from scipy import stats
from scipy.special import logsumexp

import dpjax
from dpjax.smc.sample import FEW_SUMMED, rough_table, weigh_by_sums
from dpjax.smc.sampler import Trace

DOSES = np.linspace(-1.0, 1.0, 12)
PUBLISHED = np.array([7, 2, 11, 14, 9, 22, 19, 25, 41, 33, 52, 70])
SCALE = 4.0


def counts(n: int, dose: jax.Array, y: jax.Array | None = None) -> None:
    """Counts that grow with the dose, from known ones at dose 0."""
    slope = numpyro.sample("slope", dist.Normal(0.0, 2.0))
    with numpyro.plate("units", n):
        numpyro.sample("y", dist.Poisson(jnp.exp(3.0 + slope * dose)), obs=y)


@pytest.fixture(scope="module")
def model() -> dpjax.Model:
    return dpjax.from_numpyro(counts, "y", n=12, dose=jnp.asarray(DOSES))


@pytest.fixture(scope="module")
def release() -> dpjax.LocalRelease:
    return dpjax.LocalRelease(PUBLISHED, dpjax.DiscreteLaplace(SCALE), field="y")


def log_likelihoods(slopes: np.ndarray) -> np.ndarray:
    """The log-densities of what was published at slopes [m], summed over counts up to 599."""
    numbers = np.arange(600)[:, None, None]
    noise = np.log(np.tanh(0.5 / SCALE)) - np.abs(PUBLISHED - numbers) / SCALE
    means = np.exp(3.0 + slopes[:, None] * DOSES)
    return logsumexp(stats.poisson.logpmf(numbers, means) + noise, axis=0).sum(axis=1)


def test_the_evidence_is_that_of_the_sums(model, release):
    """Catches a table whose factor is left out of the evidence, and particles that are not weighed by the sums."""
    drawn = dpjax.sample_smc(jax.random.key(1), model, release, num_particles=300, num_islands=4, progress=False)
    grid = np.linspace(-4.0, 4.0, 2_001)
    logs = log_likelihoods(grid) + stats.norm.logpdf(grid, 0.0, 2.0)
    evidence = logsumexp(logs) + np.log(grid[1] - grid[0])
    assert abs(drawn.log_marginal_likelihood - evidence) < 5 * drawn.log_marginal_likelihood_error
    weights = np.exp(logs - logsumexp(logs))
    mean = weights @ grid
    sd = np.sqrt(weights @ (grid - mean) ** 2)
    np.testing.assert_allclose(np.mean(drawn.draws["slope"]), mean, atol=5 * sd / np.sqrt(1_200 / 4))


def test_particles_of_another_likelihood_are_weighed_by_the_sums(model, release):
    """Catches weights that are turned round: here the table is the likelihood to the power 0.9."""
    sums = dpjax.marginal_likelihood(model, release)
    assert sums.size > FEW_SUMMED
    prior = {"slope": 2.0 * np.random.default_rng(0).standard_normal(200)}
    table = rough_table(model, sums, prior)
    assert table is not None
    slopes = np.random.default_rng(1).normal(1.0, 0.03, (2, 4_000))
    trace = Trace(*(jnp.asarray([[0.3, 1.0, jnp.nan], [1.0, jnp.nan, jnp.nan]]) for _ in Trace._fields))
    weaker = replace(table, weights=0.9 * table.weights)
    drawn, after = weigh_by_sums(jax.random.key(0), model, weaker, sums, {"slope": slopes}, trace)
    exact = log_likelihoods(slopes.ravel()).reshape(slopes.shape)
    logs = exact - 0.9 * (exact - exact[0, 0]) - float(weaker({"slope": slopes[0, 0]}))
    weights = np.exp(logs - logsumexp(logs, axis=1, keepdims=True))
    np.testing.assert_allclose(np.mean(drawn["slope"], axis=1), np.sum(weights * slopes, axis=1), atol=2e-3)
    added = logsumexp(logs, axis=1) - np.log(4_000)
    np.testing.assert_allclose(after.log_increment[0, 1] - 1.0, added[0], atol=0.02)
    np.testing.assert_allclose(after.log_increment[1, 0] - 1.0, added[1], atol=0.02)


def test_a_table_that_is_too_coarse_is_not_used(model, release):
    """Catches particles of which a handful have all the weight."""
    sums = dpjax.marginal_likelihood(model, release)
    table = rough_table(model, sums, {"slope": 2.0 * np.random.default_rng(0).standard_normal(200)})
    slopes = np.random.default_rng(1).normal(0.5, 0.5, (2, 4_000))
    trace = Trace(*(jnp.ones((2, 1)) for _ in Trace._fields))
    flat = replace(table, weights=0.0 * table.weights)
    assert weigh_by_sums(jax.random.key(0), model, flat, sums, {"slope": slopes}, trace) is None
