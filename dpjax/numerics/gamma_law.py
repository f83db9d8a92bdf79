"""The Gamma law of floating-point numbers: exact for shapes so small that draws pile up at 0.

Draws in the end cell next to 0 (`dpjax.numerics.ends`) stand there as one number, and the density there is its average
over the cell: P(Y < ε) = (rate ε)^shape / Γ(shape + 1) to rounding, as ε is tiny.
"""

from math import log

import jax
import jax.numpy as jnp
from jax.scipy.special import gammaln

from dpjax.base import Array, Key
from dpjax.numerics.ends import lower_end, positive_at, within_lower_end
from dpjax.numerics.gamma import draw_log_gamma

__all__ = ["draw_gamma", "gamma_log_density", "log_within"]


def draw_gamma(key: Key, shape: Array, rate: Array) -> Array:
    """Independent Gamma(shape, rate) draws, one for each entry [...], above 0 and finite."""
    return positive_at(draw_log_gamma(key, shape) - jnp.log(rate))


def gamma_log_density(value: Array, shape: Array, rate: Array) -> Array:
    """log Gamma(y | shape, rate), elementwise; -inf below 0, and averaged over the cell in the end cell."""
    between = jnp.maximum(value, lower_end(value.dtype))
    inside = shape * jnp.log(rate) - gammaln(shape) + (shape - 1) * jnp.log(between) - rate * between
    density = inside - jnp.where(within_lower_end(value), jnp.log(shape), 0)
    return jnp.where(value >= 0, density, -jnp.inf)


def log_within(key: Key, value: Array, shape: Array) -> Array:
    """The logarithms of values; in the end cell a draw from their law given that cell, of density ∝ y^(shape - 1)."""
    low = lower_end(value.dtype)
    log_uniform = jnp.log1p(-jax.random.uniform(key, value.shape, value.dtype))
    return jnp.where(within_lower_end(value), log(low) + log_uniform / shape, jnp.log(jnp.maximum(value, low)))
