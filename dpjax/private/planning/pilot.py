"""A posterior's mode, precision and sizes of gradients and ratios, estimated from public or synthetic records."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from dpjax._util.validation import fail
from dpjax.base import Array, Key
from dpjax.numerics.linear_algebra import product
from dpjax.private.targets.target import Target

__all__ = ["Pilot", "explore"]

NUM_PROBES = 16
"""Draws from the normal approximation at which gradients and log-likelihood ratios of the records are measured."""
MAX_STEPS = 500


class Pilot(NamedTuple):
    """Estimates for the posterior of n confidential records that have the distribution of the pilot's m.

    All but the mode are on the scale of u with θ = S u, on which records are clipped.

    Attributes
    ----------
    scale
        S [d, d].
    mode
        The mode [d], of θ.
    precision
        The negative Hessian P [d, d] of the log-posterior there.
    gradients : [m, d]
        The gradients ∇ log p(x | θ) of the pilot's records at the mode.
    weight
        n / m.
    gradient_norms
        ‖∇ log p(x | θ)‖ of each record at draws from N(mode, P⁻¹).
    ratio_slopes
        |log p(x | θ′) − log p(x | θ)| / ‖u′ − u‖ of each record and pairs of such draws.
    directions : [pairs, d]
        The unit vectors from u to u′.
    stiffness
        The largest eigenvalue of the negative Hessian at such draws, where P is the unit matrix.
    """

    scale: np.ndarray
    mode: np.ndarray
    precision: np.ndarray
    gradients: np.ndarray
    weight: float
    gradient_norms: np.ndarray
    ratio_slopes: np.ndarray
    directions: np.ndarray
    stiffness: float

    def pull(self, bound: float) -> float:
        """The bias ‖P^(−1/2) Σ (g − clip(g))‖ at the mode of the sum of gradients clipped to norm `bound`.

        It is zero for gradients that are distributed symmetrically about zero.
        """
        norms = np.linalg.norm(self.gradients, axis=1, keepdims=True)
        lost = self.gradients * (1 - bound / np.maximum(norms, bound))
        return self.norm_of_sum(lost @ np.linalg.inv(np.linalg.cholesky(self.precision)).T)

    def shift(self, bound: float) -> float:
        """The shift of the stationary distribution by ratios clipped to ±`bound`‖θ′ − θ‖, in standard deviations.

        To first order, as the root mean square over the directions.
        """
        slopes = self.gradients @ self.directions.T
        lost = slopes - np.clip(slopes, -bound, bound)
        informations = np.einsum("ji,ik,jk->j", self.directions, self.precision, self.directions)
        return self.norm_of_sum(lost / np.sqrt(informations)) / len(self.directions) ** 0.5

    def norm_of_sum(self, summands: np.ndarray) -> float:
        """The norm of a sum over n records, estimated from the m summands [m, ...] of the pilot's.

        The squared norm is estimated without bias: scaling that of the pilot's sum by (n / m)² would count the sampling
        error of the m summands as part of their mean.
        """
        scatter = np.sum(summands**2)
        systematic = max(np.sum(np.sum(summands, axis=0) ** 2) - scatter, 0.0)
        return float(np.sqrt(self.weight**2 * systematic + self.weight * scatter))


def explore(key: Key, target: Target, num_records: int) -> tuple[Pilot, Pilot]:
    """Estimates for the posterior of `num_records` records, from a target that holds the pilot's.

    They are on the parameters' own scale, and on that on which the posterior is N(0, I).

    Raises
    ------
    ValueError
        If the mode is not found, or the log-posterior is not strictly concave there.
    """
    factor = num_records / target.num_records
    start = jnp.zeros(target.dimension, target.dtype)

    def log_density(vector: Array) -> Array:
        return factor * jnp.sum(per_record(target, target.log_likelihood, vector)) + target.log_prior(vector)

    curvature = jax.jit(lambda vector: (-jax.grad(log_density)(vector), -jax.hessian(log_density)(vector)))
    mode = find_mode(lambda vector: -log_density(vector) / num_records, start)
    gradient, precision = map(np.asarray, curvature(mode))
    whitening = check_mode(precision, gradient)
    normals = jax.random.normal(key, (2, NUM_PROBES, target.dimension), mode.dtype)
    first, second = jnp.asarray(np.asarray(mode) + np.asarray(normals) @ whitening.T, mode.dtype)
    slopes = np.asarray(jax.jit(lambda vector: gradients(target, vector))(mode))
    changes = np.asarray(jax.jit(jax.vmap(lambda one, other: ratios(target, one, other)))(first, second))
    scales = np.stack([np.eye(target.dimension, dtype=precision.dtype), whitening])
    norms_at = jax.jit(jax.vmap(lambda vector: norms(target, vector, jnp.asarray(scales, mode.dtype))))
    lengths = np.asarray(norms_at(first))
    curvatures = [whitening.T @ np.asarray(curvature(vector)[1]) @ whitening for vector in first]
    stiffness = max(float(np.linalg.norm(matrix, 2)) for matrix in curvatures)

    def measure(scale: np.ndarray, gradient_norms: np.ndarray) -> Pilot:
        moves = np.asarray(second - first) @ np.linalg.inv(scale).T
        distances = np.linalg.norm(moves, axis=1, keepdims=True)
        return Pilot(
            scale,
            np.asarray(mode),
            scale.T @ precision @ scale,
            slopes @ scale,
            factor,
            gradient_norms.ravel(),
            (changes / distances).ravel(),
            moves / distances,
            stiffness,
        )

    return measure(scales[0], lengths[:, 0]), measure(scales[1], lengths[:, 1])


def per_record(target: Target, function: Callable[[Array, Any], Array], vector: Array) -> Array:
    """`function(vector, record)` of each record [records, ...]."""
    values = jax.lax.map(lambda chunk: jax.vmap(lambda record: function(vector, record))(chunk), target.records)
    return values.reshape(-1, *values.shape[2:])[: target.num_records]


def gradients(target: Target, vector: Array) -> Array:
    """The gradients [records, d] at a vector."""
    return per_record(target, jax.grad(target.log_likelihood), vector)


def norms(target: Target, vector: Array, scales: Array) -> Array:
    """The norms [scale, records] of gradients at a vector, as functions of u with θ = S u, for each S [scale, d, d]."""
    return jnp.linalg.norm(product(gradients(target, vector), scales), axis=-1)


def ratios(target: Target, vector: Array, other: Array) -> Array:
    """The absolute log-likelihood ratios [records] of two vectors."""
    return jnp.abs(per_record(target, target.log_likelihood, other) - per_record(target, target.log_likelihood, vector))


def find_mode(loss: Callable[[Array], Array], start: Array) -> Array:
    """The minimum of a loss by optax's L-BFGS; in float32 that of SciPy may stop where the gradient is larger."""
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
    """A factor C [d, d] of P⁻¹ = C Cᵀ; an error unless it exists and the gradient is that of a mode."""
    try:
        factor = np.linalg.inv(np.linalg.cholesky(precision)).T
    except np.linalg.LinAlgError:
        remedy = "Use a pilot that informs every parameter, or a proper prior."
        fail("pilot", "a log-posterior that is flat or not concave at its mode", "a positive definite Hessian", remedy)
    if not np.linalg.norm(factor.T @ gradient) < 0.1 * np.sqrt(len(gradient)):
        remedy = "Give parameters of order 1, and a log-likelihood with one mode."
        fail("pilot", "a log-posterior of which the mode was not found", "one that L-BFGS can climb", remedy)
    return factor
