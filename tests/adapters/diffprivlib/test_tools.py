"""Results of diffprivlib's tools, as record_diffprivlib.py wrote them, follow the density that their readers assign."""

import json
from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import dpjax
from dpjax.adapters import diffprivlib

FILED = json.loads(Path(__file__).with_name("diffprivlib.json").read_text())


X, CLASS = np.array(FILED["x"]), np.array(FILED["y"])


N = len(X)


SCORE = np.round(X[:, 0], 1)


RECORDS = {"score": jnp.asarray(SCORE), "class": jnp.asarray(CLASS), "counted": jnp.asarray(CLASS > 0, float)}


MIN_P, MAX_P = 1e-3, 1e-4
"""Probabilities above which the law passes, and below which a wrong one must lie."""


SCORES = {"bounds": (-1.0, 1.0), "field": "score", "n": N}


VISITS = {"bounds": (0, 2), "field": "class", "n": N, "integer": True}


COUNTED = dpjax.statistics.total("counted", 0, 1)


READERS: dict[str, Callable[[float, float], dpjax.Release]] = {
    "mean": lambda value, factor: diffprivlib.read_mean(value, epsilon=0.5 * factor, **SCORES),
    "sum": lambda value, factor: diffprivlib.read_sum(value, epsilon=0.5 * factor, **SCORES),
    "integer_sum": lambda value, factor: diffprivlib.read_sum(value, epsilon=0.5 * factor, **VISITS),
    "count": lambda value, factor: diffprivlib.read_count(value, COUNTED, epsilon=0.2 * factor, n=N),
    "var": lambda value, factor: diffprivlib.read_var(value, epsilon=0.5 * factor, **SCORES),
    "std": lambda value, factor: diffprivlib.read_std(value, epsilon=0.5 * factor, **SCORES),
    "quantile": lambda value, factor: diffprivlib.read_quantile(
        value, 0.3, epsilon=0.5 * factor, num_bins=400, **SCORES
    ),
}


def support_of(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Values [m] that a release can take, and the measure [m] of each: midpoints of cells, atoms and whole numbers."""
    if name in ("integer_sum", "count"):
        points = np.arange((2 if name == "integer_sum" else 1) * N + 1.0)
        return points, np.ones(points.size)
    if name in ("var", "std"):
        edges = np.linspace(0, 1, 4001)
        middle = (edges[1:] + edges[:-1]) / 2
        return middle, np.diff(edges)
    end = N if name == "sum" else 1
    edges = np.linspace(-end, end, 4001)
    inner = (edges[1:] + edges[:-1]) / 2
    atom = 0.0 if name == "quantile" else 1.0
    return np.r_[-end, inner, end], np.r_[atom, np.diff(edges), atom]


def randomised_ranks(name: str, factor: float) -> np.ndarray:
    """Where each recorded result lies in its assigned distribution: uniform on (0, 1) if that is right."""
    release = READERS[name](FILED[name][0], factor)
    points, measure = support_of(name)
    total = jnp.sum(jax.vmap(release.statistic)(RECORDS), axis=0)
    density = jax.jit(jax.vmap(lambda value: release.mechanism.log_density(value[None], total)))(jnp.asarray(points))
    mass = np.exp(np.asarray(density, float)) * measure
    np.testing.assert_allclose(mass.sum(), 1, atol=5e-3)
    ends = np.cumsum(mass)
    released = np.array(FILED[name]) ** (2 if name == "std" else 1)
    places = np.argmin(np.abs(released[:, None] - points), axis=1)
    return ends[places] - np.random.default_rng(1).random(places.size) * mass[places]


@pytest.mark.x32
@pytest.mark.parametrize("name", READERS)
def test_results_of_tools_follow_the_density(name):
    assert stats.kstest(randomised_ranks(name, 1.0), "uniform").pvalue > MIN_P


@pytest.mark.parametrize("name", READERS)
def test_results_of_tools_do_not_follow_that_of_another_budget(name):
    assert stats.kstest(randomised_ranks(name, 3.0), "uniform").pvalue < MAX_P


def test_counts_of_a_histogram_follow_the_density():
    """Each bin has all of ε, the last has its upper edge too, and class 2 is beyond."""
    drawn = np.array(FILED["histogram"])
    release = diffprivlib.read_histogram(drawn[0], [0.0, 0.5, 1.0], field="class", epsilon=0.2, n=N)
    total = np.asarray(jnp.sum(jax.vmap(release.statistic)(RECORDS), axis=0))
    np.testing.assert_array_equal(total, [np.sum(CLASS == 0), np.sum(CLASS == 1)])
    points = jnp.arange(120.0)
    terms = jax.vmap(lambda value: release.mechanism.log_density_terms(jnp.stack([value, value]), total))(points)
    mass = np.exp(np.asarray(terms, float))
    uniform = np.random.default_rng(2).random(drawn.shape)
    for place in range(2):
        ranks = np.cumsum(mass[:, place])[drawn[:, place]] - uniform[:, place] * mass[drawn[:, place], place]
        assert stats.kstest(ranks, "uniform").pvalue > MIN_P


def test_a_last_edge_at_zero_belongs_to_its_bin():
    """The number next to 0 counts as 0 itself on many processors."""
    release = diffprivlib.read_histogram([4, 9], [-2.0, -1.0, 0.0], field="y", epsilon=1.0, n=20)
    counted = jax.jit(jax.vmap(release.statistic))({"y": jnp.array([-2.0, -1.0, -0.5, 0.0, 1e-30])})
    assert counted.tolist() == [[1, 0], [0, 1], [0, 1], [0, 1], [0, 0]]
