"""The log-density of a released value at residuals, of which samplers ask for millions."""

from functools import partial

import jax
import jax.numpy as jnp

from dpjax.base import Array
from dpjax.mechanisms.base import AdditiveNoise, ElementwiseDensity, Mechanism
from dpjax.numerics import sum_rows
from dpjax.pytree import is_opaque

__all__ = ["log_densities_at", "log_density_at"]


def log_density_at(mechanism: Mechanism, value: Array, origin: Array, residual: Array) -> Array:
    """The log-density [] of the value given the statistic origin − residual [d]."""
    if isinstance(mechanism, AdditiveNoise):
        return jnp.sum(mechanism.log_noise(residual))
    return mechanism.log_density(value, origin - residual)


def log_densities_at(mechanism: Mechanism, value: Array, origin: Array, residuals: Array) -> Array:
    """The log-density [m] of the value given the statistic origin − residual, for each column of residuals [d, m]."""
    if is_opaque(mechanism) or not isinstance(mechanism, ElementwiseDensity):
        return jax.vmap(partial(log_density_at, mechanism, value, origin), in_axes=1)(residuals)
    # Parameters [d] become [d, 1], so that the columns need neither a loop nor a transposition.
    columns = jax.tree.map(as_column, mechanism)
    if isinstance(columns, AdditiveNoise):
        terms = columns.log_noise(residuals)
    else:
        terms = columns.log_density_terms(value[:, None], value[:, None] - residuals)
    return sum_rows(lambda row: terms[row], len(residuals))


def as_column(parameter: Array) -> Array:
    """A parameter [d] as a column [d, 1]; a number stays one."""
    return parameter[:, None] if jnp.ndim(parameter) == 1 else parameter
