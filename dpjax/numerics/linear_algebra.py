"""Normal laws through triangular factors, for a few dimensions and many records."""

from functools import partial

import jax
import jax.numpy as jnp

from dpjax.base import Array, Key

__all__ = ["LOG_TWO_PI", "draw_normal", "factorize", "normal_log_density", "product", "solve_lower", "solve_upper"]

LOG_TWO_PI = 1.8378770664093453

# On some devices products of float32 matrices are rounded further unless asked otherwise.
product = partial(jnp.matmul, precision=jax.lax.Precision.HIGHEST)


def factorize(matrix: Array) -> Array:
    """The lower Cholesky factor of a symmetric matrix [k, k]; not a number where it is not positive definite."""
    return jax.lax.linalg.cholesky(matrix, symmetrize_input=False)


def solve_lower(factor: Array, columns: Array) -> Array:
    """L⁻¹ columns, for a lower factor [k, k] and columns [k, m]."""
    return jax.lax.linalg.triangular_solve(factor, columns, left_side=True, lower=True)


def solve_upper(factor: Array, columns: Array) -> Array:
    """L⁻ᵀ columns, for a lower factor [k, k] and columns [k, m]."""
    return jax.lax.linalg.triangular_solve(factor, columns, left_side=True, lower=True, transpose_a=True)


def draw_normal(key: Key, precision: Array, linear: Array) -> Array:
    """A draw [k] from N(P⁻¹ b, P⁻¹), the law with density ∝ exp(bᵀv - vᵀPv / 2)."""
    factor = factorize(precision)
    normal = jax.random.normal(key, (linear.size, 1), linear.dtype)
    return solve_upper(factor, solve_lower(factor, linear[:, None]) + normal)[:, 0]


def normal_log_density(value: Array, precision: Array, linear: Array) -> Array:
    """The log-density [] of `draw_normal` at a value [k]."""
    factor = factorize(precision)
    whitened = product(factor.T, value) - solve_lower(factor, linear[:, None])[:, 0]
    return jnp.sum(jnp.log(jnp.diagonal(factor))) - (jnp.sum(whitened**2) + value.size * LOG_TWO_PI) / 2
