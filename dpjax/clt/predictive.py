"""Posterior predictive releases under the normal approximation of the sum."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dpjax.base import Array, Key, Model, Parameters
from dpjax.clt.inputs import find_source
from dpjax.clt.moments import Source, build_moments, make_points
from dpjax.clt.number import number_at, reference_number
from dpjax.mechanisms.base import parts_of
from dpjax.models.data_sets import take_number
from dpjax.models.programs import jit_model
from dpjax.numerics.linear_algebra import product
from dpjax.release import Release

__all__ = ["predict_values"]

NUM_POINTS = 1_024
"""Number of quadrature points: enough for a plot; the draws themselves were made with more if needed."""


def predict_values(key: Key, model: Model, release: Release, parameters: Parameters) -> np.ndarray:
    """Released values [draw, d] for parameters [draw, ...]: the sum is Normal, and rounded if the noise is integer."""
    rule_key, draw_key = jax.random.split(key)
    source = find_source(model, release)
    rule = make_points(rule_key, model, source, NUM_POINTS)
    numbers = jnp.arange(len(next(iter(parameters.values()))))
    return np.asarray(draw_sums(model, release, source, rule, draw_key, numbers, parameters))


@partial(jit_model, static_argnames=("source",))
def draw_sums(
    model: Model, release: Release, source: Source, rule: Any, key: Key, numbers: Array, parameters: Parameters
) -> Array:
    """The values of `predict_values`; draw k uses ``fold_in(key, k)``."""
    moments = build_moments(model, release, source, rule)
    whole = [where for part, where in parts_of(release.mechanism, release.value.size) if part.integer_noise]

    def draw(given: tuple[Array, Parameters]) -> Array:
        sum_key, noise_key = jax.random.split(jax.random.fold_in(key, given[0]))
        offset, covariance = moments(take_number(given[1])[0])
        values, vectors = jnp.linalg.eigh(covariance)
        normals = jnp.sqrt(jnp.maximum(values, 0.0)) * jax.random.normal(sum_key, offset.shape, offset.dtype)
        n = jnp.asarray(number_at(release, given[1]), offset.dtype)
        expected = release.value * (n / reference_number(release)) + n * offset
        total = expected + jnp.sqrt(n) * product(vectors, normals)
        for where in whole:
            total = total.at[where].set(jnp.round(total[where]))
        return release.mechanism.sample(noise_key, total)

    return jax.lax.map(draw, (numbers, parameters))
