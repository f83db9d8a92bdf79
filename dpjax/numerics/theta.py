"""Sums of exp(-k² / (2 σ²)) over all integers and over the integers from a given one on, for every σ."""

from math import pi, sqrt

import jax
import jax.numpy as jnp
import numpy as np

from dpjax.base import Array

STEP = 0.3
NODES = (np.arange(29) + 0.5) * STEP
WEIGHTS = 2 * STEP * np.exp(-(NODES**2) / 2) / sqrt(2 * pi)


def log_theta(scale: Array | float) -> Array:
    """log Σ_k exp(-k² / (2 σ²)) over all integers k, elementwise in σ.

    Jacobi's identity θ(s) = s θ(1 / s), s = σ √(2π), gives the faster converging series, whose first omitted
    term is below exp(-16 π). Both agree at s = 1 in value and derivative.
    """
    width = jnp.asarray(scale) * sqrt(2 * pi)
    nome = jnp.exp(-pi * jnp.square(jnp.maximum(width, 1 / width)))
    return jnp.maximum(jnp.log(width), 0) + jnp.log1p(2 * (nome + nome**4 + nome**9))


def integer_variance(scale: Array | float) -> Array:
    """The variance of integers k of probability ∝ exp(-k² / (2 σ²)), elementwise in σ: σ³ d log θ / dσ."""
    return jnp.asarray(scale) ** 3 * jax.jvp(log_theta, (jnp.asarray(scale),), (jnp.ones_like(jnp.asarray(scale)),))[1]


def log_upper_theta(least: Array, scale: Array | float) -> Array:
    """log Σ_{k >= m} exp(-k² / (2 σ²)), elementwise in m and σ.

    Parameters
    ----------
    least : [...]
        The first integer m >= 1 of the sum.
    scale : [...]
        σ > 0.

    Notes
    -----
    With W standard normal the sum is exp(-m² / (2 σ²)) E[1 / (1 - exp(-m / σ² + i W / σ))]. The expectation is taken by
    the trapezoidal rule between the nodes. To it the residue of the pole at W = -i m / σ is added (the device of Matta
    and Reichel 1971 for the error function). The relative error is about 1e-15 in double precision.
    """
    least, scale = jnp.broadcast_arrays(least, scale)
    return -jnp.square(least / scale) / 2 + jnp.log(_tail_ratio(least[..., None], scale[..., None])[..., 0])


def _tail_ratio(least: Array, scale: Array | float) -> Array:
    """The sum divided by its first term; the last axis of the arguments has length 1."""
    distance = least / scale
    row = (1,) * (distance.ndim - 1) + (-1,)
    nodes, weights = (jnp.asarray(numbers, distance.dtype).reshape(row) for numbers in (NODES, WEIGHTS))
    real_gap = -jnp.expm1(-distance / scale)
    turn_gap = 2 * jnp.exp(-distance / scale) * jnp.square(jnp.sin(nodes / (2 * scale)))
    rule = jnp.sum(weights * (real_gap + turn_gap) / (jnp.square(real_gap) + 2 * turn_gap), axis=-1, keepdims=True)
    # The residue is negligible at this distance, beyond which its formula is not valid.
    pole = jnp.minimum(distance, 2 * pi / STEP)
    residue = scale * sqrt(2 * pi) * jnp.exp(jnp.square(pole) / 2 - jnp.logaddexp(2 * pi / STEP * pole, 0.0))
    return rule + residue
