"""What public or synthetic records say of the scales of a posterior: its mode, its precision, its contributions."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from dpjax.base import Array, Key
from dpjax.private.target import Target
from dpjax.validation import fail

__all__ = ["Pilot", "explore"]

NUM_PROBES = 16
"""Draws near the mode at which the records' contributions are measured."""
MAX_STEPS = 500


class Pilot(NamedTuple):
    """The scales of a posterior of `num_records` records that are like the pilot's.

    mode, precision
        The mode [d] and the negative Hessian [d, d] of the log-posterior there.
    gradient_norms
        ‖∇ log p(x | θ)‖ of each record at draws near the mode.
    ratio_slopes
        |log p(x | θ′) − log p(x | θ)| / ‖θ′ − θ‖ of each record and pairs of such draws.
    stiffness
        The largest curvature at such draws, in units of that at the mode.
    """

    mode: np.ndarray
    precision: np.ndarray
    gradient_norms: np.ndarray
    ratio_slopes: np.ndarray
    stiffness: float


def explore(key: Key, target: Target, num_records: int) -> Pilot:
    """The scales of the posterior of `num_records` records, from a target that holds fewer or other ones.

    Raises
    ------
    ValueError
        If the mode is not found or the records leave a direction without information.
    """
    factor = num_records / target.num_records
    start = jnp.zeros(target.dimension, target.weights.dtype)

    def log_density(vector: Array) -> Array:
        return factor * jnp.sum(per_record(target, target.log_likelihood, vector)) + target.log_prior(vector)

    curvature = jax.jit(lambda vector: (-jax.grad(log_density)(vector), -jax.hessian(log_density)(vector)))
    mode = find_mode(lambda vector: -log_density(vector) / num_records, start)
    gradient, precision = map(np.asarray, curvature(mode))
    scale = check_mode(precision, gradient)
    normals = jax.random.normal(key, (2, NUM_PROBES, target.dimension), mode.dtype)
    first, second = jnp.asarray(np.asarray(mode) + np.asarray(normals) @ scale.T, mode.dtype)
    return Pilot(
        np.asarray(mode),
        precision,
        np.asarray(jax.jit(jax.vmap(lambda vector: norms(target, vector)))(first)).ravel(),
        np.asarray(jax.jit(jax.vmap(lambda one, other: slopes(target, one, other)))(first, second)).ravel(),
        max(float(np.linalg.norm(scale.T @ np.asarray(curvature(vector)[1]) @ scale, 2)) for vector in first),
    )


def per_record(target: Target, function: Callable[[Array, Any], Array], vector: Array) -> Array:
    """`function(vector, record)` of each record [chunks, chunk], 0 for filling."""
    values = jax.lax.map(lambda chunk: jax.vmap(lambda record: function(vector, record))(chunk), target.records)
    return jnp.where(target.weights > 0, values, 0.0)


def norms(target: Target, vector: Array) -> Array:
    """The gradient norms [records] at a vector."""
    gradient = jax.grad(target.log_likelihood)
    return per_record(target, lambda at, record: jnp.linalg.norm(gradient(at, record)), vector).ravel()[
        : target.num_records
    ]


def slopes(target: Target, vector: Array, other: Array) -> Array:
    """The log-likelihood ratios [records] of two vectors, over their distance."""
    distance = jnp.linalg.norm(other - vector)
    ratios = per_record(target, target.log_likelihood, other) - per_record(target, target.log_likelihood, vector)
    return jnp.abs(ratios).ravel()[: target.num_records] / distance


def find_mode(loss: Callable[[Array], Array], start: Array) -> Array:
    """The minimum of a loss by optax's L-BFGS."""
    optimizer = optax.lbfgs()
    value_and_gradient = optax.value_and_grad_from_state(loss)
    tolerance = float(jnp.finfo(start.dtype).eps) ** 0.6

    def is_moving(carry: tuple[Array, Array, Any]) -> Array:
        count, vector, _ = carry
        return (count < MAX_STEPS) & (jnp.linalg.norm(jax.grad(loss)(vector)) > tolerance)

    def step(carry: tuple[Array, Array, Any]) -> tuple[Array, Array, Any]:
        count, vector, state = carry
        value, gradient = value_and_gradient(vector, state=state)
        updates, state = optimizer.update(gradient, state, vector, value=value, grad=gradient, value_fn=loss)
        return count + 1, vector + updates, state

    first = (jnp.zeros((), jnp.int32), start, optimizer.init(start))
    with jax.numpy_dtype_promotion("standard"):  # as optax has it
        return jax.jit(lambda: jax.lax.while_loop(is_moving, step, first)[1])()


def check_mode(precision: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    """A factor [d, d] of the inverse precision; an error unless it exists and the gradient is that of a mode."""
    try:
        factor = np.linalg.inv(np.linalg.cholesky(precision)).T
    except np.linalg.LinAlgError:
        remedy = "Use a pilot that informs every parameter, or a proper prior."
        fail("pilot", "a log-posterior that is flat or not concave at its mode", "a positive definite Hessian", remedy)
    if not np.linalg.norm(factor.T @ gradient) < 0.1 * np.sqrt(len(gradient)):
        remedy = "Give parameters of order 1, and a log-likelihood with one mode."
        fail("pilot", "a log-posterior of which the mode was not found", "one that L-BFGS can climb", remedy)
    return factor
