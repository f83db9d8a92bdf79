"""Least squares against the equations of its minimum, solved as one dense system."""

import sys

import numpy as np
import pytest
from scipy import sparse

from dpjax.data_augmentation.counts.least_squares import solve_blocks


def solve_all(matrix, value, variance):
    """The minimizer and its covariance by Lagrange multipliers for the exact rows, all unknowns together."""
    noisy, exact = matrix[variance > 0], matrix[variance == 0]
    weights = noisy.T / variance[variance > 0]
    corner = np.zeros((len(exact), len(exact)))
    system = np.block([[weights @ noisy, exact.T], [exact, corner]])
    solution = np.linalg.solve(system, np.concatenate([weights @ value[variance > 0], value[variance == 0]]))
    count = matrix.shape[1]
    return solution[:count], np.diag(np.linalg.inv(system))[:count]


CELLS, ROWS, COLUMNS = np.eye(6), np.kron(np.eye(2), np.ones((1, 3))), np.kron(np.ones((1, 2)), np.eye(3))
VARIANCES = {"cells": (4.0, 4.0, 2.0, 9.0, 4.0, 1.0), "rows": (2.0, 3.0), "columns": (0.0, 0.0, 0.0)}


@pytest.mark.parametrize("parts", [("cells",), ("cells", "rows"), ("cells", "columns"), ("cells", "rows", "columns")])
@pytest.mark.parametrize("total", [None, 20.0])
def test_least_squares_solve_their_equations(parts, total):
    matrices = {"cells": CELLS, "rows": ROWS, "columns": COLUMNS}
    matrix = np.concatenate([matrices[part] for part in parts])
    variance = np.concatenate([VARIANCES[part] for part in parts])
    exact = np.array([5, 3, 0, 2, 7, 3])
    value = matrix @ exact + np.sqrt(variance) * np.random.default_rng(3).normal(size=len(variance))
    found = solve_blocks(sparse.csr_array(matrix), value, variance, total)
    if total is not None and "columns" not in parts:  # which fix it already
        matrix, value, variance = np.vstack([matrix, np.ones(6)]), np.append(value, total), np.append(variance, 0.0)
    expected = solve_all(matrix, value, variance)
    np.testing.assert_allclose(found.value, expected[0], atol=1e-9)
    np.testing.assert_allclose(found.variance, expected[1], atol=1e-9)


def test_counts_that_the_sums_leave_open_have_no_variance():
    matrix = sparse.csr_array(np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]))
    found = solve_blocks(matrix, np.array([4.0, 7.0]), np.array([1.0, 2.0]), 11.0)
    np.testing.assert_allclose(found.value, [2.0, 2.0, 7.0])
    np.testing.assert_allclose(found.variance, [np.inf, np.inf, 2.0])


def test_counts_without_any_sum_are_open():
    found = solve_blocks(sparse.csr_array(np.array([[0.0, 1.0]])), np.array([3.0]), np.array([2.0]))
    np.testing.assert_allclose(found.value, [0.0, 3.0])
    np.testing.assert_allclose(found.variance, [np.inf, 2.0])


def test_too_many_counts_at_once_are_refused(monkeypatch):
    monkeypatch.setattr(sys.modules[solve_blocks.__module__], "MAX_BLOCK", 3)
    with pytest.raises(ValueError, match="4 counts that hang together"):
        solve_blocks(sparse.csr_array(np.ones((1, 4))), np.array([4.0]), np.array([1.0]))
