"""Dirichlet laws on the last axis of an array."""

import jax
import jax.numpy as jnp
from jax.scipy.special import gammaln, xlogy

from dpjax.base import Array, Key
from dpjax.models.gamma import draw_log_gamma

__all__ = ["dirichlet_log_density", "dirichlet_log_normaliser", "draw_dirichlet"]


def draw_dirichlet(key: Key, concentration: Array) -> Array:
    """Independent Dirichlet draws [..., c], one for each row of the concentration [..., c]."""
    return jax.nn.softmax(draw_log_gamma(key, concentration), axis=-1)


def dirichlet_log_normaliser(concentration: Array) -> Array:
    """log Γ(Σ a) - Σ log Γ(a) over the last axis [...]."""
    return gammaln(jnp.sum(concentration, axis=-1)) - jnp.sum(gammaln(concentration), axis=-1)


def dirichlet_log_density(concentration: Array, value: Array) -> Array:
    """The Dirichlet log-density [...] with respect to the first c - 1 coordinates of the value [..., c].

    One concentration [c] may stand for all values.
    """
    powers = jnp.broadcast_to(concentration - 1, value.shape)
    return dirichlet_log_normaliser(concentration) + jnp.sum(xlogy(powers, value), axis=-1)
