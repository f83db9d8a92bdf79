"""Sensitivities against a search over pairs of records: never exceeded, and reached where they are exact."""

import functools
import itertools
import math

import jax.numpy as jnp
import numpy as np
import pytest
from jax import jit, vmap

import dpjax
from dpjax import statistics

GRID = np.linspace(0, 1, 25)


def simplex(point):
    """The composition whose parts are in the proportions of a point of the cube."""
    return {"share": (point + 1e-9) / jnp.sum(point + 1e-9)}


def gram_record(point):
    return {"x": 20 * point[:-1] - 10, "y": 20 * point[-1] - 10}


def category(values, size):
    """A category from a number in [0, 1]."""
    return jnp.minimum(values * size, size - 1).astype(int)


# statistic, dimension of the cube, its point as a record, whether the sensitivities are claimed to be exact
CASES = {
    "gram_1": (statistics.gram([-10], [10], (-10, 10)), 2, gram_record, True),
    "gram_2": (statistics.gram([-10] * 2, [10] * 2, (-10, 10)), 3, gram_record, True),
    "gram_3": (statistics.gram([-10] * 3, [10] * 3, (-10, 10)), 4, gram_record, True),
    "gram_4_no_response": (statistics.gram([-10] * 4, [10] * 4), 4, lambda point: {"x": 20 * point - 10}, True),
    "gram_1_no_response": (statistics.gram([-10], [10]), 1, lambda point: {"x": 20 * point - 10}, True),
    "total": (statistics.total("y", [-1, 0], [2, 3]), 2, lambda point: {"y": 10 * point - 5}, True),
    "mean": (statistics.mean("y", 8, -1, 0.5), 1, lambda point: {"y": 10 * point[0] - 5}, True),
    "cells": (statistics.cells("a", 3), 1, lambda point: {"a": category(point[0], 3)}, True),
    "table": (
        statistics.cells(["a", "b"], [2, 3]),
        2,
        lambda point: {"a": category(point[0], 2), "b": category(point[1], 3)},
        True,
    ),
    "histogram": (statistics.histogram("y", [0, 1, 2, 4]), 1, lambda point: {"y": 10 * point[0] - 5}, True),
    "grouped": (statistics.grouped("a", [0, -1, 1, 1]), 1, lambda point: {"a": category(point[0], 4)}, True),
    "one_group": (statistics.grouped("a", [0, -1, 0]), 1, lambda point: {"a": category(point[0], 3)}, True),
    "class_features": (
        statistics.class_features(2, 3, 2),
        4,
        lambda point: {"class": category(point[0], 2), "features": category(point[1:], 2)},
        True,
    ),
    "log_composition_2": (statistics.log_composition("share", 0.1, dimension=2), 2, simplex, True),
    "log_composition_3": (statistics.log_composition("share", 0.01, dimension=3), 3, simplex, True),
    "log_composition_5": (statistics.log_composition("share", 0.001, dimension=5), 5, simplex, True),
    "log_composition_loose": (statistics.log_composition("share", 0.12, dimension=5), 5, simplex, False),
    "separate_fields": (
        statistics.stacked(statistics.total("y", -1, 2), statistics.cells("a", 3)),
        2,
        lambda point: {"y": 10 * point[0] - 5, "a": category(point[1], 3)},
        True,
    ),
    "clipped": (
        statistics.clipped(lambda record: 9 * record["x"] - 4.5, 2.0, dimension=2),
        2,
        lambda point: {"x": point},
        False,
    ),
    "one_field_twice": (
        statistics.stacked(statistics.total("y", 0, 1), statistics.histogram("y", [0, 1, 2])),
        1,
        lambda point: {"y": 4 * point[0] - 1},
        False,
    ),
}


