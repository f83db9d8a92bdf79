"""The value of each statistic against the same sums written in numpy, and the order of its entries."""

import dataclasses

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dpjax import statistics

TOLERANCE = 1e-5 if jnp.result_type(float) == jnp.float32 else 1e-12
GENERATOR = np.random.default_rng(20)
N = 50


def total_of(statistic, records):
    """The sum over records [d]."""
    return np.asarray(jax.vmap(statistic, out_axes=1)(jax.tree.map(jnp.asarray, records)).sum(axis=1))


def assert_close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=TOLERANCE, atol=TOLERANCE * N)


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


def test_cells_are_contingency_tables_in_c_order():
    records = {"a": GENERATOR.integers(0, 2, N), "b": GENERATOR.integers(0, 3, N), "c": GENERATOR.integers(0, 4, N)}
    assert_close(total_of(statistics.cells("c", 4), records), np.bincount(records["c"], minlength=4))
    table = np.zeros((2, 3, 4))
    np.add.at(table, tuple(records.values()), 1)
    assert_close(total_of(statistics.cells(["a", "b", "c"], [2, 3, 4]), records), table.ravel())


@pytest.mark.parametrize("record", [{"a": -1, "b": 1}, {"a": 0, "b": 3}, {"a": 2, "b": 0}])
def test_categories_outside_the_table_count_nowhere(record):
    value = statistics.cells(["a", "b"], [2, 3])(jax.tree.map(jnp.asarray, record))
    assert_close(value, np.zeros(6))


def test_histogram_keeps_outer_values_in_the_end_bins():
    value = np.array([-5.0, 0.0, 0.5, 1.0, 1.9, 2.0, 3.9, 4.0, 40.0])
    assert_close(total_of(statistics.histogram("y", [0, 1, 2, 4]), {"y": value}), [3, 2, 4])
    inside = GENERATOR.uniform(0, 4, N)
    counts = np.histogram(inside, [0, 1, 2, 4])[0]
    assert_close(total_of(statistics.histogram("y", [0, 1, 2, 4]), {"y": inside}), counts)


def test_class_features_are_ordered_feature_level_class():
    num_classes, num_features, num_levels = 2, 3, 4
    labels, features = GENERATOR.integers(0, num_classes, N), GENERATOR.integers(0, num_levels, (N, num_features))
    counts = np.zeros((num_features, num_levels, num_classes))
    for label, levels in zip(labels, features, strict=True):
        for feature, level in enumerate(levels):
            counts[feature, level, label] += 1
    statistic = statistics.class_features(num_classes, num_features, num_levels)
    assert_close(total_of(statistic, {"class": labels, "features": features}), counts.ravel())


def test_log_composition():
    share = GENERATOR.dirichlet([0.2, 1, 3], N)
    statistic = statistics.log_composition("share", 0.01)
    assert_close(total_of(statistic, {"share": share}), np.log(np.maximum(share, 0.01)).sum(0))


def test_scaled_and_stacked_take_functions_too():
    records = {"y": GENERATOR.normal(size=N)}
    square = statistics.scaled(lambda record: record["y"][None] ** 2, 0.5)
    joined = statistics.stacked(statistics.total("y", -1, 1), square)
    y = records["y"]
    assert_close(total_of(joined, records), [y.clip(-1, 1).sum(), 0.5 * (y**2).sum()])


STATISTICS = {
    "gram": (lambda: statistics.gram([-1, 0], [1, 2], (0, 3)), {"x": jnp.array([0.3, 1.0]), "y": jnp.array(2.0)}),
    "gram_without_response": (lambda: statistics.gram([-1, 0], [1, 2]), {"x": jnp.array([0.3, 1.0])}),
    "total": (lambda: statistics.total("y", [0, 0], [1, 2]), {"y": jnp.array([0.1, 0.2])}),
    "mean": (lambda: statistics.mean("y", 9, 0, 1), {"y": jnp.array(0.1)}),
    "cells": (lambda: statistics.cells(["a", "b"], [2, 3]), {"a": jnp.array(1), "b": jnp.array(2)}),
    "histogram": (lambda: statistics.histogram("y", [0, 1, 2, 4]), {"y": jnp.array(0.1)}),
    "grouped": (lambda: statistics.grouped("a", np.array([1, 0, -1])), {"a": jnp.array(1)}),
    "class_features": (lambda: statistics.class_features(2, 1, 3), {"class": jnp.array(1), "features": jnp.array([2])}),
    "log_composition": (
        lambda: statistics.log_composition("share", 0.1, dimension=2),
        {"share": jnp.array([0.4, 0.6])},
    ),
    "stacked": (
        lambda: statistics.stacked(statistics.total("y", 0, 1), statistics.histogram("y", [0, 1, 2])),
        {"y": jnp.array(0.1)},
    ),
}


@pytest.mark.parametrize(("build", "record"), STATISTICS.values(), ids=STATISTICS)
def test_every_statistic_is_a_hashable_value_with_its_dimension(build, record):
    statistic, twin = build(), build()
    assert statistic is not twin
    assert (statistic, hash(statistic)) == (twin, hash(twin))
    value = statistic(record)
    assert (value.shape, value.dtype) == ((statistic.dimension,), jnp.result_type(float))
    with pytest.raises(dataclasses.FrozenInstanceError):
        statistic.field = "z"


def test_equal_statistics_share_one_compiled_program():
    @chex.assert_max_traces(1)
    def contribute(record, statistic):
        return statistic(record)

    compiled = jax.jit(contribute, static_argnums=1)
    for _ in range(3):
        compiled({"y": jnp.array(0.5)}, statistics.scaled(statistics.histogram("y", [0, 1, 2]), 0.1))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_clipped_function_that_is_not_finite_adds_nothing(value):
    """The infinite over its infinite length would be no number."""
    half = statistics.clipped(lambda record: record["x"], 2.0)
    assert half({"x": jnp.array([value, 1.0])}).tolist() == [0, 0]
