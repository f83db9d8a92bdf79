"""Sums without bounds, or with one, and whole noise of small scale."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dpjax
from dpjax import models
from dpjax.numerics.clamped import clamped_mean

MODEL = models.normal(models.NormalPrior(0.0, 2.0), variance=models.InverseGammaPrior(3.0, 3.0))


@pytest.mark.parametrize(("lower", "upper"), [(-np.inf, np.inf), (-np.inf, 1.0), (0.0, np.inf), (-1.0, 1.0)])
def test_slopes_at_infinite_bounds_are_numbers(lower: float, upper: float) -> None:
    def mean(parameters: jax.Array) -> jax.Array:
        return clamped_mean(parameters[0], parameters[1], jnp.asarray(lower), jnp.asarray(upper))

    at, step = jnp.array([0.3, 0.7]), 1e-3
    found = jax.grad(mean)(at)
    expected = [(mean(at + step * side) - mean(at - step * side)) / (2 * step) for side in jnp.eye(2)]
    np.testing.assert_allclose(found, np.asarray(expected), atol=2e-3)


@pytest.mark.x32
@pytest.mark.parametrize("bounds", [{}, {"upper": 3.0}])
def test_a_total_without_bounds_and_a_variance_that_is_not_known(bounds: dict) -> None:
    """The posterior of the mean given a total of 800 of 400 records: about Normal at 2."""
    statistic = dpjax.statistics.total("y", **bounds)
    release = dpjax.Release([800.0 if not bounds else 500.0], dpjax.Laplace(10.0), statistic, n=400)
    posterior = dpjax.sample_clt(
        jax.random.key(1), MODEL, release, num_chains=2, num_warmup=150, num_samples=150, progress=False
    )
    assert np.all(np.isfinite(posterior.draws["mean"]))
    assert abs(posterior.draws["mean"].mean() - (2.0 if not bounds else 1.3)) < 0.2


def test_whole_noise_of_small_scale_has_its_own_variance() -> None:
    """σ = 0.25 was taken for a variance of 0.0625."""
    whole = np.arange(-20, 21)
    for scale in (0.25, 0.5, 2.0):
        weight = np.exp(-(whole**2) / (2 * scale**2))
        expected = np.sum(weight * whole**2) / weight.sum()
        assert float(dpjax.DiscreteGaussian(scale).noise.smoothed().scale) ** 2 == pytest.approx(expected, rel=1e-4)
