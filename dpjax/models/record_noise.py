"""The noise of records as standard Normal variables, one column per record."""

from typing import Any

import jax
import jax.numpy as jnp

from dpjax.base import Array, Key, Model, NonCentred, NormalScores, Parameters, Records
from dpjax.models.simulation import position_shapes

__all__ = [
    "has_real_fields",
    "has_scores",
    "normal_scores",
    "num_rows",
    "records_at",
    "scores_of",
    "to_columns",
    "weigh_noise",
]


def has_scores(model: Model) -> bool:
    """Whether the records are a function of standard Normal noise that does not depend on the parameters."""
    return model.noncentred.scores is not None and model.noncentred.log_density is None


def normal_scores(model: Model) -> NormalScores:
    """The noise of a model that has them as standard Normal variables."""
    assert model.noncentred.scores is not None
    return model.noncentred.scores


def weigh_noise(form: NonCentred, parameters: Parameters, noise: Any) -> tuple[Array, Array]:
    """The log-density [] of all noise, 0 if it is free of the parameters, and whether it gives records []."""
    log_density, possible = jnp.zeros(()), jnp.array(True)
    if form.log_density is not None:
        log_density = jnp.sum(form.log_density(parameters, noise))
    if form.possible is not None:
        possible = jnp.all(form.possible(parameters, noise))
    return log_density, possible


def has_real_fields(model: Model) -> bool:
    """Whether some field of the records is real: the sum of discrete ones has no slope in their noise."""
    fields = jax.tree.leaves(position_shapes(model, model.num_records or 1).records)
    return any(jnp.issubdtype(field.dtype, jnp.floating) for field in fields)


def scores_of(model: Model, key: Key, parameters: Parameters, records: Records) -> Any:
    """The standard Normal noise [..., n] of the records, a draw given the records if it is not unique."""
    return normal_scores(model).scores(model.noncentred.noise(key, parameters, records))


def noise_shapes(model: Model) -> Any:
    """The shapes [..., 1] of the noise of one record in the non-centred form."""
    n = 1 if model.exchangeable else model.num_records
    position = position_shapes(model, n or 1)
    key = jax.eval_shape(jax.random.key, 0)
    shapes = jax.eval_shape(model.noncentred.noise, key, position.parameters, position.records)
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct((*leaf.shape[:-1], 1), leaf.dtype), shapes)


def num_rows(model: Model) -> int:
    """The number k of noise variables of one record."""
    return sum(leaf.size for leaf in jax.tree.leaves(noise_shapes(model)))


def to_columns(model: Model, key: Key, parameters: Parameters, records: Records) -> Array:
    """The columns [k, n] of n records, a draw given the records if they are not unique."""
    scores = scores_of(model, key, parameters, records)
    return jnp.concatenate([leaf.reshape(-1, leaf.shape[-1]) for leaf in jax.tree.leaves(scores)])


def records_at(model: Model, parameters: Parameters, columns: Array) -> Records:
    """The records [q] of columns [k, q]."""
    leaves, structure = jax.tree.flatten(noise_shapes(model))
    normals, start = [], 0
    for leaf in leaves:
        normals.append(columns[start : start + leaf.size].reshape(*leaf.shape[:-1], columns.shape[1]))
        start += leaf.size
    return model.noncentred.records(parameters, normal_scores(model).noise(jax.tree.unflatten(structure, normals)))
