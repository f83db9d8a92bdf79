"""Whole runs behind channels and kernels without a known marginal, and with a base measure for released values."""

import jax
import numpy as np
import pytest

import dpjax
from dpjax import mixture
from dpjax.models import GammaPrior

pytestmark = pytest.mark.slow

EPSILON = 3.0


def test_beta_records_behind_wavelets_are_taken_often_enough() -> None:
    """An ε-private channel takes at least e^(-ε) of the proposals, whatever the records."""
    rng = np.random.default_rng(2)
    records = np.where(rng.uniform(size=150) < 0.5, rng.beta(2, 12, 150), rng.beta(12, 3, 150))
    channel = dpjax.HaarWavelet(dpjax.mechanisms.haar_scale(EPSILON, 3), 3)
    keys = jax.random.split(jax.random.key(1), 150)
    released = jax.vmap(channel.sample)(keys, jax.numpy.asarray(records, float))
    posterior = mixture.sample(
        jax.random.key(2),
        released,
        channel,
        component=mixture.GammaShapes(2.0, 0.5),
        concentration=GammaPrior(2.0, 2.0),
        num_warmup=300,
        num_samples=300,
        collect=("records",),
        progress=False,
    )
    assert posterior.info["acceptance_rate"].min() > np.exp(-EPSILON)
    imputed = posterior.collected["records"]
    assert 0 < imputed.min() <= imputed.max() < 1
    assert np.ptp(posterior.draws["concentration"]) > 0
    grid = np.linspace(0.002, 0.998, 250)
    density = posterior.density(grid)
    assert np.mean(density.mean) == pytest.approx(1, abs=0.1)


def test_a_base_measure_for_released_values_finds_the_groups() -> None:
    rng = np.random.default_rng(3)
    records = rng.choice([-4.0, 4.0], 200) + 0.5 * rng.normal(size=200)
    channel = dpjax.Gaussian(1.0)
    posterior = mixture.sample(
        jax.random.key(2),
        records + rng.normal(size=200),
        channel,
        component=mixture.TruncatedNormalInverseGamma(0.0, 0.1, 3.0, 3.0),
        concentration=0.5,
        num_warmup=300,
        num_samples=500,
        progress=False,
    )
    grid = np.linspace(-8, 8, 161)
    density = posterior.density(grid).mean
    assert abs(grid[np.argmax(np.where(grid < 0, density, 0))] + 4) < 0.5
    assert abs(grid[np.argmax(np.where(grid > 0, density, 0))] - 4) < 0.5
    # The records are narrower than what was released of them.
    assert density.max() > 1.1 * 0.5 / np.sqrt(2 * np.pi * (0.25 + 1.0))
    assert np.median(posterior.draws["num_clusters"]) < 6
