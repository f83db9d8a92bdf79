"""What the additive mechanisms share: the release is the statistic plus noise drawn apart for each coordinate.

The samplers are exact up to the resolution of floating-point numbers, which is enough for inference and
simulation. They are not hardened against attacks on the low bits: publish confidential data with other tools.
"""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from dpjax.base import Array, Key
from dpjax.validation import check_positive, fail


class Additive(ABC):
    """Adds independent noise, symmetric about zero, to each coordinate of a statistic.

    A subclass is a frozen pytree dataclass with the three elementwise methods `log_noise`, `log_cdf` and
    `sample_noise`; everything else follows from them. Each parameter is a scalar or has one entry a coordinate.
    Noise of whole numbers says so by ``integer_noise = True``.
    """

    integer_noise: ClassVar[bool] = False

    @abstractmethod
    def log_noise(self, noise: Array) -> Array:
        """The log-density of each coordinate's noise [..., d]."""

    @abstractmethod
    def log_cdf(self, noise: Array) -> Array:
        """The log-probability [..., d] that a coordinate's noise is at most the given one."""

    @abstractmethod
    def sample_noise(self, key: Key, shape: tuple[int, ...], dtype: Any) -> Array:
        """Draws of the noise, of the given shape and floating dtype."""

    def log_survival(self, noise: Array) -> Array:
        """The log-probability [..., d] that a coordinate's noise is at least the given one."""
        return self.log_cdf(-noise)

    def log_density_terms(self, value: Array, statistic: Array) -> Array:
        """The log-density of each coordinate of the value [..., d] given that of the statistic [..., d]."""
        return self.log_noise(as_floating(value) - as_floating(statistic))

    def log_density(self, value: Array, statistic: Array) -> Array:
        """The log-density [] of the value [d] given the statistic [d]."""
        return jnp.sum(self.log_density_terms(value, statistic))

    def sample(self, key: Key, statistic: Array) -> Array:
        """The statistic [d] plus a draw of the noise."""
        exact = as_floating(statistic)
        return exact + self.sample_noise(key, exact.shape, exact.dtype)


def as_floating(value: Any) -> Array:
    """The value as a floating array: integers take the default float dtype, floats keep theirs."""
    array = jnp.asarray(value)
    return array if jnp.issubdtype(array.dtype, jnp.floating) else array.astype(jnp.result_type(float))


def checked_scale(scale: Any, remedy: str) -> Any:
    """The scale, sequences made floating arrays, or an error unless every entry is finite and positive."""
    check_positive("scale", scale, remedy)
    if np.size(scale) == 0:
        fail("scale", "no number", "one, or one for each coordinate", remedy)
    return as_floating(scale) if isinstance(scale, (list, tuple, np.ndarray, np.generic, jax.Array)) else scale
