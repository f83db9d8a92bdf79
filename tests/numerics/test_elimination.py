"""Sums along a tree of tables: equal to sums over all combinations of levels, which NumPy makes without any tree."""

from itertools import product
from math import prod

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dpjax.numerics import elimination
from dpjax.numerics.elimination import (
    MOST_ENTRIES,
    cell_moments,
    draw_levels,
    log_normaliser,
    margins,
    plan_elimination,
    without_table,
)

GRAPHS = {
    "chain of 2³": ((2, 2, 2), ((0, 1), (1, 2))),
    "3 × 2 × 2 with one column apart": ((3, 2, 2), ((0, 2),)),
    "square": ((2, 3, 2, 3), ((0, 1), (1, 2), (2, 3), (0, 3))),
    "three-way and a triangle": ((2, 3, 2, 2, 3), ((0, 1, 3), (2, 4), (1, 2), (1, 4), (3,))),
}


def weights_of(sizes: tuple, tables: tuple, scale: float = 1.0) -> list:
    """Log-weights of tables, the same for each graph."""
    rng = np.random.default_rng(7)
    return [scale * rng.normal(size=[sizes[column] for column in table]) for table in tables]


def enumerated(sizes: tuple, tables: tuple, weights: list) -> tuple[float, np.ndarray, np.ndarray]:
    """log Z, the combinations of levels [c, K], and their probabilities [c]."""
    levels = np.array(list(product(*map(range, sizes))))
    logs = sum(weight[tuple(levels[:, list(table)].T)] for table, weight in zip(tables, weights, strict=True))
    return np.logaddexp.reduce(logs), levels, np.exp(logs - np.logaddexp.reduce(logs))


@pytest.mark.parametrize("name", GRAPHS)
def test_normaliser_margins_and_covariances_are_those_of_all_combinations(name: str) -> None:
    """Each number of the tree, in either float type: no other test computes these without the tree."""
    sizes, tables = GRAPHS[name]
    # A table of weights 0 over two columns that no other table holds together.
    tables = (*tables, (0, len(sizes) - 1))
    weights = weights_of(sizes, tables)
    weights[-1] = 0 * weights[-1]
    plan, arrays = plan_elimination(sizes, tables), [jnp.asarray(weight, float) for weight in weights]
    log_sum, levels, shares = enumerated(sizes, tables, weights)
    eps = float(jnp.finfo(jnp.result_type(float)).eps)
    close = {"rtol": 40 * eps, "atol": 8 * eps}
    np.testing.assert_allclose(log_normaliser(plan, arrays), log_sum, **close)
    cells = [
        np.ravel_multi_index(levels[:, list(table)].T, weight.shape)
        for table, weight in zip(tables, weights, strict=True)
    ]
    hot = [np.eye(weight.size)[cell] for cell, weight in zip(cells, weights, strict=True)]
    for found, indicators in zip(margins(plan, arrays), hot, strict=True):
        np.testing.assert_allclose(np.ravel(found), shares @ indicators, **close)
    of = (len(tables) - 1, 0)
    mean, covariance = cell_moments(plan, arrays, of)
    both = np.concatenate([hot[place] for place in of], axis=1)
    expected = shares @ both
    np.testing.assert_allclose(mean, expected, **close)
    np.testing.assert_allclose(covariance, (both.T * shares) @ both - np.outer(expected, expected), **close)


@pytest.mark.parametrize("name", ["square", "three-way and a triangle"])
def test_records_have_the_probabilities_of_all_combinations(name: str) -> None:
    """Draws in the opposite order: a row of a bucket that belongs to other levels shows in no sum of the tree."""
    sizes, tables = GRAPHS[name]
    weights, num = weights_of(sizes, tables), 40_000
    uniforms = jax.random.uniform(jax.random.key(3), (len(sizes), num), float)
    plan = plan_elimination(sizes, tables)
    levels = np.asarray(draw_levels(plan, [jnp.asarray(weight, float) for weight in weights], uniforms))
    _, _, shares = enumerated(sizes, tables, weights)
    counts = np.bincount(np.ravel_multi_index(levels, sizes), minlength=prod(sizes))
    z = (counts - num * shares) / np.sqrt(num * shares * (1 - shares))
    assert np.abs(z).max() < 4.5
    assert 0.6 < np.mean(z**2) < 1.5


@pytest.mark.parametrize("fault", ["a separator twice", "a message left out"])
def test_a_planted_fault_is_noticed(monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    """The square has messages over two columns: the comparison fails if one is counted twice or not at all."""
    sizes, tables = GRAPHS["square"]
    weights = weights_of(sizes, tables)
    true = elimination.log_sum
    factor = 2.0 if fault == "a separator twice" else 0.0
    monkeypatch.setattr(elimination, "log_sum", lambda table: true(table) * factor ** (table.ndim == 3))
    found = log_normaliser(plan_elimination(sizes, tables), [jnp.asarray(weight, float) for weight in weights])
    assert abs(float(found) - enumerated(sizes, tables, weights)[0]) > 0.1


def test_the_order_keeps_buckets_small_and_tells_the_cost_before_anything_is_computed() -> None:
    """A chain and a star need no table beyond their own, whatever the order of columns; a grid needs wide ones."""
    sizes = (10,) * 9
    star = plan_elimination(sizes, tuple((0, column) for column in range(1, 9)))
    chain = plan_elimination(sizes, tuple((column, column + 1) for column in range(8)))
    assert [plan.num_entries(plan.largest) for plan in (star, chain)] == [100, 100]
    every = plan_elimination(sizes, tuple((left, right) for left in range(9) for right in range(left + 1, 9)))
    assert every.num_entries(every.largest) == 10**9 > MOST_ENTRIES
    # One pair less lets two columns go one after the other, each beside the seven others.
    assert without_table(every) == (0, 10**8)
    assert without_table(chain) == (0, 100) or without_table(chain) is None


def test_extreme_weights_neither_overflow_nor_lose_the_margins() -> None:
    """Weights of ±300 in float32, whose exponentials are infinite or 0, in log space are as good as any."""
    plan = plan_elimination((2, 2, 2), ((0, 1), (1, 2)))
    weights = [jnp.array([[300.0, -300.0], [0.0, 299.0]]), jnp.array([[0.0, 1.0], [-300.0, 300.0]])]
    expected = enumerated((2, 2, 2), plan.tables, [np.asarray(weight, np.float64) for weight in weights])[0]
    np.testing.assert_allclose(log_normaliser(plan, weights), expected, rtol=1e-6)
    assert all(np.isclose(np.sum(found), 1, rtol=1e-5) for found in margins(plan, weights))
