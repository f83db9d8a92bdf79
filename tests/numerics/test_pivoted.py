"""Least squares of many records with equations of unequal accuracy: against QR by NumPy in extended precision."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dpjax.numerics.pivoted import triangularize

NUM_RECORDS, NUM_EQUATIONS = 40, 7


def extended(matrix: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, float, float]:
    """The solution, the log-determinant and the rest, by Gram and Schmidt's method made twice."""
    columns, rest = matrix.astype(np.longdouble), right.astype(np.longdouble)
    basis, factor = np.zeros_like(columns), np.zeros((columns.shape[1],) * 2, np.longdouble)
    for place in range(columns.shape[1]):
        column = columns[:, place].copy()
        for _ in range(2):
            share = basis[:, :place].T @ column
            factor[:place, place] += share
            column -= basis[:, :place] @ share
        factor[place, place] = np.sqrt(column @ column)
        basis[:, place] = column / factor[place, place]
    along = basis.T @ rest
    rest = rest - basis @ along
    rest = rest - basis @ (basis.T @ rest)
    solution = along.copy()
    for place in reversed(range(len(solution))):
        solution[place] -= factor[place, place + 1 :] @ solution[place + 1 :]
        solution[place] /= factor[place, place]
    return solution, float(np.log(np.diagonal(factor)).sum()), float(rest @ rest)


@pytest.mark.parametrize("size", [1, 2, 4])
def test_equations_known_badly_keep_their_digits_beside_those_known_well(size):
    """Catches pivots that are small, which lose the digits of what is known badly, and unknowns out of their order."""
    rng = np.random.default_rng(size)
    kind = jnp.zeros((), float).dtype
    scales = 10.0 ** rng.integers(-3, 7, (NUM_RECORDS, NUM_EQUATIONS, 1))
    matrix = (scales * rng.normal(size=(NUM_RECORDS, NUM_EQUATIONS, size))).astype(kind)
    # What is seen agrees with some numbers within the accuracy of each equation, as far as floats can say so.
    right = (matrix @ rng.normal(size=size).astype(kind) + rng.normal(size=matrix.shape[:2])).astype(kind)
    triangle = jax.jit(triangularize)(np.moveaxis(matrix, 0, -1), right.T)
    found = np.asarray(triangle.solve(triangle.right)).T
    logs = np.asarray(jnp.sum(jnp.log(jnp.abs(triangle.pivots)), axis=0))
    eps = np.finfo(kind).eps
    for place in range(NUM_RECORDS):
        solution, log_determinant, rest = extended(matrix[place], right[place])
        np.testing.assert_allclose(logs[place], log_determinant, atol=200 * eps, rtol=20 * eps)
        # An equation is solved as if its entries had been rounded.
        allowed = 50 * eps * (np.abs(matrix[place]) @ np.abs(solution) + np.abs(right[place])).astype(float)
        misfit = matrix[place].astype(np.longdouble) @ (found[place] - solution)
        assert np.all(np.abs(misfit) <= allowed)
        bound = 2 * np.sqrt(rest) * np.linalg.norm(allowed) + np.linalg.norm(allowed) ** 2
        assert abs(float(triangle.rest[place]) - rest) <= bound + 50 * eps * rest


def test_the_transposed_system_is_solved():
    rng = np.random.default_rng(3)
    matrix, slope = rng.normal(size=(5, 3, 4)).astype(np.float32), rng.normal(size=(3, 4)).astype(np.float32)
    triangle = triangularize(jnp.asarray(matrix), jnp.zeros((5, 4), np.float32))
    found = triangle.solve(triangle.solve_transposed(jnp.asarray(slope)))
    expected = [
        np.linalg.solve(one.T @ one, tilt) for one, tilt in zip(np.moveaxis(matrix, -1, 0), slope.T, strict=True)
    ]
    np.testing.assert_allclose(found.T, expected, rtol=1e-4, atol=1e-4)
