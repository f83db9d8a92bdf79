"""Smoothed histograms: their promise, their density and their draws."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import dpjax
from tests.conftest import FLOAT32

EPSILON = 2.0


ROUNDING = 1e-4 if FLOAT32 else 1e-9


@pytest.mark.parametrize(("num_bins", "n", "num_draws"), [(10, 50, 5), (4, 100, 20)])
def test_the_smoothed_histogram_keeps_its_promise(num_bins: int, n: int, num_draws: int) -> None:
    mechanism = dpjax.SmoothedHistogram(dpjax.mechanisms.smoothing_weight(EPSILON, num_draws, num_bins, n), num_draws)
    counts = np.zeros(num_bins)
    counts[1] = n
    neighbour = counts.copy()
    neighbour[:2] = (1, n - 1)
    worst = jnp.full(num_draws, 0.5 / num_bins)  # every draw falls where one record moved
    before, after = (mechanism.log_density(worst, jnp.asarray(table, float)) for table in (counts, neighbour))
    assert 0.9 * EPSILON <= float(after - before) <= EPSILON + ROUNDING


def test_the_smoothed_histogram_is_a_density_that_its_samples_follow() -> None:
    counts = jnp.array([3.0, 0.0, 5.0, 2.0])
    mechanism = dpjax.SmoothedHistogram(0.3, 1)
    grid = jnp.linspace(0.0005, 0.9995, 1_000)
    heights = np.exp(np.asarray(jax.vmap(lambda point: mechanism.log_density(point[None], counts))(grid), float))
    assert np.mean(heights) == pytest.approx(1.0, rel=1e-5)
    assert mechanism.log_density(jnp.array([1.2]), counts) == -jnp.inf
    drawn = dpjax.SmoothedHistogram(0.3, 5_000).sample(jax.random.key(1), counts)
    observed = np.histogram(drawn, 4, (0, 1))[0]
    expected = heights.reshape(4, -1).mean(axis=1) / 4
    assert stats.chisquare(observed, 5_000 * expected / expected.sum()).pvalue > 1e-4
