"""A mechanism of a kind that is not among those shipped, as a user would write one, in one file: binomial thinning."""

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
from jax.scipy.special import gammaln, xlog1py

import dpjax
from dpjax.mechanisms import Mechanism, PossibleSums, Promised


@dpjax.mechanisms.frozen_pytree
@dataclass(frozen=True)
class Thinned(Mechanism):
    """Releases how many of those counted are in a Poisson subsample of this rate: Binomial(count, rate)."""

    integer_noise: ClassVar[bool] = True

    rate: float

    @property
    def promise(self) -> Promised:
        return Promised(words=lambda: f"counts of a Poisson subsample of rate {self.rate}")

    @property
    def sums(self) -> PossibleSums:
        """No count is below what was seen of it."""
        return PossibleSums(
            bounds=lambda value: (value, jnp.full_like(value, jnp.inf)),
            largest=self._largest,
            near=lambda value: jnp.round(value / self.rate),
            whole=lambda size: (slice(0, size),),
        )

    def _largest(self, value: jax.Array, low: jax.Array, high: jax.Array) -> jax.Array:
        """The probability rises up to value / rate, and falls from there."""
        nearest = jnp.clip(jnp.floor(value / self.rate), jnp.maximum(low, value), jnp.maximum(high, value))
        return jnp.where(high >= value, self.log_density_terms(value, nearest), -jnp.inf)

    def check_value(self, argument: str, value: jax.Array) -> None:
        if jnp.any(value < 0):
            raise ValueError(f"{argument}: given a negative count; expected counts of at least 0")

    def log_density_terms(self, value: jax.Array, statistic: jax.Array) -> jax.Array:
        left = statistic - value
        possible = (value >= 0) & (left >= 0)
        value, left = jnp.where(possible, value, 0.0), jnp.where(possible, left, 0.0)
        ways = gammaln(value + left + 1) - gammaln(value + 1) - gammaln(left + 1)
        odds = value * jnp.log(jnp.asarray(self.rate)) + xlog1py(left, -jnp.asarray(self.rate))
        return jnp.where(possible, ways + odds, -jnp.inf)

    def log_density(self, value: jax.Array, statistic: jax.Array) -> jax.Array:
        return jnp.sum(self.log_density_terms(value, statistic))

    def sample(self, key: jax.Array, statistic: jax.Array) -> jax.Array:
        return jax.random.binomial(key, statistic, self.rate)
