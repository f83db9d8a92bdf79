"""Noise from JAX's own generator: reproducible, for simulations and tests."""

from dataclasses import dataclass
from typing import Literal

import jax

from dpjax.base import Array, Key
from dpjax.private.accounting.query import Query
from dpjax.private.noise.base import Value, at_least, float_dtype


@dataclass(frozen=True)
class Threefry:
    """Gaussian noise from a JAX key, simulation-grade.

    Whoever knows or guesses the seed of the key can subtract the noise;
    threefry is not a cipher that anyone vouches for; and floating-point Gaussians reveal in their last bits what they
    were added to (Mironov 2012; Holohan and Braghin 2021). It is right for studying an algorithm, and wrong for
    publishing draws made from confidential records.

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
        del dimension  # the noise is taken for exactly Gaussian
        return Query(name, noise_multiplier, self.grade, count, sampling_rate)
