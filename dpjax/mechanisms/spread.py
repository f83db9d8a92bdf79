"""How wide the noise of a mechanism is, where all that is known of it are its draws, or its density."""

from typing import Any

import jax
import jax.numpy as jnp

from dpjax.base import Array, Key

__all__ = ["draws_of", "quartile_deviation", "width_by_density"]

DOUBLINGS = (-20, 41)
"""The powers of two that are tried as widths; integer noise has none below 1."""

INTERQUARTILE_RANGE = 1.3489795
"""Of a standard Normal number."""


def quartile_deviation(draws: Array) -> Array:
    """The standard deviation [d] of Normal numbers with the quartiles of draws [number, d].

    Quartiles are finite where no variance is.
    """
    low, high = jnp.quantile(draws, jnp.asarray([0.25, 0.75], draws.dtype), axis=0)
    return (high - low) / INTERQUARTILE_RANGE


def draws_of(mechanism: Any, key: Key, statistic: Array, number: int) -> Array:
    """So many values [number, ...] given one statistic."""
    draws: Array = jax.vmap(mechanism.sample, in_axes=(0, None))(jax.random.split(key, number), statistic)
    return draws


def width_by_density(mechanism: Any, value: Array) -> Array:
    """How far the statistic may be from the value [d] before the density is less than 1 / e of its largest [d].

    To a factor of two, for starts and proposals. Where the density does not say what each coordinate adds to it, all
    move together.

    Parameters
    ----------
    mechanism
        A `dpjax.Mechanism`.
    value
        The value.
    """
    steps = jnp.exp2(jnp.arange(*DOUBLINGS)).astype(value.dtype)
    if mechanism.is_elementwise:
        found = jax.vmap(lambda step: mechanism.log_density_terms(value, value + step))(steps)
    else:
        found = jax.vmap(lambda step: jnp.full(value.shape, mechanism.log_density(value, value + step)))(steps)
    near = found > jnp.max(jnp.nan_to_num(found, nan=-jnp.inf), axis=0, keepdims=True) - 1
    return jnp.max(jnp.where(near, jnp.expand_dims(steps, tuple(range(1, found.ndim))), 0), axis=0)
