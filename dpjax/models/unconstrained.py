"""Parameters on their unconstrained scale: as a vector, and whether the map from it is elementwise."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from dpjax.base import Array, Key, Model, Parameters
from dpjax.models.programs import jit_model

__all__ = ["mixing", "to_vector"]

MIXING_DRAWS = 4
"""Number of draws from the prior at which a map is tried."""


def to_vector(model: Model, parameters: Parameters) -> tuple[Array, Callable[[Array], Parameters]]:
    """The unconstrained vector [k] of the parameters, and the map from such a vector to an unconstrained dict."""
    return ravel_pytree(model.unconstrain(parameters))


@jit_model
def mixing(model: Model, key: Key) -> Array:
    """How far ``model.constrain`` is from an elementwise map [], relative to its slopes: 0 if it is one.

    The derivative of an elementwise map along any vector is that along the vector of ones, times the vector. They are
    compared along a random vector, at draws from the prior.
    """

    def at_draw(key: Key) -> Array:
        prior_key, way_key = jax.random.split(key)
        vector, unravel = to_vector(model, model.sample_prior(prior_key))
        way = jax.random.uniform(way_key, vector.shape, vector.dtype, 1.0, 2.0)

        def slope(along: Array) -> Array:
            return jax.jvp(lambda vector: ravel_pytree(model.constrain(unravel(vector)))[0], (vector,), (along,))[1]

        one, other = slope(jnp.ones_like(vector)), slope(way) / way
        relative = jnp.abs(one - other) / jnp.maximum(jnp.abs(one), jnp.abs(other))
        # Where both are zero, or one is not finite, the draw is at the end of what floats hold.
        return jnp.max(jnp.nan_to_num(relative), initial=0.0)

    return jnp.max(jax.vmap(at_draw)(jax.random.split(key, MIXING_DRAWS)))
