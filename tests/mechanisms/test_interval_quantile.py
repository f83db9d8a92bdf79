"""Quantiles drawn from the intervals between sorted values: mass, draws, and the error of bins."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from dpjax.mechanisms import IntervalQuantile


def smith_density(records: np.ndarray, points: np.ndarray, alpha: float, rate: float) -> np.ndarray:
    """The log-density of the interval and a uniform point of it, by the order statistics themselves."""
    edges = np.concatenate([[0.0], np.sort(records), [1.0]])
    utility = -np.abs(np.arange(len(records) + 1) - alpha * len(records))
    total = np.sum(np.diff(edges) * np.exp(rate * utility))
    return rate * utility[np.searchsorted(np.sort(records), points)] - np.log(total)


MIDDLE = IntervalQuantile(0.4, 0.0, 1.0, epsilon=1.5)


def test_interval_quantile_is_normalised() -> None:
    for counts in ([0.0, 3, 0, 5, 1, 2], [4.0, 0, 0, 0, 0, 0], [2.0, 900, 0, 700, 0, 1]):
        points = (np.arange(40_000) + 0.5) / 40_000
        density = jax.vmap(MIDDLE.log_density, in_axes=(0, None))(jnp.asarray(points)[:, None], jnp.array(counts))
        np.testing.assert_allclose(np.exp(np.asarray(density, float)).mean(), 1.0, rtol=1e-3)


@pytest.mark.x32
def test_interval_quantile_draws() -> None:
    counts = jnp.array([1.0, 3, 0, 5, 1, 2])
    keys = jax.random.split(jax.random.key(5), 10_000)
    drawn = np.asarray(jax.vmap(MIDDLE.sample, in_axes=(0, None))(keys, counts))[:, 0]
    points = (jnp.arange(4_000.0) + 0.5) / 4_000
    density = np.exp(np.asarray(jax.vmap(MIDDLE.log_density, in_axes=(0, None))(points[:, None], counts), float))
    expected = np.add.reduceat(density, np.arange(0, 4_000, 100)) / 4_000
    counted = np.histogram(drawn, np.linspace(0, 1, 41))[0]
    assert stats.chisquare(counted, len(keys) * expected / expected.sum()).pvalue > 1e-4


@pytest.mark.parametrize("num_bins", [5, 20, 400])
def test_error_of_bins_is_bounded(num_bins: int) -> None:
    """The exact mechanism at the records, against that of the counts; finer bins are closer."""
    records = np.random.default_rng(4).beta(2.0, 3.0, size=30)
    points = np.linspace(0.05, 0.95, 19)
    exact = smith_density(records, points, 0.4, 0.75)
    counts = np.histogram(records, np.linspace(0, 1, num_bins + 1))[0]
    given = jnp.asarray(np.concatenate([[0], counts, [0]]), float)
    found = jax.vmap(MIDDLE.log_density, in_axes=(0, None))(jnp.asarray(points)[:, None], given)
    worst = np.max(np.abs(np.asarray(found) - exact))
    bound = float(MIDDLE.error_bound(given))
    assert worst < bound < 1.5 * counts.max() + 1e-6
    assert worst < {5: 3.0, 20: 1.0, 400: 0.8}[num_bins]
