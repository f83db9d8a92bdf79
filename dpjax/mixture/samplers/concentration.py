"""The concentration of the Dirichlet process given the clusters, or the slots that they are in."""

import jax
import jax.numpy as jnp

from dpjax.base import Array, Key
from dpjax.mixture.samplers.weights import draw_sticks
from dpjax.models import GammaPrior
from dpjax.numerics.gamma import draw_log_gamma

__all__ = ["start_concentration", "update_concentration", "update_concentration_of_sticks"]

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


def update_concentration_of_sticks(
    key: Key, prior: Concentration, present: Array, counts: Array, truncated: bool
) -> Array:
    """The concentration [] after a move that leaves its law given the sizes [H] of the slots invariant.

    Slots have an order, on which the concentration's law depends: the number of clusters does not suffice. With a
    Gamma(a, b) prior, sticks v_h ~ Beta(1 + n_h, α + n_(h+1) + ...) up to the last cluster and then α ~ Gamma(a + their
    number, b - Σ log(1 - v_h)). In a truncated process the last slot takes all that is left and has no stick
    (Ishwaran and James 2001, section 5.2).
    """
    if not isinstance(prior, GammaPrior):
        return present
    key_sticks, key_gamma = jax.random.split(key)
    _, log_rests = draw_sticks(key_sticks, counts, present)
    broken = jnp.cumsum(counts[::-1])[::-1] > 0
    if truncated:
        broken = broken.at[-1].set(False)
    shape = jnp.asarray(prior.shape, present.dtype) + jnp.sum(broken, dtype=present.dtype)
    rate = jnp.asarray(prior.rate, present.dtype) - jnp.sum(jnp.where(broken, log_rests, 0))
    return jnp.exp(draw_log_gamma(key_gamma, shape[None])[0]) / rate
