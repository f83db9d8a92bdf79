"""The contract of noise sources: where the Gaussian noise of a private run comes from."""

from typing import Protocol

from dpjax.base import Array, Key
from dpjax.private.query import Grade, Query


class Noise(Protocol):
    """A source of Gaussian noise, an argument of every private algorithm.

    There are two: `noise.jax` for simulation, and `noise.secure` for the run whose draws are published.
    """

    @property
    def grade(self) -> Grade:
        """Whether the noise is fit to protect anyone."""
        ...

    def release(self, key: Key, value: Array, scale: Array) -> Array:
        """A draw of N(value, scale² I), usable within `jax.jit`, `jax.lax.scan` and `jax.vmap`.

        Parameters
        ----------
        key
            A typed key, used once.
        value : [...]
            What is to be protected, of any shape and a float dtype.
        scale : []
            The standard deviation of the noise, above 0.
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
        count, sampling_rate
            As in `Query`.
        """
        ...
