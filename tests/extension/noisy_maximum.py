"""A release of a kind that is not among those shipped, as a user would write one, in one file: a noisy maximum."""

from dataclasses import dataclass, field, replace

import jax
import jax.numpy as jnp

import dpjax


@dpjax.mechanisms.frozen_pytree
@dataclass(frozen=True, eq=False, repr=False)
class NoisyMaximum(dpjax.release.OwnRelease):
    """The largest value of the field `y` plus uniform noise on ±width [1]."""

    observed: jax.Array
    width: float
    n: int = field(metadata={"static": True})
    power: float = 1.0

    def log_likelihood(self, records: dict[str, jax.Array]) -> jax.Array:
        is_near = jnp.abs(self.observed[0] - jnp.max(records["y"])) < self.width
        return jnp.where(is_near, -self.power * jnp.log(2 * jnp.asarray(self.width)), -jnp.inf)

    def sample(self, key: jax.Array, records: dict[str, jax.Array]) -> "NoisyMaximum":
        noise = self.width * jax.random.uniform(key, (1,), minval=-1.0, maxval=1.0)
        return self.observing(jnp.max(records["y"]) + noise)

    def tempered(self, power: jax.Array) -> "NoisyMaximum":
        return replace(self, power=self.power * power)
