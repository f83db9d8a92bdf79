"""Real noise modulo p: closed forms of wrapped distributions, draws, and a posterior against a grid."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

import dpjax
from dpjax import models, statistics
from dpjax.mechanisms import DiscreteLaplace, Gaussian, Laplace, Modulo, SumOf


def wrapped_laplace(distance: Any, scale: float, modulus: float) -> Any:
    """The density by the sum of two geometric series."""
    rest = np.mod(distance, modulus)
    return np.cosh((modulus / 2 - rest) / scale) / (2 * scale * np.sinh(modulus / (2 * scale)))


def wrapped_normal(distance: Any, scale: float, modulus: float) -> Any:
    """The density by its Fourier series."""
    k = np.arange(1, 400)[:, None]
    terms = np.exp(-2 * (np.pi * k * scale / modulus) ** 2) * np.cos(2 * np.pi * k * np.asarray(distance) / modulus)
    return (1 + 2 * terms.sum(axis=0)) / modulus


CASES = {
    "Laplace": (Laplace, wrapped_laplace, 1.3, 4.0),
    "narrow Laplace": (Laplace, wrapped_laplace, 0.05, 1.0),
    "wide Laplace": (Laplace, wrapped_laplace, 20.0, 0.75),
    "Normal": (Gaussian, wrapped_normal, 0.9, 2 * np.pi),
    "degrees": (Gaussian, wrapped_normal, 30.0, 360.0),
    "wide Normal": (Gaussian, wrapped_normal, 2.0, 1.0),
}


@pytest.mark.parametrize("name", CASES)
def test_density(name: str) -> None:
    family, law, scale, modulus = CASES[name]
    mechanism = Modulo(family(scale), modulus)
    value = np.linspace(0.0, modulus, 2_001)[:-1]
    for statistic in (0.0, 0.3 * modulus, -7.25 * modulus):
        found = np.exp(np.asarray(mechanism.log_density_terms(jnp.asarray(value), jnp.full(2_000, statistic)), float))
        tolerance = 1e-10 if jnp.result_type(float) == jnp.float64 else 2e-4
        expected = law(value - statistic, scale, modulus)
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * expected.max() * 1e-3)
        assert abs(found.mean() * modulus - 1) < 2e-4


@pytest.mark.x64
def test_any_sum_of_noise_is_wrapped() -> None:
    """Whole and real noise, whose density has a peak at each whole number."""
    mechanism = Modulo(SumOf([DiscreteLaplace(2.0), Gaussian(0.25)]), 2.5)
    value = np.linspace(0.0, 2.5, 4_001)
    found = np.exp(np.asarray(mechanism.log_density_terms(jnp.asarray(value), jnp.full(4_001, 0.7))))
    assert abs(integrate.simpson(found, x=value) - 1) < 1e-9


def test_draws() -> None:
    mechanism = Modulo(Laplace(1.3), 4.0)
    drawn = np.asarray(mechanism.sample(jax.random.key(1), jnp.full(20_000, 9.5)), float)
    assert np.all((drawn >= 0) & (drawn < 4))
    grid = np.linspace(0.0, 4.0, 4_001)
    below = integrate.cumulative_simpson(wrapped_laplace(grid - 9.5, 1.3, 4.0), x=grid, initial=0.0)
    assert stats.kstest(drawn, lambda value: np.interp(value, grid, below)).pvalue > 1e-4
    tiny = Modulo(Laplace(1e-9), 4.0)
    assert float(tiny.sample(jax.random.key(3), jnp.array([-1e-20]))[0]) < 4


ANGLES = np.array([0.2, 2.9, 0.6, 1.1, 2.7, 0.1])
NORMAL = models.normal(models.NormalPrior(0.5, 1.0), variance=0.49)


def check_posterior(channel: Any) -> None:
    """Compare the posterior of a mean with a grid: a residue is that of a Normal variable of both variances."""
    grid = np.linspace(-5.0, 6.0, 2_201)
    log_weight = stats.norm.logpdf(grid, 0.5, 1.0)
    log_weight = log_weight + sum(np.log(wrapped_normal(one - grid, np.hypot(0.7, 0.5), 3.0)) for one in ANGLES)
    weight = np.exp(log_weight - log_weight.max())
    below = np.cumsum(weight) / weight.sum()
    release = dpjax.LocalRelease(ANGLES, channel, field="y")
    drawn = dpjax.sample(jax.random.key(4), NORMAL, release, num_samples=4_000, progress=False).draws["mean"]
    draws = np.asarray(drawn, float).reshape(-1)
    for share in (0.1, 0.5, 0.9):
        place = np.interp(share, below, grid)
        assert abs(np.mean(draws <= place) - share) < 0.04


@pytest.mark.slow
def test_chains_agree_with_a_grid() -> None:
    check_posterior(Modulo(Gaussian(0.5), 3.0))


@pytest.mark.x64
def test_noise_that_is_not_wrapped_is_noticed() -> None:
    """The planted fault."""
    with pytest.raises(AssertionError):
        check_posterior(Gaussian(0.5))


def test_it_is_written_and_described() -> None:
    mechanism = Modulo(Gaussian(2.0), 7.5)
    release = dpjax.Release([3.25, 7.0], mechanism, statistics.cells("cell", 2), 9)
    assert dpjax.from_json(release.to_json()).mechanism == mechanism
    assert "then taken modulo 7.5." in dpjax.describe(release)


@pytest.mark.x64
def test_counts_need_a_whole_modulus() -> None:
    release = dpjax.Release([3.25, 7.0], Modulo(Gaussian(0.5), 7.5), statistics.cells("cell", 2), 90)
    for imputation in (dpjax.counts(width=8), dpjax.imwg()):
        with pytest.raises(ValueError, match=r"^imputation: given .* with residues modulo 7.5"):
            dpjax.gibbs(models.categorical([1.0, 1.0]), release, imputation)
    whole = dpjax.Release([3.25, 4.0], Modulo(Gaussian(0.5), 5.0), statistics.cells("cell", 2), 90)
    dpjax.gibbs(models.categorical([1.0, 1.0]), whole, dpjax.counts(width=8))
