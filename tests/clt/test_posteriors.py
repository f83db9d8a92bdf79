"""Posteriors by the Normal approximation of the sum against closed forms, grids and enumeration."""

from math import sqrt

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from scipy import integrate, stats
from scipy.special import logsumexp

import dpjax
from problems.regression import make_model, simulated_release

TOTAL = dpjax.statistics.total("y")
CLAMPED = dpjax.statistics.total("y", -1.0, 1.0)
MEAN = dpjax.models.normal(dpjax.models.NormalPrior(0.0, 10.0), 4.0)
FEW = {"num_warmup": 300, "num_samples": 500, "progress": False}


def agree(draws: np.ndarray, grid: np.ndarray, log_density: np.ndarray) -> None:
    """Mean and standard deviation of draws [chain, draw] are those of a density on a grid, to Monte Carlo error."""
    mean, sd = moments_on(grid, log_density)
    assert abs(np.mean(draws) - mean) < 4 * dpjax.diagnostics.mcse_mean(draws)
    assert abs(np.std(draws) - sd) < 4 * dpjax.diagnostics.mcse_sd(draws) + 0.01 * sd


def moments_on(grid: np.ndarray, log_density: np.ndarray) -> tuple[float, float]:
    """Mean and standard deviation of a density on a grid of equal steps."""
    weights = np.exp(log_density - logsumexp(log_density))
    mean = np.sum(weights * grid)
    return mean, np.sqrt(np.sum(weights * (grid - mean) ** 2))


@pytest.mark.x32
@pytest.mark.parametrize(("n", "scale"), [pytest.param(10**7, 3_000.0, marks=pytest.mark.slow), (10**8, 2_000.0)])
@pytest.mark.filterwarnings("ignore::dpjax.release.PrecisionWarning")
def test_normal_mean_of_many_records_is_that_of_the_closed_form(n, scale):
    value = 1.3 * n + 2.5 * sqrt(4 * n + scale**2)
    posterior = dpjax.sample_clt(
        jax.random.key(1), MEAN, dpjax.Release([value], dpjax.Gaussian(scale), TOTAL, n), **FEW
    )
    precision = 1 / 100 + n**2 / (4 * n + scale**2)
    mean, sd = value * n / (4 * n + scale**2) / precision, 1 / sqrt(precision)
    z = (posterior.draws["mean"].astype(float) - mean) / sd
    assert abs(np.mean(z)) < 4 * dpjax.diagnostics.mcse_mean(z)
    assert abs(np.std(z) - 1) < 4 * dpjax.diagnostics.mcse_sd(z)


@pytest.mark.x32
def test_laplace_noise_is_integrated_out():
    n, scale = 50, 20.0
    release = dpjax.Release([130.0], dpjax.Laplace(scale), TOTAL, n)
    posterior = dpjax.sample_clt(jax.random.key(2), MEAN, release, **FEW)
    grid = np.linspace(-4, 10, 1_001)
    likelihood = dpjax.Laplace(scale).noise.log_marginal_normal(
        jnp.asarray(130.0), jnp.asarray(n * grid), jnp.full(grid.shape, sqrt(4.0 * n))
    )
    agree(posterior.draws["mean"], grid, np.asarray(likelihood, float) + stats.norm.logpdf(grid, 0, 10))


@pytest.mark.slow
@pytest.mark.parametrize("value", [60.0, 40.0])
def test_other_noise_is_latent(value):
    n, scale, bound = 50, 20.0, 60.0
    mechanism = dpjax.Censored(dpjax.Laplace(scale), upper=bound)
    posterior = dpjax.sample_clt(jax.random.key(3), MEAN, dpjax.Release([value], mechanism, TOTAL, n), **FEW)
    grid, sums = np.linspace(-8, 30, 400), np.linspace(-600, 2_400, 6_001)
    noise = stats.laplace.logpdf(value - sums, scale=scale)
    if value == bound:
        noise = stats.laplace.logsf(bound - sums, scale=scale)
    likelihood = logsumexp(noise + stats.norm.logpdf(sums, n * grid[:, None], sqrt(4 * n)), axis=1)
    agree(posterior.draws["mean"], grid, likelihood + stats.norm.logpdf(grid, 0, 10))


@pytest.mark.x32
def test_cells_that_sum_to_n_agree_with_enumeration():
    n, scale = 400, 6.0
    model = dpjax.models.categorical([1.0, 1.0])
    release = dpjax.Release([131.0, 262.0], dpjax.DiscreteLaplace(scale), dpjax.statistics.cells("cell", 2), n)
    posterior = dpjax.sample_clt(jax.random.key(4), model, release, **FEW)
    grid, counts = np.linspace(0.001, 0.999, 999), np.arange(n + 1)
    noise = -(np.abs(131 - counts) + np.abs(262 - (n - counts))) / scale
    agree(
        posterior.draws["probabilities"][..., 0],
        grid,
        logsumexp(stats.binom.logpmf(counts, n, grid[:, None]) + noise, axis=1),
    )


def poisson(n: int | None = None) -> None:
    rate = numpyro.sample("rate", dist.Gamma(2.0, 0.5))
    with numpyro.plate("records", n):
        numpyro.sample("y", dist.Poisson(rate))


