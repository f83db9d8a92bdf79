"""How much an output tells two records apart."""

import jax
import jax.numpy as jnp
import numpy as np


def largest_loss(channel: object, points: np.ndarray, values: jax.Array) -> float:
    """The largest log-ratio of the channel's densities over pairs of records and released values."""
    density = jax.jit(jax.vmap(jax.vmap(channel.log_density, in_axes=(None, 0)), in_axes=(0, None)))
    found = np.asarray(density(values, jnp.asarray(points)))
    return float(np.max(found.max(axis=1) - found.min(axis=1)))
