"""Sums over many records, and matrix products by them, against NumPy in float64."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import dpjax
from dpjax.numerics.arrays import PIECE
from dpjax.numerics.linear_algebra import cross_products, normal_log_density, solve_lower
from dpjax.numerics.sums import MAX_BLOCK, MAX_ROWS, sum_each, sum_records
from dpjax.release.summed import finite_total

SIZES = (0, 1, 7, MAX_BLOCK, MAX_BLOCK + 1, 997, 1000, 10_007)


def tolerance() -> float:
    return 1e-12 if jax.config.jax_enable_x64 else 1e-5


@pytest.mark.parametrize("size", SIZES)
def test_sums_of_rows(size: int) -> None:
    rows = np.random.default_rng(size).normal(size=(5, size))
    found = jax.jit(sum_each)(jnp.asarray(rows, float))
    np.testing.assert_allclose(found, rows.sum(axis=1), atol=tolerance() * max(1, np.abs(rows).sum()))


def test_sums_of_rows_side_by_side() -> None:
    rows = np.random.default_rng(0).normal(size=(3, 5, 200))
    found = jax.jit(jax.vmap(sum_each))(jnp.asarray(rows, float))
    np.testing.assert_allclose(found, rows.sum(axis=2), atol=200 * tolerance())


@pytest.mark.parametrize("num_rows", [MAX_ROWS, MAX_ROWS + 1])
def test_few_rows_and_many_have_sums_and_gradients(num_rows: int) -> None:
    rows = jnp.asarray(np.random.default_rng(1).normal(size=(num_rows, 130)), float)
    weights = jnp.arange(num_rows, dtype=rows.dtype)
    value, gradient = jax.jit(jax.value_and_grad(lambda rows: weights @ sum_each(rows)))(rows)
    np.testing.assert_allclose(value, np.arange(num_rows) @ np.asarray(rows, np.float64).sum(axis=1), rtol=1e-4)
    np.testing.assert_array_equal(gradient, np.broadcast_to(np.arange(num_rows)[:, None], rows.shape))


def test_constant_rows_do_not_drift() -> None:
    """A float32 added to itself 65,536 times in a row loses 2e-4 of the sum; sums of blocks lose 1e-6."""
    size = PIECE
    total = jax.jit(sum_each)(jnp.full((2, size), np.float32(1 / 3)))
    np.testing.assert_allclose(total, size * np.float64(np.float32(1 / 3)), rtol=2e-6)


def test_records_of_several_pieces() -> None:
    values = np.random.default_rng(2).random(2 * PIECE + 3)
    total = jax.jit(lambda records: sum_records(lambda part: (part["y"], part["y"] ** 2), records))(
        {"y": jnp.asarray(values, float)}
    )
    np.testing.assert_allclose(total, [values.sum(), (values**2).sum()], rtol=1e-10 if tolerance() < 1e-10 else 1e-5)


@pytest.mark.parametrize("size", [3, 20])
def test_cross_products(size: int) -> None:
    """Of few rows in one loop, and of more of them as a matrix product."""
    rng = np.random.default_rng(3)
    left, right = rng.normal(size=(size, 300)), rng.normal(size=(size - 1, 300))
    found = jax.jit(cross_products)(jnp.asarray(left, float), jnp.asarray(right, float))
    np.testing.assert_allclose(found, left @ right.T, atol=300 * tolerance())


@pytest.mark.parametrize(("size", "columns"), [(3, 100), (4, 64), (5, 100), (3, 10)])
def test_triangular_systems(size: int, columns: int) -> None:
    """Few rows and many columns by forward substitution, others by LAPACK; upper entries are not read."""
    rng = np.random.default_rng(4)
    factor = np.tril(rng.normal(size=(size, size)), -1) + np.diag(1 + rng.random(size))
    right = rng.normal(size=(size, columns))
    given = jnp.asarray(factor + np.triu(np.ones((size, size)), 1), float)
    found = jax.jit(solve_lower)(given, jnp.asarray(right, float))
    np.testing.assert_allclose(found, np.linalg.solve(factor, right), atol=100 * tolerance())


def test_the_normal_density_is_normalised() -> None:
    """Ratios of updates given the same records never see its constant; those of two chains do."""
    rng = np.random.default_rng(5)
    root, linear, value = rng.normal(size=(3, 3)), rng.normal(size=3), rng.normal(size=3)
    precision = root @ root.T + np.eye(3)
    covariance = np.linalg.inv(precision)
    found = jax.jit(normal_log_density)(*(jnp.asarray(part, float) for part in (value, precision, linear)))
    np.testing.assert_allclose(
        found, stats.multivariate_normal(covariance @ linear, covariance).logpdf(value), rtol=1e-5
    )


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("num_cells", [3, MAX_ROWS + 1])
def test_a_record_that_is_not_finite_is_found_where_the_statistic_hides_it(bad: float, num_cells: int) -> None:
    """Comparisons leave NaN out, and clamping hides infinities, in sums of few rows and of many."""
    edges = np.linspace(0, 1, num_cells + 1)

    def count(record: dict[str, jax.Array]) -> jax.Array:
        inside = (record["x"][0] >= edges[:-1]) & (record["x"][0] < edges[1:])
        return jnp.append(inside[:-1].astype(float), jnp.clip(jnp.nan_to_num(record["y"]), 0, 1))

    release = dpjax.Release(np.ones(num_cells), dpjax.Laplace(1.0), count, n=200)
    records = {"x": np.full((200, 2), 0.5), "y": np.full(200, 0.5), "kind": np.arange(200)}
    total_of = jax.jit(partial(finite_total, release))
    total, fine = total_of(jax.tree.map(jnp.asarray, records))
    assert fine
    np.testing.assert_allclose(total, release.total(records), rtol=1e-6)
    for field, place in (("x", (199, 1)), ("y", 17)):
        broken = {name: values.copy() for name, values in records.items()}
        broken[field][place] = bad
        total, fine = total_of(jax.tree.map(jnp.asarray, broken))
        assert not fine
        assert np.isfinite(total).all()
