"""Mechanisms whose density is raised to a power, for the steps of `dpjax.tempered`."""

from dataclasses import dataclass

import jax.numpy as jnp

from dpjax.base import Array, Key
from dpjax.mechanisms.base import AdditiveNoise, ElementwiseDensity, Mechanism, Parts, is_exact
from dpjax.mechanisms.independent import Independent
from dpjax.pytree import frozen_pytree, is_opaque


def temper_mechanism(mechanism: Mechanism, power: Array) -> Mechanism:
    """The mechanism with its density raised to a power [] above 0: the impossible stays impossible.

    Parts side by side are raised one by one, and what is exact stays so. It adds noise, or has a density that is
    elementwise, where the mechanism is so and JAX can look into it. Exact draws of a Normal record are of the mechanism
    itself: a tempered local release falls back to enumeration or a Metropolis step.
    """
    if isinstance(mechanism, Parts):
        parts = [(temper_mechanism(part, power), size) for part, size in mechanism.parts]
        return Independent(*zip(*parts, strict=True))
    if is_exact(mechanism):
        return mechanism
    if is_opaque(mechanism) or not isinstance(mechanism, ElementwiseDensity):
        return Tempered(mechanism, power)
    kind = TemperedNoise if isinstance(mechanism, AdditiveNoise) else TemperedTerms
    return kind(mechanism, power)


@frozen_pytree
@dataclass(frozen=True)
class Tempered:
    """The density η(value | statistic)^power: no law of a value, but a likelihood of the records."""

    mechanism: Mechanism
    power: Array

    def log_density(self, value: Array, statistic: Array) -> Array:
        """The log-density [] of the value [d] given the statistic [d], times the power."""
        return jnp.asarray(self.power) * self.mechanism.log_density(value, statistic)

    def sample(self, key: Key, statistic: Array) -> Array:
        """A value drawn by the mechanism itself, of the right shape; the power is no part of its law."""
        return self.mechanism.sample(key, statistic)


@frozen_pytree
@dataclass(frozen=True)
class TemperedTerms(Tempered):
    """The same where the log-density is a sum over coordinates."""

    def log_density_terms(self, value: Array, statistic: Array) -> Array:
        """The terms [..., d] of the log-density, times the power."""
        assert isinstance(self.mechanism, ElementwiseDensity)
        return jnp.asarray(self.power) * self.mechanism.log_density_terms(value, statistic)


@frozen_pytree
@dataclass(frozen=True)
class TemperedNoise(TemperedTerms):
    """The same of a mechanism that adds noise."""

    def log_noise(self, noise: Array) -> Array:
        """The log-density [..., d] of the noise, times the power."""
        assert isinstance(self.mechanism, AdditiveNoise)
        return jnp.asarray(self.power) * self.mechanism.log_noise(noise)
