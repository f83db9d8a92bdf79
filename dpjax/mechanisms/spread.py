"""How wide the noise of a mechanism is, if all that is known of it are its draws, or its density."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from dpjax.base import Array, Key

__all__ = ["simulated_variance", "width", "width_by_density"]

NOISE_DRAWS = 1_024
"""For the variance of noise."""

DOUBLINGS = (-20, 41)
"""The powers of two that are tried as widths; integer noise has none below 1."""

INTERQUARTILE_RANGE = 1.3489795
"""Of a standard Normal number."""


def simulated_variance(key: Key, mechanism: Any, value: Array) -> Array:
    """The variance [d] of Normal noise as wide as that of the mechanism's values [d], by quartiles of draws."""
    return jnp.square(width(key, mechanism, value, quartile_deviation, NOISE_DRAWS, noise_alone=True))


def width(
    key: Key,
    mechanism: Any,
    value: Array,
    measure: Callable[[Array], Array],
    num_draws: int,
    *,
    noise_alone: bool = False,
) -> Array:
    """How wide the distribution of the value is: a measure of draws, or a width by its density if none are made.

    Parameters
    ----------
    key
        One typed key.
    mechanism
        A `dpjax.mechanisms.Mechanism`.
    value
        The value [d], which is also the statistic of the draws.
    measure
        ``[num_draws, d] -> [d]``.
    num_draws
        The number of draws.
    noise_alone
        Whether the draws are of the noise inside all wrappers, around 0.
    """
    if not mechanism._can_sample:
        return width_by_density(mechanism, value)
    source, statistic = (mechanism._innermost, jnp.zeros_like(value)) if noise_alone else (mechanism, value)
    return measure(jax.vmap(source.sample, in_axes=(0, None))(jax.random.split(key, num_draws), statistic))


def quartile_deviation(draws: Array) -> Array:
    """The standard deviation [d] of Normal numbers with the quartiles of draws [number, d].

    Quartiles are finite if no variance is.
    """
    low, high = jnp.quantile(draws, jnp.asarray([0.25, 0.75], draws.dtype), axis=0)
    return (high - low) / INTERQUARTILE_RANGE


def width_by_density(mechanism: Any, value: Array) -> Array:
    """How far the statistic may be from the value [d] before the density is less than 1 / e of its largest [d].

    To a factor of two, for starts and proposals. If the density does not say what each coordinate adds to it, all move
    together.

    Parameters
    ----------
    mechanism
        A `dpjax.mechanisms.Mechanism`.
    value
        The value.
    """
    steps = jnp.exp2(jnp.arange(*DOUBLINGS)).astype(value.dtype)
    if mechanism._is_elementwise:
        found = jax.vmap(lambda step: mechanism.log_density_terms(value, value + step))(steps)
    else:
        found = jax.vmap(lambda step: jnp.full(value.shape, mechanism.log_density(value, value + step)))(steps)
    near = found > jnp.max(jnp.nan_to_num(found, nan=-jnp.inf), axis=0, keepdims=True) - 1
    return jnp.max(jnp.where(near, jnp.expand_dims(steps, tuple(range(1, found.ndim))), 0), axis=0)
