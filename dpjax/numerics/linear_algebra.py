"""Normal and Wishart distributions through triangular factors, for a few dimensions and many records."""

from functools import partial
from math import log

import jax
import jax.numpy as jnp

from dpjax.base import Array, Key
from dpjax.numerics.gamma import draw_log_gamma

__all__ = [
    "LOG_TWO_PI",
    "draw_bartlett",
    "draw_normal",
    "factorize",
    "normal_log_density",
    "product",
    "solve_lower",
    "solve_upper",
]

LOG_TWO_PI = 1.8378770664093453

# Some devices multiply float32 matrices in lower precision by default.
product = partial(jnp.matmul, precision=jax.lax.Precision.HIGHEST)


def factorize(matrix: Array) -> Array:
    """The lower Cholesky factor of a symmetric matrix [k, k]; NaN if it is not positive definite."""
    return jax.lax.linalg.cholesky(matrix, symmetrize_input=False)


def solve_lower(factor: Array, columns: Array) -> Array:
    """L⁻¹ columns, for a lower factor [k, k] and columns [k, m]."""
    return jax.lax.linalg.triangular_solve(factor, columns, left_side=True, lower=True)


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

    The decomposition of Bartlett (1933): with degrees ν, ν - 1, ..., ν - d + 1 down the diagonal T Tᵀ is a Wishart
    matrix of ν degrees of freedom and scale 1, and with these in increasing order TᵀT is.
    """
    diagonal = jnp.exp((log(2) + draw_log_gamma(gamma_key, degrees / 2)) / 2)
    dim = degrees.shape[-1]
    below = jnp.tril(jax.random.normal(normal_key, (*degrees.shape, dim), degrees.dtype), -1)
    return below + diagonal[..., None] * jnp.broadcast_to(jnp.eye(dim, dtype=degrees.dtype), below.shape)
