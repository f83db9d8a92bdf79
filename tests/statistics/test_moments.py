"""Sums, means and products against the same in NumPy, and the order of their entries."""

import jax.numpy as jnp
import numpy as np
import pytest

from dpjax import statistics
from tests.statistics.sums import GENERATOR, N, assert_close, total_of


@pytest.mark.parametrize("num_covariates", [1, 2, 3])
def test_gram_is_the_matrix_product_of_rescaled_data(num_covariates):
    records = {"x": GENERATOR.normal(0, 4, (N, num_covariates)), "y": GENERATOR.normal(1, 4, N)}
    lower, upper = -np.arange(1.0, num_covariates + 1), np.arange(3.0, num_covariates + 3)
    statistic = statistics.gram(lower, upper, response=(-3, 5))
    x = 2 * (np.clip(records["x"], lower, upper) - lower) / (upper - lower) - 1
    y = 2 * (np.clip(records["y"], -3, 5) + 3) / 8 - 1
    design = np.column_stack([np.ones(N), x])
    triangle = (design.T @ design)[np.tril_indices(num_covariates + 1)][1:]
    assert_close(total_of(statistic, records), np.concatenate([design.T @ y, [y @ y], triangle]))
    assert_close(total_of(statistics.gram(lower, upper), records), triangle)


def test_gram_order_for_two_covariates():
    a, b, y = 0.5, -0.25, 0.75
    value = statistics.gram([-10, -10], [10, 10], response=(-10, 10))(
        {"x": jnp.array([5.0, -2.5]), "y": jnp.array(7.5)}
    )
    assert_close(value, [y, a * y, b * y, y * y, a, a * a, b, a * b, b * b])


def test_gram_order_for_three_covariates():
    a, b, c = 0.5, -0.25, 0.75
    value = statistics.gram([-1] * 3, [1] * 3)({"x": jnp.array([a, b, c])})
    assert_close(value, [a, a * a, b, a * b, b * b, c, a * c, b * c, c * c])


def test_total_and_mean():
    records = {"y": GENERATOR.normal(size=N), "z": GENERATOR.normal(size=(N, 3)), "k": GENERATOR.integers(0, 9, N)}
    y, z, k = records["y"], records["z"], records["k"]
    assert_close(total_of(statistics.total("y"), records), [y.sum()])
    assert_close(total_of(statistics.total("z"), records), z.sum(0))
    assert_close(total_of(statistics.total("k", 2, 5), records), [np.clip(k, 2, 5).sum()])
    assert_close(total_of(statistics.total("y", lower=0), records), [y.clip(0).sum()])
    assert_close(total_of(statistics.total("z", -1, 1, dimension=3), records), z.clip(-1, 1).sum(0))
    lower, upper = [-1, 0, -0.5], [1, 0.5, 2]
    assert_close(total_of(statistics.total("z", lower, upper), records), z.clip(lower, upper).sum(0))
    assert_close(total_of(statistics.mean("z", N, lower, upper), records), z.clip(lower, upper).mean(0))
