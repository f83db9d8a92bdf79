"""The concentration of the Dirichlet process given the number of clusters."""

import jax
import jax.numpy as jnp

from dpjax.base import Array, Key
from dpjax.models import GammaPrior
from dpjax.models.gamma import draw_log_gamma

__all__ = ["start_concentration", "update_concentration"]

Concentration = float | Array | GammaPrior


def start_concentration(key: Key, concentration: Concentration) -> Array:
    """The concentration [] itself, or a draw from its prior."""
    if isinstance(concentration, GammaPrior):
        return concentration.sample(key, ())
    return jnp.asarray(concentration, float)


def update_concentration(key: Key, prior: Concentration, present: Array, num_clusters: Array, n: int) -> Array:
    """The concentration [] after a move that leaves its law given the number of clusters invariant.

    A fixed one stays as it is. With a Gamma(a, b) prior, η ~ Beta(α + 1, n) and then α ~ Gamma(a + k or a + k - 1,
    b - log η), the first with odds (a + k - 1) / (n (b - log η)): Escobar and West (1995, section 6).
    """
    if not isinstance(prior, GammaPrior):
        return present
    key_beta, key_mixture, key_gamma = jax.random.split(key, 3)
    shape, rate = jnp.asarray(prior.shape, present.dtype), jnp.asarray(prior.rate, present.dtype)
    pair = draw_log_gamma(key_beta, jnp.stack([present + 1, jnp.asarray(n, present.dtype)]))
    rate = rate - jax.nn.log_sigmoid(pair[0] - pair[1])
    least = shape + num_clusters.astype(present.dtype) - 1
    larger = jax.random.uniform(key_mixture, (), present.dtype) * (least + n * rate) < least
    return jnp.exp(draw_log_gamma(key_gamma, jnp.where(larger, least + 1, least)[None])[0]) / rate
