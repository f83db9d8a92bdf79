"""Whole numbers without a list of their values move by a random walk, if the model's density holds them in."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.validation import fail, is_tracing
from dpjax.base import Array, Model
from dpjax.models.programs import jit_model
from dpjax.models.simulation import draw_parameters

__all__ = ["check_density_falls"]

FAR = 2**20
"""How far from zero no drawn number is expected."""

LEAST_FALL = 5.0
"""By how much log-densities fall out there; those of codes do not fall, unless the density names each code."""

NUM_DRAWS = 8


def check_density_falls(model: Model, n: int, name: str) -> None:
    """Raise unless the log-density is much lower where a field of whole numbers is far from all that is drawn.

    A walk would otherwise leave the possible values: a density such as ``where(label == 1, p, 1 - p)`` has the value
    1 - p at label 7, too.
    """
    if is_tracing() or np.all(np.asarray(falls(model, n, name)) >= LEAST_FALL):
        return
    given = f"no list of the values of the field {name!r}, and a density that does not fall where it is ±{FAR:,}"
    expected = "a list of its possible values, as it is hidden in part while other fields are exact"
    remedy = "Give the model a `discrete_support`, the field a channel of categories, or other values a density of 0."
    fail("model", given, expected, remedy)


@partial(jit_model, static_argnames=("n", "name"))
def falls(model: Model, n: int, name: str) -> Array:
    """By how much the log-density falls, in the median, if a field is put far below [0] and far above [1] zero."""
    parameter_key, record_key = jax.random.split(jax.random.key(0))
    drawn = draw_parameters(parameter_key, model, NUM_DRAWS)
    records = jax.vmap(lambda key, parameters: model.sample_records(key, parameters, n))(
        jax.random.split(record_key, NUM_DRAWS), drawn
    )

    def log_density_at(far: Array | None) -> Array:
        numbers = records[name]
        moved = numbers if far is None else jnp.full_like(numbers, far)
        log_density = jax.vmap(model.log_density)(drawn, records | {name: moved})
        return jnp.nan_to_num(log_density, nan=-jnp.inf, posinf=-jnp.inf, neginf=-jnp.inf)

    near = log_density_at(None)
    largest = min(FAR, jnp.iinfo(records[name].dtype).max)
    return jnp.stack([jnp.median(near - log_density_at(jnp.asarray(far))) for far in (-largest, largest)])
