"""Correlated Gaussian noise and noise of the maximum norm: densities by SciPy, mass, draws, promises and refusals."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, special, stats

import dpjax
from dpjax import statistics
from dpjax.data_augmentation.counts.form import decorrelate
from dpjax.mechanisms import KNormLinf, MultivariateGaussian

COVARIANCE = np.array([[4.0, 1.5, -0.5], [1.5, 2.0, 0.3], [-0.5, 0.3, 1.0]])
STATISTIC = np.array([3.0, -1.0, 2.0])
NUM_DRAWS, MAX_Z = 20_000, 4.5


def test_density_is_that_of_scipy() -> None:
    value = np.random.default_rng(0).normal(size=(50, 3)) * 3
    found = jax.vmap(lambda one: MultivariateGaussian(COVARIANCE).log_density(one, jnp.asarray(STATISTIC, float)))(
        jnp.asarray(value, float)
    )
    np.testing.assert_allclose(found, stats.multivariate_normal(STATISTIC, COVARIANCE).logpdf(value), rtol=2e-5)


def test_densities_integrate_to_1() -> None:
    """A forgotten determinant or constant would show."""
    grid, step = np.linspace(-40.0, 40.0, 801, retstep=True)
    points = jnp.asarray(np.stack(np.meshgrid(grid, grid, indexing="ij"), -1).reshape(-1, 2), float)
    for mechanism in (MultivariateGaussian(COVARIANCE[:2, :2]), KNormLinf(1.5)):
        density = np.exp(np.asarray(jax.vmap(lambda one, m=mechanism: m.log_density(one, jnp.zeros(2)))(points), float))
        assert abs(density.sum() * step**2 - 1) < 2e-3
    radial, _ = integrate.quad(lambda r: np.exp(-r / 1.5) * 3 * 8 * r**2, 0, 100)
    found = float(KNormLinf(1.5).log_density(jnp.zeros(3), jnp.zeros(3)))
    np.testing.assert_allclose(found, -np.log(radial), rtol=1e-5)


def test_draws() -> None:
    keys = jax.random.split(jax.random.key(1), NUM_DRAWS)
    statistic = jnp.asarray(STATISTIC, float)
    drawn = np.asarray(jax.vmap(lambda key: MultivariateGaussian(COVARIANCE).sample(key, statistic))(keys)) - STATISTIC
    errors = np.sqrt((COVARIANCE**2 + np.outer(np.diag(COVARIANCE), np.diag(COVARIANCE))) / NUM_DRAWS)
    assert np.all(np.abs(drawn.T @ drawn / NUM_DRAWS - COVARIANCE) < MAX_Z * errors)
    drawn = np.asarray(jax.vmap(lambda key: KNormLinf(2.0).sample(key, statistic))(keys)) - STATISTIC
    assert stats.kstest(np.abs(drawn).max(axis=1), stats.gamma(3, scale=2.0).cdf).pvalue > 1e-4
    assert stats.kstest(np.abs(drawn).max(axis=1), stats.gamma(4, scale=2.0).cdf).pvalue < 1e-4


def test_independent_combinations_have_the_same_density() -> None:
    matrix, deviation = decorrelate(MultivariateGaussian(COVARIANCE), len(COVARIANCE))
    np.testing.assert_allclose(np.diag(matrix), 1.0)
    np.testing.assert_allclose(matrix @ COVARIANCE @ matrix.T, np.diag(deviation**2), atol=1e-5)
    noise = np.array([0.3, -2.0, 1.0])
    expected = stats.multivariate_normal(np.zeros(3), COVARIANCE).logpdf(noise)
    np.testing.assert_allclose(stats.norm.logpdf(matrix @ noise, scale=deviation).sum(), expected, rtol=1e-5)


def test_promises() -> None:
    counts = statistics.histogram("y", [0.0, 1.0, 2.0])
    words = dpjax.describe(dpjax.Release([3.0, 4.0], MultivariateGaussian([[2.0, 1.0], [1.0, 2.0]]), counts, 7))
    assert "If one record is replaced: ρ = 1," in words
    assert "If one record is added or removed: ρ = 0.5," in words
    words = dpjax.describe(dpjax.Release([3.0, 4.0], KNormLinf(2.0), counts, 7))
    assert "If one record is replaced: ε = 0.5" in words
    ratio = special.xlogy(1, 1) + 1 / 2.0
    noise, moved = jnp.array([3.0, -1.0]), jnp.array([4.0, -2.0])
    origin = jnp.zeros(2)
    change = KNormLinf(2.0).log_density(noise, origin) - KNormLinf(2.0).log_density(moved, origin)
    np.testing.assert_allclose(change, ratio, rtol=1e-5)


BAD = {
    "no covariance": (lambda: MultivariateGaussian(None), "covariance"),
    "a vector": (lambda: MultivariateGaussian([1.0, 2.0]), "covariance"),
    "not square": (lambda: MultivariateGaussian(np.ones((2, 3))), "covariance"),
    "not symmetric": (lambda: MultivariateGaussian([[2.0, 1.0], [0.0, 2.0]]), "covariance"),
    "not definite": (lambda: MultivariateGaussian([[1.0, 2.0], [2.0, 1.0]]), "covariance"),
    "singular": (lambda: MultivariateGaussian(np.ones((2, 2))), "covariance"),
    "a missing number": (lambda: MultivariateGaussian([[1.0, np.nan], [np.nan, 1.0]]), "covariance"),
    "of another size": (
        lambda: dpjax.Release([1.0], MultivariateGaussian(COVARIANCE), statistics.total("y"), 3),
        "mechanism",
    ),
    "a scale of 0": (lambda: KNormLinf(0.0), "scale"),
    "two scales": (lambda: KNormLinf([1.0, 2.0]), "scale"),
    "no scale": (lambda: KNormLinf(None), "scale"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused(name: str) -> None:
    call, argument = BAD[name]
    with pytest.raises((ValueError, TypeError), match=rf"^{argument}: given .*; expected .*\. "):
        call()
