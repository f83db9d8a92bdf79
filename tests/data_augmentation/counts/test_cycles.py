"""Cycles of suppressed cells, along which counts move."""

import jax
import numpy as np
import pytest
from scipy import stats

import dpjax
from dpjax import models, statistics
from dpjax.data_augmentation.counts.cycles import find_cycles
from dpjax.mechanisms import PrimarySuppression


def with_margins(free: np.ndarray, total: int) -> dpjax.Release:
    """A square table of which the free cells are suppressed, and the others 9, with exact margins."""
    size, n = len(free), total * len(free)
    value = np.where(free, -1, 9).ravel()
    table = dpjax.Release(value, PrimarySuppression(6), statistics.cells("cell", size**2), n)
    sums = [np.repeat(np.arange(size), size), np.tile(np.arange(size), size)]
    margins = [dpjax.Release([total] * size, dpjax.Exact(), statistics.grouped("cell", groups), n) for groups in sums]
    return dpjax.joint(table, *margins)


@pytest.mark.x32
def test_a_cycle_of_suppressed_cells() -> None:
    """Six cells in a circle are free, of which no four form a swap: one of each row is u, the other 5 - u."""
    free = np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1]], bool)
    alpha, collect = np.full(9, 2.0), lambda state: state.latent.records["counts"][0]
    options = {"num_warmup": 100, "num_samples": 2_000, "progress": False, "collect": collect}
    model, release = models.categorical(alpha), with_margins(free, 14)
    found = dpjax.sample(jax.random.key(1), model, release, imputation=dpjax.counts(), **options)
    counts = np.asarray(found.collected).reshape(-1, 3, 3)
    np.testing.assert_array_equal(counts.sum(axis=1), 14)
    np.testing.assert_array_equal(counts.sum(axis=2), 14)
    one = np.arange(6)
    chance = ((one + 1) * (6 - one)) ** 3.0
    chance /= chance.sum()
    assert stats.chisquare(np.bincount(counts[::10, 0, 0], minlength=6), chance * len(counts) / 10).pvalue > 1e-4


def test_cycles_of_a_complete_table() -> None:
    rows, columns = np.repeat(np.arange(3), 3), np.tile(np.arange(3), 3)
    found = find_cycles(rows, columns, np.ones(9, bool))
    assert found is not None
    assert [each.shape for each in found] == [(9, 4), (6, 6)]
    for cells in np.concatenate([each[:, [0, 1, -1]] for each in found]):
        assert columns[cells[0]] == columns[cells[1]]
        assert rows[cells[0]] == rows[cells[2]]
    assert find_cycles(np.repeat(np.arange(8), 8), np.tile(np.arange(8), 8), np.ones(64, bool)) is None
    (pairs,) = find_cycles(np.zeros(3, int), np.zeros(3, int), np.ones(3, bool)) or ()
    assert pairs.tolist() == [[0, 1], [0, 2], [1, 2]]


def test_patterns_that_moves_may_not_connect_are_refused() -> None:
    """Too many cycles, and structural gaps that swaps do not bridge."""
    free = ~np.eye(8, dtype=bool)
    with pytest.raises(ValueError, match=r"^release: given .*margins"):
        dpjax.sample(jax.random.key(1), models.categorical(np.ones(64)), with_margins(free, 30), progress=False)
