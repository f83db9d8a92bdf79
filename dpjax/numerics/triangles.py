"""Symmetric matrices of a few rows, held as their upper triangles."""

import jax.numpy as jnp
import numpy as np

from dpjax.base import Array

__all__ = ["full_matrix", "log_determinant", "triangle_size", "upper_triangle"]


def triangle_size(d: int) -> int:
    """The number of entries on and above the diagonal."""
    return d * (d + 1) // 2


def upper_triangle(matrix: Array) -> Array:
    """The entries [d (d + 1) / 2] on and above the diagonal of a matrix [d, d], row by row."""
    return matrix[np.triu_indices(matrix.shape[0])]


def full_matrix(triangle: Array, d: int) -> Array:
    """The symmetric matrix [d, d] of an upper triangle [d (d + 1) / 2]."""
    rows, columns = np.triu_indices(d)
    places = np.zeros((d, d), int)
    places[rows, columns] = places[columns, rows] = np.arange(len(rows))
    return triangle[places]


def log_determinant(matrix: Array) -> Array:
    """The log-determinant [] of a symmetric matrix [d, d]; −∞ if it is not positive definite.

    By elimination, row after row in vector operations, which are compiled into one loop over many matrices.
    """
    total = jnp.zeros((), matrix.dtype)
    for row in range(matrix.shape[0]):
        pivot = matrix[row, row]
        total += jnp.where(pivot > 0, jnp.log(jnp.where(pivot > 0, pivot, 1.0)), -jnp.inf)
        lead = matrix[row] / jnp.where(pivot > 0, pivot, 1.0)
        matrix = matrix - matrix[:, row][:, None] * lead[None]
    return total
