"""A mechanism whose density is raised to a power, for the steps of `dpjax.tempered`."""

from collections.abc import Callable
from dataclasses import dataclass

import jax.numpy as jnp

from dpjax.base import Array, Key, Mechanism
from dpjax.pytree import frozen_pytree, is_opaque


@frozen_pytree
@dataclass(frozen=True)
class Tempered:
    """The density η(value | statistic)^power: no law of a value, but a likelihood of the records.

    Parameters
    ----------
    mechanism
        The mechanism whose density is η.
    power : []
        Above 0: there the impossible stays impossible.

    Notes
    -----
    The columnwise forms exist where the mechanism has them. Exact draws of a Normal record do not: they are of the
    mechanism itself, so that a tempered local release falls back to enumeration or to a Metropolis step.
    """

    mechanism: Mechanism
    power: Array

    def log_density(self, value: Array, statistic: Array) -> Array:
        """The log-density [] of the value [d] given the statistic [d], times the power."""
        return jnp.asarray(self.power) * self.mechanism.log_density(value, statistic)

    @property
    def log_density_terms(self) -> Callable[[Array, Array], Array]:
        """The terms of the log-density, where the mechanism has them and JAX can look into it."""
        return self._times_power("log_density_terms")

    @property
    def log_noise(self) -> Callable[[Array], Array]:
        """The log-density of the noise, where the mechanism has one and JAX can look into it."""
        return self._times_power("log_noise")

    def sample(self, key: Key, statistic: Array) -> Array:
        """A value drawn by the mechanism itself, of the right shape; the power is no part of its law."""
        return self.mechanism.sample(key, statistic)

    def _times_power(self, name: str) -> Callable[..., Array]:
        if is_opaque(self.mechanism):
            raise AttributeError(name)
        terms = getattr(self.mechanism, name)
        return lambda *arguments: jnp.asarray(self.power) * terms(*arguments)
