"""The interface of noise sources, which draw the Gaussian noise of a private run."""

from dataclasses import dataclass
from typing import Any, Literal, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.validation import check_count, check_key, describe, fail
from dpjax.base import Array, Key
from dpjax.private.accounting.query import Grade, Query
from dpjax.private.arguments import check_numbers

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

        Amplification by subsampling requires unpredictable samples that are independent between queries.
        """
        ...

    def query(
        self, name: str, noise_multiplier: float, *, dimension: int, count: int = 1, sampling_rate: float = 1.0
    ) -> Query:
        """What `count` releases of `dimension` numbers cost, with the extra term of this source.

        Parameters
        ----------
        name
            The name of the query.
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


def check_release(key: Any, value: Any, scale: Any) -> None:
    """Raise unless a key, arrays of numbers and the noise's standard deviation are what they should be, by type."""
    check_key("key", key)
    leaves = jax.tree.leaves(value)
    if not leaves or not all(isinstance(leaf, (np.ndarray, np.generic, jax.Array)) for leaf in leaves):
        remedy = "Pass an array, or a tuple of arrays whose sum it is."
        fail("value", describe(value), "an array of numbers", remedy, error=TypeError)
    for leaf in leaves:
        check_numbers("value", leaf)
    check_numbers("scale", scale)


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


@dataclass(frozen=True)
class Threefry:
    """Gaussian noise from a JAX key, simulation-grade.

    Whoever knows or guesses the seed of the key can subtract the noise. Threefry is not a cipher that anyone vouches
    for. And floating-point Gaussians reveal in their last bits what they were added to (Mironov 2012; Holohan and
    Braghin 2021). It is right for studying an algorithm, and wrong for publishing draws made from confidential records.

    Examples
    --------
    >>> import jax
    >>> from dpjax.private import noise
    >>> noise.jax.release(jax.random.key(1), jax.numpy.zeros(3), 1.0).shape
    (3,)
    >>> noise.jax.query("mean", noise_multiplier=20.0, dimension=3).grade
    'simulation-grade'
    """

    @property
    def grade(self) -> Literal["simulation-grade"]:
        """Not fit to protect anyone."""
        return "simulation-grade"

    def release(self, key: Key, value: Value, scale: Array | float) -> Array:
        """A draw of N(value, scale² I) from the key."""
        check_release(key, value, scale)
        dtype = float_dtype(value)
        mean = sum(part.astype(dtype) for part in jax.tree.leaves(value))
        return mean + at_least(scale, dtype) * jax.random.normal(key, mean.shape, dtype)

    def sampling_key(self, key: Key) -> Key:
        """The key itself: equal keys give equal samples."""
        return key

    def query(
        self, name: str, noise_multiplier: float, *, dimension: int, count: int = 1, sampling_rate: float = 1.0
    ) -> Query:
        """What the releases would cost, were their noise fit for it: no extra term."""
        check_count("dimension", dimension)  # the noise is taken for exactly Gaussian
        return Query(name, noise_multiplier, self.grade, count, sampling_rate)
