"""Normal and Wishart distributions through triangular factors, for a few dimensions and many records."""

from functools import partial
from math import log

import jax
import jax.numpy as jnp

from dpjax.base import Array, Key
from dpjax.numerics.gamma import draw_log_gamma
from dpjax.numerics.sums import are_summed_at_once, sum_each

__all__ = [
    "LOG_TWO_PI",
    "cross_products",
    "draw_bartlett",
    "draw_normal",
    "factorize",
    "normal_log_density",
    "product",
    "solve_lower",
    "solve_upper",
]

LOG_TWO_PI = 1.8378770664093453

FEW_ROWS = 4
"""Most rows of a triangular system that is solved by forward substitution, as a loop over its columns."""

MANY_COLUMNS = 64
"""Fewest columns of such a system: with three rows and 100 columns it takes half the time of LAPACK."""

# Some devices multiply float32 matrices in lower precision by default.
product = partial(jnp.matmul, precision=jax.lax.Precision.HIGHEST)


def cross_products(left: Array, right: Array) -> Array:
    """The product [p, q] of rows [p, m] and the transpose of rows [q, m], for few rows and many columns."""
    if not are_summed_at_once(len(left) * len(right)):
        return product(left, right.T)
    return sum_each([one * other for one in left for other in right]).reshape(len(left), len(right))


def factorize(matrix: Array) -> Array:
    """The lower Cholesky factor of a symmetric matrix [k, k]; NaN if it is not positive definite."""
    return jax.lax.linalg.cholesky(matrix, symmetrize_input=False)


def solve_lower(factor: Array, columns: Array) -> Array:
    """L⁻¹ columns, for a lower factor [k, k] and columns [k, m]."""
    if len(columns) <= FEW_ROWS and columns.shape[1] >= MANY_COLUMNS:
        return substitute(factor, columns)
    return jax.lax.linalg.triangular_solve(factor, columns, left_side=True, lower=True)


def substitute(factor: Array, columns: Array) -> Array:
    """L⁻¹ columns, for a lower factor [k, k] and columns [k, m], row by row."""
    solved: list[Array] = []
    for row, column in zip(factor, columns, strict=True):
        known = sum(entry * other for entry, other in zip(row, solved, strict=False))
        solved.append((column - known) / row[len(solved)])
    return jnp.stack(solved)


def solve_upper(factor: Array, columns: Array) -> Array:
    """L⁻ᵀ columns, for a lower factor [k, k] and columns [k, m]."""
    return jax.lax.linalg.triangular_solve(factor, columns, left_side=True, lower=True, transpose_a=True)


def draw_normal(key: Key, precision: Array, linear: Array) -> Array:
    """A draw [k] from N(P⁻¹ b, P⁻¹), whose density is ∝ exp(bᵀv - vᵀPv / 2)."""
    factor = factorize(precision)
    normal = jax.random.normal(key, (linear.size, 1), linear.dtype)
    return solve_upper(factor, solve_lower(factor, linear[:, None]) + normal)[:, 0]


def normal_log_density(value: Array, precision: Array, linear: Array) -> Array:
    """The log-density [] of `draw_normal` at a value [k]."""
    factor = factorize(precision)
    whitened = product(factor.T, value) - solve_lower(factor, linear[:, None])[:, 0]
    return jnp.sum(jnp.log(jnp.diagonal(factor))) - (jnp.sum(whitened**2) + value.size * LOG_TWO_PI) / 2


def draw_bartlett(gamma_key: Key, normal_key: Key, degrees: Array) -> Array:
    """Lower triangles T [..., d, d] of standard normals whose squared diagonal is chi-squared with `degrees` [..., d].

    The decomposition of Bartlett (1933). With degrees ν, ν - 1, ..., ν - d + 1 down the diagonal T Tᵀ is a Wishart
    matrix of ν degrees of freedom and scale 1. With these in increasing order TᵀT is one.
    """
    diagonal = jnp.exp((log(2) + draw_log_gamma(gamma_key, degrees / 2)) / 2)
    dim = degrees.shape[-1]
    below = jnp.tril(jax.random.normal(normal_key, (*degrees.shape, dim), degrees.dtype), -1)
    return below + diagonal[..., None] * jnp.broadcast_to(jnp.eye(dim, dtype=degrees.dtype), below.shape)