@pytest.mark.slow
def test_poisson_counts_agree_with_a_convolution():
    n, scale, value = 300, 30.0, 960.0
    model = dpjax.from_numpyro(poisson, ["y"], 3)
    release = dpjax.Release([value], dpjax.Gaussian(scale), TOTAL, n)
    posterior = dpjax.sample_clt(jax.random.key(5), model, release, num_points=256, **FEW)
    grid, sums = np.linspace(2.0, 5.0, 601), np.arange(2_000)
    noise = stats.norm.logpdf(value, sums, scale)
    likelihood = logsumexp(stats.poisson.logpmf(sums, n * grid[:, None]) + noise, axis=1)
    agree(posterior.draws["rate"], grid, likelihood + stats.gamma.logpdf(grid, 2, scale=2))
    assert np.max(posterior.info["quadrature_error"]) < 1e-4


@pytest.fixture(scope="module")
def clamped() -> tuple[dpjax.Release, np.ndarray, np.ndarray]:
    """A release of clamped records, and its posterior on a grid by moments that SciPy integrates."""
    n, scale = 20_000, 40.0
    release = dpjax.Release([7_000.0], dpjax.Gaussian(scale), CLAMPED, n)
    grid = np.linspace(0.6, 1.1, 201)
    powers = [[clamped_moment(mean, power) for mean in grid] for power in (1, 2)]
    first, second = np.array(powers)
    spread = np.sqrt(n * (second - first**2) + scale**2)
    return release, grid, stats.norm.logpdf(7_000.0, n * first, spread) + stats.norm.logpdf(grid, 0, 10)


def clamped_moment(mean: float, power: int) -> float:
    """E clip(y, -1, 1)^power for y ~ N(mean, 4)."""
    low, high = stats.norm.cdf(-1, mean, 2), stats.norm.sf(1, mean, 2)
    return integrate.quad(lambda y: y**power * stats.norm.pdf(y, mean, 2), -1, 1)[0] + (-1) ** power * low + high


@pytest.mark.x32
@pytest.mark.parametrize("known", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_clamped_records_agree_with_moments_by_scipy(clamped, known):
    release, grid, log_density = clamped
    model = MEAN if known else MEAN._replace(statistic_moments=None)
    agree(dpjax.sample_clt(jax.random.key(6), model, release, **FEW).draws["mean"], grid, log_density)


@pytest.mark.slow
def test_a_covariance_without_clamping_is_noticed(clamped):
    release, grid, log_density = clamped

    def moments(parameters, statistic):
        return MEAN.statistic_moments(parameters, statistic)[0], jnp.full((1, 1), 4.0)

    draws = dpjax.sample_clt(jax.random.key(7), MEAN._replace(statistic_moments=moments), release, **FEW).draws["mean"]
    with pytest.raises(AssertionError):
        agree(draws, grid, log_density)


@pytest.mark.slow
def test_too_coarse_a_quadrature_is_refused(clamped):
    model = MEAN._replace(statistic_moments=None)
    with pytest.raises(ValueError, match=r"num_points: given 8 points, by which the mean .* Pass more points"):
        dpjax.sample_clt(jax.random.key(8), model, clamped[0], num_points=8, **FEW)


def with_one(record: dict[str, jax.Array]) -> jax.Array:
    """The field and a constant, such as a count of records."""
    return jnp.stack([record["y"], jnp.ones_like(record["y"])])


@pytest.mark.slow
def test_a_constant_tells_its_noise_alone():
    n = 1_000
    release = dpjax.Release([1_310.0, 1_200.0], dpjax.Gaussian([50.0, 100.0]), with_one, n)
    draws = dpjax.sample_clt(jax.random.key(9), MEAN, release, **FEW).draws["mean"]
    precision = 1 / 100 + n**2 / (4 * n + 50.0**2)
    grid = 1.31 + np.linspace(-6, 6, 401) / sqrt(precision)
    agree(draws, grid, -precision * (grid - 1.31 * (1 - 0.01 / precision)) ** 2 / 2)


@pytest.mark.x64
def test_a_constant_without_noise_is_refused():
    release = dpjax.joint(
        dpjax.Release([1_310.0], dpjax.Gaussian(50.0), TOTAL, 1_000),
        dpjax.Release([1_000.0], dpjax.Exact(), one, 1_000),
    )
    with pytest.raises(ValueError, match=r"release: given a value of which some part.* Leave out exact totals"):
        dpjax.sample_clt(jax.random.key(10), MEAN, release, **FEW)


def one(record: dict[str, jax.Array]) -> jax.Array:
    """A constant."""
    return jnp.ones_like(record["y"])[None]


@pytest.mark.slow
def test_a_private_regression_agrees_with_exact_chains():
    """Means within a tenth of a standard deviation, and these within 5 %, beyond three errors of the exact chains."""
    model = make_model()
    release = simulated_release(model, 10_000)
    options = {"num_warmup": 200, "num_samples": 1_500, "initial": "large-sample", "progress": False}
    exact = dpjax.sample(jax.random.key(13), model, release, **options).draws["coef"].astype(float)
    other = dpjax.sample_clt(jax.random.key(14), model, release, num_samples=2_000, progress=False)
    draws = other.draws["coef"].astype(float)
    sd = np.std(exact, axis=(0, 1))
    error = np.hypot(dpjax.diagnostics.mcse_mean(exact), dpjax.diagnostics.mcse_mean(draws)) / sd
    assert np.all(error < 0.05)
    assert np.all(np.abs(np.mean(draws, axis=(0, 1)) - np.mean(exact, axis=(0, 1))) / sd < 0.1 + 3 * error)
    error = np.hypot(dpjax.diagnostics.mcse_sd(exact), dpjax.diagnostics.mcse_sd(draws)) / sd
    assert np.all(np.abs(np.std(draws, axis=(0, 1)) / sd - 1) < 0.05 + 3 * error)
