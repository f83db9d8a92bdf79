"""How many records pCN should move together, and how far: what moves the statistic most for its cost.

Costs are counted and not timed, so that equal keys give equal draws.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from dpjax.base import Array, Key, Latent, Model, Parameters
from dpjax.imputation.attempts import candidate_sizes
from dpjax.imputation.noise_offers import build_offer
from dpjax.imputation.systematic import sum_blocks
from dpjax.models.noise_columns import has_scores
from dpjax.numbered import jit_model
from dpjax.numerics import proper_density
from dpjax.release import Release

CORRELATIONS = (0.0, 0.5, 0.8, 0.9, 0.95, 0.98)
"""Those to choose from."""

FIXED_COST = 1.5
"""What a sweep costs for each record beside its scan, in steps of the scan; see docs/choosing.md."""


MAX_BLOCK = 64
"""Beyond, the scan costs nothing beside the rest, so that larger blocks save nothing."""

ENOUGH_RECORDS = 2_048
"""So many offers of each chain are looked at, or all n if they are more."""


def candidate_blocks(n: int) -> tuple[int, ...]:
    """The powers of two below n, and n, all at most `MAX_BLOCK`."""
    return candidate_sizes(n, MAX_BLOCK)


def candidate_correlations(model: Model) -> tuple[float, ...]:
    """All `CORRELATIONS`, or 0 alone where the model has no standard Normal noise."""
    return CORRELATIONS if has_scores(model) else (0.0,)


def choose_block(
    key: Key,
    model: Model,
    release: Release,
    latent: Latent,
    parameters: Parameters,
    blocks: tuple[int, ...],
    correlations: tuple[float, ...],
) -> tuple[int, float]:
    """The block and correlation of the greatest expected squared jump of the statistic for its cost.

    Parameters
    ----------
    latent
        The records of the chains, leaves [chain, ...].
    parameters
        Their parameters, leaves [chain, ...].
    blocks
        The sizes to choose from.
    correlations
        The correlations to choose from.
    """
    keys = jax.random.split(key, latent.log_density.shape[0])
    jumps = np.asarray(mean_jumps(model, blocks, correlations, release, latent, parameters, keys), float)
    gains = jumps / (FIXED_COST + 1.0 / np.asarray(blocks, float))
    row, column = np.unravel_index(np.argmax(gains), gains.shape)
    return blocks[column], correlations[row]


@partial(jit_model, static_argnames=("blocks", "correlations"))
def mean_jumps(
    model: Model,
    blocks: tuple[int, ...],
    correlations: tuple[float, ...],
    release: Release,
    latent: Latent,
    parameters: Parameters,
    keys: Key,
) -> Array:
    """The expected squared jump [correlations, blocks] of a sweep, averaged over chains.

    Each coordinate of the statistic counts in units of what independent offers that are all accepted would give.
    """
    offer = build_offer(model, correlated=correlations != (0.0,))

    def chain(key: Key, latent: Latent, parameters: Parameters) -> Array:
        unit_key, offer_key = jax.random.split(key)
        current = release.contributions(latent.records)
        fresh = release.contributions(model.sample_records(unit_key, parameters, release.n)) - current
        unit = jnp.sum(fresh**2, axis=1)
        weights = jnp.where(unit > 0, 1 / jnp.where(unit > 0, unit, 1.0), 0.0)

        def jumps(correlation: Array, index: Array) -> Array:
            # One key for all correlations: they are compared on the same innovations.
            offers = offer(jax.random.fold_in(offer_key, index), parameters, latent.records, correlation)
            changes = release.contributions(offers) - current
            return jnp.stack([expected_jump(release, latent, sum_blocks(changes, block), weights) for block in blocks])

        def mean_jump(correlation: Array) -> Array:
            repeats = jnp.arange(num_repeats(release.n))
            return jnp.mean(jax.lax.map(lambda index: jumps(correlation, index), repeats), axis=0)

        return jax.lax.map(mean_jump, jnp.asarray(correlations, float))

    return jnp.mean(jax.vmap(chain)(keys, latent, parameters), axis=0)


def num_repeats(n: int) -> int:
    """How many sweeps' offers are averaged: few records make few blocks."""
    return max(1, ENOUGH_RECORDS // n)


def expected_jump(release: Release, latent: Latent, changes: Array, weights: Array) -> Array:
    """Σ min(1, η′/η) |change|² over the changes [d, blocks] of the statistic, its coordinates weighted by [d]."""
    residual = release.origin - latent.statistic
    log_densities = proper_density(release.log_densities_at(residual[:, None] - changes))
    acceptance = jnp.exp(jnp.minimum(log_densities - latent.log_density, 0.0))
    return jnp.sum(acceptance * (weights @ changes**2))
