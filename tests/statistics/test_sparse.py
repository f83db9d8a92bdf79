"""Sparse contributions against dense ones, and statistics of very many cells."""

import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dpjax import statistics
from dpjax.statistics.base import is_sparse

GENERATOR = np.random.default_rng(3)
M = 40
# Some categories and levels lie outside the tables.
RECORDS = {
    "a": jnp.asarray(GENERATOR.integers(-1, 4, M)),
    "b": jnp.asarray(GENERATOR.integers(0, 2, M)),
    "y": jnp.asarray(GENERATOR.normal(size=M)),
    "class": jnp.asarray(GENERATOR.integers(-1, 3, M)),
    "features": jnp.asarray(GENERATOR.integers(-1, 4, (M, 3))),
}
CELLS, GROUPED = statistics.cells(["a", "b"], [3, 2]), statistics.grouped("a", [1, -1, 1], 4)
SPARSE = {
    "cells": CELLS,
    "histogram": statistics.histogram("y", [-1.0, 0.0, 0.5, 1.0]),
    "grouped": GROUPED,
    "class_features": statistics.class_features(2, 3, 3),
    "scaled": statistics.scaled(GROUPED, -0.5),
    "stacked": statistics.stacked(CELLS, statistics.scaled(GROUPED, 2.0), statistics.class_features(2, 3, 3)),
    "stacks": statistics.stacked(statistics.stacked(GROUPED, CELLS), CELLS),
    "many": statistics.stacked(*[GROUPED, CELLS] * 150),
}
TOTAL = statistics.total("y", -1, 1)


@pytest.mark.parametrize("name", SPARSE)
def test_sparse_contributions_are_the_dense_ones(name):
    statistic = SPARSE[name]
    assert is_sparse(statistic)
    index, weight = jax.jit(statistic.sparse)(RECORDS)
    assert index.shape == weight.shape == (M, index.shape[1])
    assert jnp.issubdtype(index.dtype, jnp.integer)
    dense = np.zeros((M, statistic.dimension + 1))  # padding falls into the spare last place
    np.add.at(dense, (np.arange(M)[:, None], np.asarray(index)), np.asarray(weight))
    np.testing.assert_array_equal(dense[:, :-1], jax.jit(jax.vmap(statistic))(RECORDS))


@pytest.mark.parametrize(
    "statistic",
    [
        TOTAL,
        statistics.scaled(TOTAL, 2.0),
        statistics.stacked(CELLS, TOTAL),
        statistics.stacked(lambda record: 1, CELLS),
    ],
    ids=["total", "scaled", "stacked", "function"],
)
def test_dense_statistics_do_not_claim_to_be_sparse(statistic):
    assert not is_sparse(statistic)


def test_grouped_adds_the_cells_of_each_group():
    groups = np.array([2, -1, 0, 2, 0])
    category = GENERATOR.integers(0, 5, M)
    counts = jax.vmap(statistics.grouped("a", groups))({"a": jnp.asarray(category)}).sum(axis=0)
    np.testing.assert_array_equal(counts, [np.sum(groups[category] == group) for group in range(3)])


@pytest.mark.parametrize("category", [-1, 3, 7])
def test_categories_without_a_group_count_nowhere(category):
    record = {"a": jnp.array(category)}
    np.testing.assert_array_equal(statistics.grouped("a", [0, 1, 0])(record), [0, 0])


def test_as_many_categories_as_there_are_cells_of_a_county():
    groups = GENERATOR.integers(0, 100_000, 100_000)
    statistic, twin = (statistics.stacked(statistics.grouped("a", groups, 100_000), GROUPED) for _ in range(2))
    assert statistic == twin
    assert hash(statistic) == hash(twin)
    index, _ = jax.jit(statistic.sparse)({"a": jnp.array([7, 99_999])})
    np.testing.assert_array_equal(index[:, 0], groups[[7, 99_999]])
    start = time.perf_counter()
    for _ in range(1_000):
        hash(statistic)
    assert time.perf_counter() - start < 0.5  # taken afresh each time it would be a second or more
    assert len(repr(statistic)) < 500
