"""How wide the noise of a mechanism is, where all that is known of it are its draws, or its density."""

from typing import Any

import jax
import jax.numpy as jnp

from dpjax.base import Array, Key
from dpjax.mechanisms.base import ElementwiseDensity, can_sample, innermost

__all__ = ["draws_of", "simulated_variance", "width_by_density"]

NOISE_DRAWS = 1_024
DOUBLINGS = (-20, 41)
"""The powers of two that are tried as widths; whole noise has none below 1."""

INTERQUARTILE_RANGE = 1.3489795
"""Of a standard Normal number."""


def simulated_variance(key: Key, mechanism: Any, value: Array) -> Array:
    """The variance [d] of Normal noise as wide as that of a mechanism of values [d], by quartiles of draws.

    Quartiles are finite where no variance is. Of a wrapped mechanism it is the noise inside.
    """
    if not can_sample(mechanism):
        return jnp.square(width_by_density(mechanism, value))
    draws = draws_of(innermost(mechanism), key, jnp.zeros_like(value), NOISE_DRAWS)
    low, high = jnp.quantile(draws, jnp.asarray([0.25, 0.75], draws.dtype), axis=0)
    return jnp.square((high - low) / INTERQUARTILE_RANGE)


def draws_of(mechanism: Any, key: Key, statistic: Array, number: int) -> Array:
    """So many values [number, ...] given one statistic."""
    draws: Array = jax.vmap(mechanism.sample, in_axes=(0, None))(jax.random.split(key, number), statistic)
    return draws


def width_by_density(mechanism: Any, value: Array) -> Array:
    """How far the statistic may be from the value [d] before the density is less than 1 / e of its largest [d].

    To a factor of two, for starts and proposals. Where the density does not say what each coordinate adds to it, all
    move together.
    """
    steps = jnp.exp2(jnp.arange(*DOUBLINGS)).astype(value.dtype)
    if isinstance(mechanism, ElementwiseDensity):
        found = jax.vmap(lambda step: mechanism.log_density_terms(value, value + step))(steps)
    else:
        found = jax.vmap(lambda step: jnp.full(value.shape, mechanism.log_density(value, value + step)))(steps)
    near = found > jnp.max(jnp.nan_to_num(found, nan=-jnp.inf), axis=0, keepdims=True) - 1
    return jnp.max(jnp.where(near, jnp.expand_dims(steps, tuple(range(1, found.ndim))), 0), axis=0)
