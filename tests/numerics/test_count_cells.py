"""Cells and quantiles of counts with a distribution each, against SciPy's, from tiny to huge parameters."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from dpjax.numerics.count_cells import binomial_cells, negative_binomial_cells, poisson_cells
from dpjax.numerics.count_tables import UNREACHED
from tests.conftest import FLOAT32

TOLERANCE = 2e-6 if FLOAT32 else 1e-11
RELATIVE = 1e-4 if FLOAT32 else 1e-10
SCORES = np.linspace(-4.2, 4.2, 23)

# SciPy's own functions lose digits at 10⁹, and where a share that is nearly 1 is rounded.
LAWS: dict[str, tuple[Any, Any, np.ndarray]] = {
    "Poisson": (
        lambda mean: poisson_cells(mean),
        lambda mean: stats.poisson(mean),
        np.array([[1e-8], [0.3], [7.0], [33.0], [79.0], [81.0], [140.0], [1e3], [1.25e6]]),
    ),
    "negative binomial": (
        lambda mean, size: negative_binomial_cells(mean, size),
        lambda mean, size: stats.nbinom(size, size / (mean + size)),
        np.array([[3, 2], [3, 2**-10], [40, 0.0625], [1e4, 0.5], [200, 300], [1e3, 5], [2**20, 64], [2**20, 2**20]]),
    ),
    "binomial": (
        lambda number, share: binomial_cells(number.astype(int), share),
        lambda number, share: stats.binom(number, share),
        np.array([[0, 0.25], [1, 0.5], [31, 0.75], [35, 0.9375], [60, 0.96875], [100, 0.125], [1e3, 0.5], [1e6, 0.25]]),
    ),
}
family = pytest.mark.parametrize("name", LAWS)


@family
def test_cells_and_quantiles_are_those_of_scipy(name: str) -> None:
    """Cells tile, their ends are SciPy's also far below, and each count lies where its own cell is."""
    build, scipys, parameters = LAWS[name]
    exact = scipys(*np.asarray(jnp.asarray(parameters, float), np.float64).T[..., None])
    uniforms = stats.norm.cdf(SCORES)
    counts = np.clip(exact.ppf(np.broadcast_to(uniforms, (len(parameters), len(uniforms)))), 0, None).astype(int)
    columns = jnp.broadcast_to(jnp.asarray(parameters, float).T[..., None], (parameters.shape[1], *counts.shape))

    @jax.jit
    def compute(uniforms: jax.Array, counts: jax.Array, columns: jax.Array) -> tuple:
        law = build(*columns)
        lower, upper = law.edges(counts)
        return law.counts_at(uniforms), lower, upper, law.edges(counts + 1)[0], law.counts_at((lower + upper) / 2)

    given = jnp.broadcast_to(jnp.asarray(uniforms, float), counts.shape)
    found, lower, upper, following, back = map(np.asarray, compute(given, jnp.asarray(counts), columns))
    np.testing.assert_allclose(lower, exact.cdf(counts - 1), rtol=RELATIVE, atol=TOLERANCE * 1e-3 + 1e-30)
    np.testing.assert_allclose(upper, exact.cdf(counts), rtol=RELATIVE, atol=1e-30)
    np.testing.assert_allclose(upper, following, rtol=4 * np.finfo(upper.dtype).eps)
    wide = upper - lower > 16 * np.finfo(upper.dtype).eps
    np.testing.assert_array_equal(np.where(wide, back, counts), counts)
    rounded = np.asarray(given, np.float64)
    assert np.all(exact.cdf(found - 1) <= rounded + TOLERANCE)
    assert np.all(rounded < exact.cdf(found) + TOLERANCE)


def test_far_below_the_mean_cells_keep_their_digits() -> None:
    """Prior and data in conflict: 20 events where 90 are expected have a probability of 1e-19."""
    counts, means = jnp.array([0, 20, 31, 32, 40]), jnp.full(5, 90.0)
    upper = jax.jit(lambda counts: poisson_cells(means).edges(counts)[1])(counts)
    np.testing.assert_allclose(upper[1:], stats.poisson(90.0).cdf(np.asarray(counts))[1:], rtol=3e-5)


def test_the_ends_of_the_uniforms() -> None:
    """0 gives the least count of positive probability, and 1 the largest that floats tell apart."""
    law = binomial_cells(jnp.array([5, 5, 40]), jnp.array([0.0, 1.0, 0.5]))
    np.testing.assert_array_equal(law.counts_at(jnp.array([1.0, 0.5, 0.0])), [0, 5, 0])
    assert poisson_cells(jnp.array([7.0])).counts_at(jnp.array([1.0]))[0] < 60


@pytest.mark.parametrize("mean", [np.nan, np.inf, -1.0, 1e12])
def test_means_of_no_integer_are_not_reached(mean: float) -> None:
    law = poisson_cells(jnp.array([3.0, mean]))
    np.testing.assert_array_equal(law.counts_at(jnp.full(2, 0.4)) == UNREACHED, [False, True])
