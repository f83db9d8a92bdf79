"""How many records SOMA should try each offer at."""

from functools import partial

import jax
import jax.numpy as jnp

from dpjax.base import Array, Key, Latent, Model, Parameters
from dpjax.numbered import jit_model
from dpjax.numerics import proper_density
from dpjax.release import Release

ENOUGH = 0.9
"""The share of the greatest acceptance that is enough: the last tenth would cost many times the attempts."""

MAX_ATTEMPTS = 1024
NUM_OFFERS = 64


def choose_attempts(key: Key, model: Model, release: Release, latent: Latent, parameters: Parameters) -> int:
    """The smallest power of two (or n) at which SOMA accepts 90 % as often as with n, or with 1,024 attempts.

    Parameters
    ----------
    latent
        The records of the chains, leaves [chain, ...].
    parameters
        Their parameters, leaves [chain, ...].
    """
    sizes = candidate_sizes(release.n)
    keys = jax.random.split(key, latent.log_density.shape[0])
    rates = mean_acceptance(model, sizes, release, latent, parameters, keys)
    return next(size for size, rate in zip(sizes, rates, strict=True) if rate >= ENOUGH * rates[-1])


def candidate_sizes(n: int, most: int = MAX_ATTEMPTS) -> tuple[int, ...]:
    """The powers of two below n, and n, all at most `most`."""
    largest = min(n, most)
    return (*(2**power for power in range(largest.bit_length()) if 2**power < largest), largest)


@partial(jit_model, static_argnames=("sizes",))
def mean_acceptance(
    model: Model, sizes: tuple[int, ...], release: Release, latent: Latent, parameters: Parameters, keys: Key
) -> Array:
    """The acceptance probability for each number of attempts [sizes], averaged over offers and chains."""

    def chain(key: Key, latent: Latent, parameters: Parameters) -> Array:
        offers = release.contributions(model.sample_records(key, parameters, NUM_OFFERS)).T
        tried = release.contributions(jax.tree.map(lambda field: field[: sizes[-1]], latent.records))
        residual = release.origin - latent.statistic

        def offer(contribution: Array) -> Array:
            log_weights = proper_density(release.log_densities_at((residual - contribution)[:, None] + tried))
            return expected_acceptance(log_weights, latent.log_density, sizes)

        return jnp.mean(jax.vmap(offer)(offers), axis=0)

    return jnp.mean(jax.vmap(chain)(keys, latent, parameters), axis=0)


def expected_acceptance(log_weights: Array, log_current: Array, sizes: tuple[int, ...]) -> Array:
    """Σ (w_i / W) α_i over the first m records [sizes]: the chance that an offer of given weights is accepted."""
    scale = jnp.maximum(jnp.max(log_weights), log_current)
    weights, current = jnp.exp(log_weights - scale), jnp.exp(log_current - scale)

    def first(size: int) -> Array:
        tried = weights[:size]
        total = jnp.sum(tried)
        return jnp.sum(tried / jnp.maximum(jnp.maximum(total, total - tried + current), jnp.finfo(tried.dtype).tiny))

    return jnp.stack([first(size) for size in sizes])
