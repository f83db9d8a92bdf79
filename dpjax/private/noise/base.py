"""The contract of noise sources: where the Gaussian noise of a private run comes from."""

from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from dpjax.base import Array, Key
from dpjax.private.accounting.query import Grade, Query

Value = Array | tuple[Array, ...]


class Noise(Protocol):
    """A source of Gaussian noise, an argument of every private algorithm.

    There are two: `noise.jax` for simulation, and `noise.secure` for the run whose draws are published.
    """

    @property
    def grade(self) -> Grade:
        """Whether the noise is fit to protect anyone."""
        ...

    def release(self, key: Key, value: Value, scale: Array | float) -> Array:
        """A draw of N(value, scale² I), usable within `jax.jit`, `jax.lax.scan` and `jax.vmap`.

        Parameters
        ----------
        key
            A typed key, used once.
        value : [...]
            What is to be protected: an array of any shape and of floats or integers, or a tuple of such arrays, whose
            exact sum it is. The draw has the floats' dtype, and JAX's default one for integers.
        scale : []
            The standard deviation of the noise, above 0: a float, whatever the value's dtype.
        """
        ...

    def sampling_key(self, key: Key) -> Key:
        """The key [] by which a Poisson sample of the records is drawn, within compiled programs as `release` is.

        What subsampling saves counts on samples that are independent between queries and that nobody can guess.
        """
        ...

    def query(
        self, name: str, noise_multiplier: float, *, dimension: int, count: int = 1, sampling_rate: float = 1.0
    ) -> Query:
        """What `count` releases of `dimension` numbers cost, with the extra term of this source.

        Parameters
        ----------
        name
            What is asked.
        noise_multiplier
            The scale passed to `release` over the bound of one record's norm.
        dimension
            The number of entries of one value.
        count
            As in `Query`.
        sampling_rate
            As in `Query`.
        """
        ...


def float_dtype(value: Value) -> Any:
    """The float dtype in which a value is released."""
    dtype = jnp.result_type(*jax.tree.leaves(value))
    return dtype if jnp.issubdtype(dtype, jnp.floating) else jnp.dtype(jnp.result_type(float))


def at_least(scale: Array | float, dtype: Any) -> Array:
    """A scale in a float dtype, in which it must not lose noise."""
    if isinstance(scale, jax.Array):
        nearest = scale.astype(dtype)
        return jnp.where(
            nearest.astype(scale.dtype) < scale, jnp.nextafter(nearest, jnp.asarray(jnp.inf, dtype)), nearest
        )
    rounded = np.asarray(scale, dtype)
    enough = rounded.astype(np.float64) >= np.float64(scale)
    return jnp.asarray(np.where(enough, rounded, np.nextafter(rounded, np.inf, dtype=dtype)))
