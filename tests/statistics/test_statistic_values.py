"""Statistics are values: hashable, with a dimension, and one program for equal ones."""

import dataclasses

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dpjax import statistics

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
