"""Haar wavelets: their promise, their coefficients and their draws."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import dpjax
from tests.conftest import FLOAT32
from tests.mechanisms.losses import largest_loss

EPSILON = 2.0


ROUNDING = 1e-4 if FLOAT32 else 1e-9


@pytest.mark.x32
@pytest.mark.parametrize("resolution", [0, 2, 4])
@pytest.mark.parametrize("calibration", ["tight", "paper"])
def test_the_wavelet_channel_keeps_its_promise(resolution: int, calibration: str) -> None:
    channel = dpjax.HaarWavelet(dpjax.mechanisms.haar_scale(EPSILON, resolution, calibration), resolution)
    points = (np.arange(2 ** (resolution + 1)) + 0.5) / 2 ** (resolution + 1)
    # The loss is largest at released values that are the coefficients of some record.
    loss = largest_loss(channel, points, jax.vmap(channel.coefficients)(jnp.asarray(points)))
    assert loss <= EPSILON + ROUNDING
    if calibration == "tight":
        assert loss >= 0.9 * EPSILON
        half = dpjax.HaarWavelet(channel.scale / 1.2, resolution)
        assert largest_loss(half, points, jax.vmap(channel.coefficients)(jnp.asarray(points))) > EPSILON
    else:
        assert 5 < channel.scale / dpjax.mechanisms.haar_scale(EPSILON, resolution) < 21


def test_wavelet_coefficients_are_those_of_the_formula() -> None:
    channel = dpjax.HaarWavelet(1.0, 3)
    points = np.array([0.0, 0.03, 0.3, 0.49999, 0.5, 0.81, 0.999])

    def mother(x: float) -> float:
        return float(0 <= x < 0.5) - float(0.5 <= x < 1)

    for point in points:
        expected = [2 ** (j / 2) * mother(2**j * point - k) for j in range(4) for k in range(2**j)]
        np.testing.assert_allclose(channel.coefficients(jnp.asarray(point)), expected, rtol=1e-6)
    np.testing.assert_array_equal(channel.coefficients(jnp.asarray(7.0)), channel.coefficients(jnp.asarray(0.99)))


def test_wavelet_samples_follow_the_density() -> None:
    channel = dpjax.HaarWavelet(0.7, 2)
    keys = jax.random.split(jax.random.key(3), 4_000)
    released = np.asarray(jax.vmap(channel.sample, in_axes=(0, None))(keys, jnp.asarray(0.3)))
    noise = released - np.asarray(channel.coefficients(jnp.asarray(0.3)))
    assert released.shape == (4_000, channel.num_coefficients)
    assert min(stats.kstest(column, stats.laplace(scale=0.7).cdf).pvalue for column in noise.T) > 1e-4
