"""Dirichlet laws on the last axis of an array, exact for shapes so small that shares pile up at 0.

Shares in the end cell next to 0 (`dpjax.numerics.ends`) stand there as one number, and the density there is its average
over the cell: a share^(a - 1) has the average ε^(a - 1) / a over (0, ε), and what is left for the other shares is not
changed by so little.
"""

import jax
import jax.numpy as jnp
from jax.scipy.special import gammaln

from dpjax.base import Array, Key
from dpjax.numerics.ends import lower_end, within_lower_end
from dpjax.numerics.gamma import draw_log_gamma

__all__ = [
    "dirichlet_log_density",
    "dirichlet_log_normaliser",
    "dirichlet_log_powers",
    "draw_dirichlet",
    "draw_shares",
    "share_features",
]


def draw_dirichlet(key: Key, concentration: Array) -> Array:
    """Independent Dirichlet draws [..., c], one for each row of the concentration [..., c]; 0 where they underflow."""
    return jax.nn.softmax(draw_log_gamma(key, concentration), axis=-1)


def draw_shares(key: Key, concentration: Array) -> Array:
    """Independent Dirichlet draws [..., c] as `draw_dirichlet`, but above 0: one number for all of the end cell."""
    shares = draw_dirichlet(key, concentration)
    return jnp.where(within_lower_end(shares), lower_end(shares.dtype) / 2, shares)


def share_features(value: Array) -> tuple[Array, Array]:
    """What the density of shares [..., c] depends on: their logarithms down to the end cell, and whether in it."""
    at_zero = within_lower_end(value).astype(value.dtype)
    return jnp.log(jnp.maximum(value, lower_end(value.dtype))), at_zero


def dirichlet_log_powers(concentration: Array, features: tuple[Array, Array]) -> Array:
    """Σ (a - 1) log share, less Σ log a over the shares in the end cell, over the last axis [...], from features."""
    log_share, at_zero = features
    terms = jnp.broadcast_to(concentration, log_share.shape)
    return jnp.sum((terms - 1) * log_share - at_zero * jnp.log(terms), axis=-1)


def dirichlet_log_normaliser(concentration: Array) -> Array:
    """log Γ(Σ a) - Σ log Γ(a) over the last axis [...]."""
    return gammaln(jnp.sum(concentration, axis=-1)) - jnp.sum(gammaln(concentration), axis=-1)


def dirichlet_log_density(concentration: Array, value: Array) -> Array:
    """The Dirichlet log-density [...] with respect to the first c - 1 coordinates of the value [..., c].

    One concentration [c] may stand for all values. It is -inf where an entry is not in [0, 1].
    """
    density = dirichlet_log_normaliser(concentration) + dirichlet_log_powers(concentration, share_features(value))
    return jnp.where(jnp.all((value >= 0) & (value <= 1), axis=-1), density, -jnp.inf)