def search(statistic, size, as_record, norm, *, paired):
    """The largest distance found: every corner, then ascent along each coordinate over a grid."""

    def distance(points):
        first = statistic(as_record(points[:size]))
        second = statistic(as_record(points[size:])) if paired else jnp.zeros_like(first)
        return jnp.sum(jnp.abs(first - second) ** norm) ** (1 / norm)

    evaluate = jit(vmap(distance))
    length = size * (1 + paired)
    corners = np.array(list(itertools.product([0.0, 1.0], repeat=length)))
    starts = np.concatenate([corners, np.random.default_rng(5).uniform(size=(64, length))])
    order = np.argsort(np.asarray(evaluate(jnp.asarray(starts))))
    best = starts[np.concatenate([order[-32:], order[:: max(len(order) // 32, 1)][:32]])]
    for coordinate in [*range(length)] * 3:
        tried = np.repeat(best[:, None], len(GRID), axis=1)
        tried[:, :, coordinate] = GRID
        found = np.asarray(evaluate(jnp.asarray(tried.reshape(-1, length)))).reshape(len(best), -1)
        best = tried[np.arange(len(best)), found.argmax(1)]
    return found.max()


@pytest.mark.x32
@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("neighbours", ["replace-one", "add-or-remove"])
@pytest.mark.parametrize(("statistic", "size", "as_record", "exact"), CASES.values(), ids=CASES)
def test_no_records_exceed_the_sensitivity(statistic, size, as_record, exact, neighbours, norm):
    found = search(statistic, size, as_record, norm, paired=neighbours == "replace-one")
    claimed = statistic.sensitivity(norm, neighbours)
    assert found <= claimed * (1 + 1e-5)
    assert not exact or found >= 0.99 * claimed


@pytest.mark.parametrize(("statistic", "size", "as_record", "exact"), CASES.values(), ids=CASES)
def test_contributions_are_covered(statistic, size, as_record, exact):
    points = np.random.default_rng(3).uniform(size=(200, size))
    rows = np.asarray(jit(vmap(lambda point: statistic(as_record(point))))(jnp.asarray(points)), float)
    assert np.all(statistic.covers(rows, 50 * float(jnp.finfo(jnp.result_type(float)).eps)))
    assert not np.any(statistic.covers(np.stack([np.full(rows.shape[1], np.nan), 1e3 + rows[0]]), 1e-6))


def test_the_search_rejects_a_sensitivity_that_ignores_interior_records():
    statistic, size, as_record, _ = CASES["gram_2"]
    corners_only = 9.0
    assert search(statistic, size, as_record, 1, paired=True) > corners_only * 1.01


def test_known_values():
    gram = statistics.gram([-10, -10], [10, 10], response=(-10, 10))
    assert gram.sensitivity(1, "replace-one") == 9.375
    assert gram.sensitivity(1, "add-or-remove") == 9
    assert statistics.cells("a", 4).sensitivity(2, "replace-one") == pytest.approx(math.sqrt(2))
    naive_bayes = statistics.class_features(2, 5, 3)
    assert naive_bayes.sensitivity(1, "replace-one") == 10
    half = statistics.scaled(naive_bayes, -0.5)
    assert half.sensitivity(1, "replace-one") == 5


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: statistics.total("y").sensitivity(1, "replace-one"), "lower, upper"),
        (lambda: statistics.total("y", lower=0).sensitivity(1, "replace-one"), "lower, upper"),
        (lambda: statistics.mean("y", 3).sensitivity(2, "add-or-remove"), "lower, upper"),
        (lambda: statistics.log_composition("share", 0.1).sensitivity(1, "replace-one"), "dimension"),
        (lambda: statistics.total("y", 0, 1).sensitivity(3, "replace-one"), "norm"),
        (lambda: statistics.total("y", 0, 1).sensitivity(1, "bounded"), "neighbours"),
    ],
)
def test_no_sensitivity_is_invented(call, message):
    with pytest.raises(ValueError, match=f"^{message}: given .*; expected "):
        call()


def test_a_function_has_no_sensitivity():
    of_function = statistics.scaled(functools.partial(jnp.add, 1.0), 2.0)
    assert of_function.dimension is None
    with pytest.raises(TypeError, match="derive that of a function by hand"):
        of_function.sensitivity(1, "replace-one")


def test_a_gram_is_given_back_in_the_units_of_its_fields() -> None:
    """Products of fields within their bounds, with and without a response."""
    rng = np.random.default_rng(4)
    x, y = rng.uniform([-1.0, 2.0], [3.0, 9.0], (7, 2)), rng.uniform(0.0, 5.0, 7)
    for response, columns in ((None, [np.ones(7), *x.T]), ((0.0, 5.0), [np.ones(7), *x.T, y])):
        statistic = statistics.gram(lower=[-1.0, 2.0], upper=[3.0, 9.0], response=response)
        released = vmap(statistic)({"x": jnp.asarray(x), "y": jnp.asarray(y)}).sum(axis=0)
        exact = np.column_stack(columns).T @ np.column_stack(columns)
        np.testing.assert_allclose(statistic.unscale(released, n=7), exact, rtol=1e-5)
    with pytest.raises(ValueError, match="value"):
        statistic.unscale([1.0, 2.0], n=7)


def test_a_count_is_one_for_each_record() -> None:
    statistic = statistics.count()
    assert float(statistic({"y": jnp.array(3.0)})[0]) == 1.0
    assert (statistic.diameter(1), statistic.radius(1), statistic.radius(2)) == (0.0, 1.0, 1.0)
    release = dpjax.Release([4.0], dpjax.Laplace(1.0), statistic, dpjax.UnknownCount(dpjax.models.UniformCount(1, 9)))
    assert dpjax.from_json(release.to_json()).statistic == statistic
