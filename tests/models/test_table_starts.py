"""Starts of log-linear models at the released tables, and the remark on tables that contradict each other."""

import warnings

import jax
import numpy as np
import pytest

import dpjax
from dpjax import models, statistics
from dpjax.numerics.elimination import margins

PEOPLE = {"a": 3, "b": 2, "c": 3, "d": 2}
MODEL = models.log_linear(PEOPLE, [("a", "b"), ("b", "c")])
FIRST, SECOND = np.array([[300.0, 20.0], [100, 200], [80, 300]]), np.array([[400.0, 60, 20], [120, 100, 300]])


def release_of(first: np.ndarray, second: np.ndarray, scale: float) -> dpjax.Release:
    """Two tables of 1,000 people, the second with its columns in the other order."""
    mechanism = dpjax.DiscreteGaussian(scale)
    one = dpjax.Release(first.ravel(), mechanism, statistics.cells(["a", "b"], [3, 2]), 1_000)
    return dpjax.joint(one, dpjax.Release(second.T.ravel(), mechanism, statistics.cells(["c", "b"], [3, 2]), 1_000))


def test_chains_start_at_the_tables_and_apart() -> None:
    """Also where tables disagree by their noise; what no table has starts at the prior."""
    starts = MODEL.first_parameters(jax.random.key(1), release_of(FIRST, SECOND, 5.0), 6)["effects"]
    for effects in starts:
        tables = margins(MODEL.plan, MODEL.weights({"effects": effects}))
        np.testing.assert_allclose(1_000 * np.asarray(tables[0]), FIRST, atol=40)
        np.testing.assert_allclose(1_000 * np.asarray(tables[1]), SECOND, atol=40)
    names = MODEL.entry_labels({})["effects"][0]
    assert np.std(starts[:, names.index("d.1")]) > 0.3
    assert np.all(np.std(starts, axis=0) > 0)


def test_noise_beyond_all_counts_leaves_starts_at_the_prior() -> None:
    """Effects of noise alone would be as large as the tables' logarithms."""
    rng = np.random.default_rng(2)
    first, second = (np.rint(rng.normal(0, 1e5, table.shape)) for table in (FIRST, SECOND))
    starts = MODEL.first_parameters(jax.random.key(1), release_of(first, second, 1e5), 2)["effects"]
    assert np.all(np.abs(starts) < 4)


def test_tables_that_contradict_each_other_are_named() -> None:
    """Beyond their noise alone: with more noise the same tables agree."""
    other = SECOND[::-1]
    with pytest.warns(UserWarning, match=r"\('a', 'b'\) and \('b', 'c'\) contradict .* the counts of \('b',\)"):
        MODEL.first_parameters(jax.random.key(1), release_of(FIRST, other, 5.0), 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MODEL.first_parameters(jax.random.key(1), release_of(FIRST, other, 50.0), 2)


def test_other_releases_have_no_tables_to_start_at() -> None:
    """Chains then start as of any other model."""
    statistic = statistics.stacked(statistics.cells("a", 3), lambda record: record["b"][None] * 1.0)
    release = dpjax.Release([5.0, 3, 2, 4], dpjax.Gaussian(2.0), statistic, 10)
    assert MODEL.first_parameters(jax.random.key(1), release, 2) is None
