"""An integer mechanism as a user would write one, in one file: Laplace noise rounded to whole numbers."""

from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

import dpjax
from dpjax.mechanisms import Additive


@dpjax.mechanisms.frozen_pytree
@dataclass(frozen=True)
class RoundedLaplace(Additive):
    """Adds round(L), L of density exp(-|u| / scale) / (2 scale), to each coordinate."""

    integer_noise: ClassVar[bool] = True

    scale: float

    def log_noise(self, noise: jax.Array) -> jax.Array:
        rate = 1 / jnp.asarray(self.scale)
        at_zero = jnp.log(-jnp.expm1(-rate / 2))
        beyond = jnp.log(-jnp.expm1(-rate) / 2) - (jnp.abs(noise) - 0.5) * rate
        return jnp.where(noise == jnp.floor(noise), jnp.where(noise == 0, at_zero, beyond), -jnp.inf)

    def log_cdf(self, noise: jax.Array) -> jax.Array:
        edge = (jnp.floor(noise) + 0.5) / self.scale
        smaller_side = jnp.exp(-jnp.abs(edge)) / 2
        return jnp.where(edge < 0, jnp.log(smaller_side), jnp.log1p(-smaller_side))

    def sample_noise(self, key: jax.Array, shape: tuple[int, ...], dtype: Any) -> jax.Array:
        return jnp.round(self.scale * jax.random.laplace(key, shape, dtype))
