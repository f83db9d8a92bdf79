"""How wide the noise of a mechanism is, where all that is known of it are its draws."""

from typing import Any

import jax
import jax.numpy as jnp

from dpjax.base import Array, Key
from dpjax.mechanisms.base import innermost

__all__ = ["simulated_variance"]

NOISE_DRAWS = 1_024
INTERQUARTILE_RANGE = 1.3489795
"""Of a standard Normal number."""


def simulated_variance(key: Key, mechanism: Any, value: Array) -> Array:
    """The variance [d] of Normal noise as wide as that of a mechanism of values [d], by quartiles of draws.

    Quartiles are finite where no variance is. Of a wrapped mechanism it is the noise inside.
    """
    keys = jax.random.split(key, NOISE_DRAWS)
    draws = jax.vmap(innermost(mechanism).sample, in_axes=(0, None))(keys, jnp.zeros_like(value))
    low, high = jnp.quantile(draws, jnp.asarray([0.25, 0.75], draws.dtype), axis=0)
    return jnp.square((high - low) / INTERQUARTILE_RANGE)
