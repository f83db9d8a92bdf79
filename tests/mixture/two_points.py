"""A component whose parameter takes two values: with it the posterior of partitions can be enumerated."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp

import dpjax
from dpjax.mixture import Tractable, register_tractable

MEANS = (-1.0, 1.5)
SCALE = 0.7
PRIOR = (0.3, 0.7)


@dpjax.mechanisms.frozen_pytree
@dataclass(frozen=True)
class TwoPoints:
    """Records N(mean, SCALE²), where the mean is one of `MEANS` with probabilities `PRIOR`."""

    def sample_prior(self, key: jax.Array, size: int) -> dict[str, jax.Array]:
        return self._pick(jax.random.uniform(key, (size,)) < PRIOR[1])

    def sample(self, key: jax.Array, theta: dict[str, jax.Array]) -> jax.Array:
        return theta["mean"] + SCALE * jax.random.normal(key, theta["mean"].shape)

    def log_density(self, record: jax.Array, theta: dict[str, jax.Array]) -> jax.Array:
        return jax.scipy.stats.norm.logpdf(record, theta["mean"], SCALE)

    def features(self, record: jax.Array) -> jax.Array:
        first, second = jax.scipy.stats.norm.logpdf(record, jnp.array(MEANS), SCALE)
        return (second - first)[None]

    def update(self, key: jax.Array, theta: dict, counts: jax.Array, totals: jax.Array) -> dict[str, jax.Array]:
        log_odds = jnp.log(PRIOR[1] / PRIOR[0]) + totals[:, 0]
        return self._pick(jax.random.uniform(key, counts.shape) < jax.nn.sigmoid(log_odds))

    def _pick(self, second: jax.Array) -> dict[str, jax.Array]:
        return {"mean": jnp.where(second, MEANS[1], MEANS[0])}


@dpjax.mechanisms.frozen_pytree
@dataclass(frozen=True)
class KnownTwoPoints(TwoPoints):
    """The same, registered with its marginal under Laplace noise."""


@dpjax.mechanisms.frozen_pytree
@dataclass(frozen=True)
class ReleasedTwoPoints(TwoPoints):
    """Released values of such records behind Laplace noise: to a sampler, records without a channel."""

    noise: float

    def log_density(self, record: jax.Array, theta: dict[str, jax.Array]) -> jax.Array:
        channel = dpjax.Laplace(self.noise)
        return channel.noise.log_marginal_normal(record, theta["mean"], jnp.full_like(record, SCALE))

    def features(self, record: jax.Array) -> jax.Array:
        return jnp.stack([self.log_density(record, {"mean": jnp.asarray(mean, record.dtype)}) for mean in MEANS])

    def update(self, key: jax.Array, theta: dict, counts: jax.Array, totals: jax.Array) -> dict[str, jax.Array]:
        return super().update(key, theta, counts, totals[:, 1:] - totals[:, :1])

    def log_evidence(self, counts: jax.Array, totals: jax.Array) -> jax.Array:
        return jax.scipy.special.logsumexp(totals + jnp.log(jnp.array(PRIOR, totals.dtype))[None], axis=1)


@register_tractable(dpjax.Laplace, KnownTwoPoints)
def two_points_behind_laplace(channel: dpjax.Laplace, component: KnownTwoPoints) -> Tractable:
    return Tractable(
        lambda value, theta: channel.noise.log_marginal_normal(value, theta["mean"], jnp.full_like(value, SCALE)),
        lambda key, values, theta: channel.noise.sample_latent_normal(key, values, theta["mean"], jnp.asarray(SCALE)),
    )
