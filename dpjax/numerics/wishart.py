"""Wishart matrices through their triangular factors."""

from math import log

import jax
import jax.numpy as jnp

from dpjax.base import Array, Key
from dpjax.numerics.gamma import draw_log_gamma

__all__ = ["draw_bartlett"]


def draw_bartlett(gamma_key: Key, normal_key: Key, degrees: Array) -> Array:
    """Lower triangles T [..., d, d] of standard normals whose squared diagonal is chi-squared with `degrees` [..., d].

    The decomposition of Bartlett (1933): with degrees ν, ν - 1, ..., ν - d + 1 down the diagonal T Tᵀ is a Wishart
    matrix of ν degrees of freedom and scale 1, and with these in increasing order TᵀT is.
    """
    diagonal = jnp.exp((log(2) + draw_log_gamma(gamma_key, degrees / 2)) / 2)
    dim = degrees.shape[-1]
    below = jnp.tril(jax.random.normal(normal_key, (*degrees.shape, dim), degrees.dtype), -1)
    return below + diagonal[..., None] * jnp.broadcast_to(jnp.eye(dim, dtype=degrees.dtype), below.shape)
