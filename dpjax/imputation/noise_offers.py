"""Offers of records that lie near the present ones in their standard Normal noise."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from dpjax.base import Array, Key, Model, Parameters, Records
from dpjax.models.noise_columns import scores_of
from dpjax.numerics import leading_size, take_if

Offer = Callable[[Key, Parameters, Records, Array | float], Records]


def build_offer(model: Model, correlated: bool) -> Offer:
    """The offers ``(key, parameters, records, correlation) -> records``, one to each record."""
    if not correlated:
        return lambda key, parameters, records, _: model.sample_records(key, parameters, leading_size(records))

    def offer(key: Key, parameters: Parameters, records: Records, correlation: Array | float) -> Records:
        noise_key, fresh_key = jax.random.split(key)
        scores = scores_of(model, noise_key, parameters, records)
        offers = mix(model, parameters, scores, draw_like(fresh_key, scores), correlation)
        # A record so far out that no noise gives it stays as it is.
        return take_if(have_noise(scores), offers, records)

    return offer


def offer_at(model: Model, correlation: float) -> Callable[[Key, Parameters, Records], Records]:
    """The offers of one correlation."""
    offer = build_offer(model, correlated=correlation > 0)
    return lambda key, parameters, records: offer(key, parameters, records, correlation)


def have_noise(scores: Any) -> Array:
    """Which records [n] have finite scores."""
    finite = [jnp.isfinite(leaf).all(axis=tuple(range(leaf.ndim - 1))) for leaf in jax.tree.leaves(scores)]
    return jnp.stack(finite).all(axis=0)


def draw_like(key: Key, scores: Any) -> Any:
    """Standard Normal draws of the same structure."""
    leaves, structure = jax.tree.flatten(scores)
    draws = [
        jax.random.normal(jax.random.fold_in(key, index), leaf.shape, leaf.dtype) for index, leaf in enumerate(leaves)
    ]
    return jax.tree.unflatten(structure, draws)


def mix(model: Model, parameters: Parameters, scores: Any, fresh: Any, correlation: Array | float) -> Records:
    """The records at ``correlation · scores + √(1 − correlation²) · fresh``."""
    assert model.noncentred is not None
    assert model.noncentred.scores is not None
    spread = jnp.sqrt(1 - jnp.square(jnp.asarray(correlation, float)))
    mixed = jax.tree.map(lambda old, new: (correlation * old + spread * new).astype(old.dtype), scores, fresh)
    return model.noncentred.records(parameters, model.noncentred.scores.noise(mixed))
