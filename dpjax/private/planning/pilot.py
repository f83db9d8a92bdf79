"""What public or synthetic records say of the scales of a posterior: its mode, its precision, its contributions."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from dpjax.base import Array, Key
from dpjax.private.targets.target import Target
from dpjax.validation import fail

__all__ = ["Pilot", "explore"]

NUM_PROBES = 16
"""Draws near the mode at which the records' contributions are measured."""
MAX_STEPS = 500


class Pilot(NamedTuple):
    """The scales of a posterior of `num_records` records that are like the pilot's.

    mode, precision
        The mode [d] and the negative Hessian [d, d] of the log-posterior there.
    gradients : [records, d]
        ∇ log p(x | θ) of each of the pilot's records at the mode.
    weight
        How many records each of them stands for.
    gradient_norms
        ‖∇ log p(x | θ)‖ of each record at draws near the mode.
    ratio_slopes
        |log p(x | θ′) − log p(x | θ)| / ‖θ′ − θ‖ of each record and pairs of such draws.
    directions : [pairs, d]
        The unit vectors from θ to θ′.
    stiffness
        The largest curvature at such draws, in units of that at the mode.
    """

    mode: np.ndarray
    precision: np.ndarray
    gradients: np.ndarray
    weight: float
    gradient_norms: np.ndarray
    ratio_slopes: np.ndarray
    directions: np.ndarray
    stiffness: float

    def pull(self, bound: float) -> float:
        """The force at the mode of gradients clipped to `bound`, in units of the posterior's one deviation from it.

        It is what skewed gradients lose on one side.
        """
        norms = np.linalg.norm(self.gradients, axis=1, keepdims=True)
        lost = self.gradients * (1 - bound / np.maximum(norms, bound))
        return self.strength(lost @ np.linalg.inv(np.linalg.cholesky(self.precision)).T)

    def shift(self, bound: float) -> float:
        """How far ratios clipped to `bound`‖θ′ − θ‖ move the law left invariant, in deviations along a line."""
        slopes = self.gradients @ self.directions.T
        lost = slopes - np.clip(slopes, -bound, bound)
        informations = np.einsum("ji,ik,jk->j", self.directions, self.precision, self.directions)
        return self.strength(lost / np.sqrt(informations)) / len(self.directions) ** 0.5

    def strength(self, forces: np.ndarray) -> float:
        """The length of the sum over all records of forces [records, ...] that were measured on the pilot's.

        Estimated without bias: the sum over few records strays further than the sum over many does.
        """
        strayed = np.sum(forces**2)
        systematic = max(np.sum(np.sum(forces, axis=0) ** 2) - strayed, 0.0)
        return float(np.sqrt(self.weight**2 * systematic + self.weight * strayed))


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
        np.asarray(jax.jit(lambda vector: gradients(target, vector))(mode)),
        factor,
        np.asarray(jax.jit(jax.vmap(lambda vector: norms(target, vector)))(first)).ravel(),
        np.asarray(jax.jit(jax.vmap(lambda one, other: slopes(target, one, other)))(first, second)).ravel(),
        np.asarray(second - first) / np.linalg.norm(second - first, axis=1, keepdims=True),
        max(float(np.linalg.norm(scale.T @ np.asarray(curvature(vector)[1]) @ scale, 2)) for vector in first),
    )


def per_record(target: Target, function: Callable[[Array, Any], Array], vector: Array) -> Array:
    """`function(vector, record)` of each record [records, ...]."""
    values = jax.lax.map(lambda chunk: jax.vmap(lambda record: function(vector, record))(chunk), target.records)
    return values.reshape(-1, *values.shape[2:])[: target.num_records]


def gradients(target: Target, vector: Array) -> Array:
    """The gradients [records, d] at a vector."""
    return per_record(target, jax.grad(target.log_likelihood), vector)


def norms(target: Target, vector: Array) -> Array:
    """The gradient norms [records] at a vector."""
    return jnp.linalg.norm(gradients(target, vector), axis=1)


def slopes(target: Target, vector: Array, other: Array) -> Array:
    """The log-likelihood ratios [records] of two vectors, over their distance."""
    distance = jnp.linalg.norm(other - vector)
    ratios = per_record(target, target.log_likelihood, other) - per_record(target, target.log_likelihood, vector)
    return jnp.abs(ratios) / distance


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
