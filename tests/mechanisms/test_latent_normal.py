"""Exact draws of a normal statistic given its noisy release, against quadrature."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from dpjax.mechanisms import Gaussian, Laplace

NUM_DRAWS = 20_000


GATE = 1e-4


# (value, mean, scale of the normal, scale of the noise): near, far on both sides, sharp and vague noise
CASES = (
    (0.3, 0.0, 1.0, 1.0),
    (-2.0, 1.0, 0.5, 2.0),
    (30.0, 0.0, 1.0, 0.5),
    (-30.0, 0.0, 1.0, 0.02),
    (5.0, 4.0, 3.0, 0.01),
    (100.0, -3.0, 2.0, 50.0),
)


def log_noise(mechanism, noise, scale):
    """The noise's log-density up to a constant, written again."""
    return -np.abs(noise) / scale if mechanism is Laplace else -((noise / scale) ** 2) / 2


def quadrature_cdf(mechanism, value, mean, scale, noise_scale):
    """The distribution function of the statistic given the release, by the trapezoidal rule on a fine grid."""
    low, high = sorted((value, mean))
    near_value = value + noise_scale * np.linspace(-40, 40, 40_001)
    grid = np.sort(np.concatenate([np.linspace(low - 10 * scale, high + 10 * scale, 400_001), near_value]))
    log_density = -(((grid - mean) / scale) ** 2) / 2 + log_noise(mechanism, value - grid, noise_scale)
    density = np.exp(log_density - log_density.max())
    cumulative = np.append(0, np.cumsum(np.diff(grid) * (density[1:] + density[:-1]) / 2))
    return lambda draws: np.interp(draws, grid, cumulative / cumulative[-1])


@jax.jit
def sample_latent(mechanism, key, value, mean, scale):
    return mechanism.noise.sample_latent_normal(key, value, mean, scale)


def draw(mechanism, value, mean, scale, noise_scale, seed):
    values = jnp.full(NUM_DRAWS, value)
    return np.asarray(sample_latent(mechanism(noise_scale), jax.random.key(seed), values, mean, scale))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("mechanism", [Laplace, Gaussian])
def test_draws_follow_the_quadrature(mechanism, case):
    assert stats.kstest(draw(mechanism, *case, 1), quadrature_cdf(mechanism, *case)).pvalue > GATE


@pytest.mark.parametrize("case", CASES[:-1])  # the last noise is so vague that its scale hardly matters
@pytest.mark.parametrize("mechanism", [Laplace, Gaussian])
def test_a_wrong_noise_scale_is_noticed(mechanism, case):
    value, mean, scale, noise_scale = case
    wrong = draw(mechanism, value, mean, scale, 1.2 * noise_scale, 1)
    assert stats.kstest(wrong, quadrature_cdf(mechanism, *case)).pvalue < GATE


@pytest.mark.x64
@pytest.mark.parametrize("noise_scale", [1e-6, 1e6])
@pytest.mark.parametrize("mechanism", [Laplace, Gaussian])
def test_limits_of_no_noise_and_of_no_information(mechanism, noise_scale):
    """Sharp noise pins the statistic to the value; vague noise leaves N(mean, scale²)."""
    draws = draw(mechanism, 2.0, -1.0, 3.0, noise_scale, 2)
    if noise_scale < 1:
        assert np.abs(draws - 2.0).max() < 30 * noise_scale
    else:
        assert stats.kstest(draws, stats.norm(-1.0, 3.0).cdf).pvalue > GATE


def test_the_joint_law_is_kept():
    """y ~ N(1, 2²), z | y, then y' | z: y' has the law of y, and z - y' that of the noise."""
    keys = jax.random.split(jax.random.key(3), 3)
    for mechanism, noise_law in ((Laplace, stats.laplace), (Gaussian, stats.norm)):
        statistic = 1.0 + 2.0 * jax.random.normal(keys[0], (NUM_DRAWS,))
        value = mechanism(1.5).sample(keys[1], statistic)
        redrawn = sample_latent(mechanism(1.5), keys[2], value, 1.0, 2.0)
        assert stats.kstest(redrawn, stats.norm(1.0, 2.0).cdf).pvalue > GATE
        assert stats.kstest(value - redrawn, noise_law(scale=1.5).cdf).pvalue > GATE
        stale = sample_latent(mechanism(1.5), keys[2], value, 1.0, 1.0)
        assert stats.kstest(value - stale, noise_law(scale=1.5).cdf).pvalue < GATE


def test_arrays_broadcast_and_float32_stays_float32():
    value = jnp.array([[-1e3, 0.0, 2.0], [3.0, 50.0, 1e3]], jnp.float32)
    mean, scale = jnp.zeros((1, 3), jnp.float32), jnp.full((2, 1), 2.0, jnp.float32)
    for mechanism in (Laplace(0.002), Gaussian(0.002)):
        draws = sample_latent(mechanism, jax.random.key(4), value, mean, scale)
        assert draws.shape == (2, 3)
        assert draws.dtype == jnp.float32
        np.testing.assert_allclose(draws, value, rtol=1e-5, atol=0.06)
