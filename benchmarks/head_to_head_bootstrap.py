"""Intervals by the parametric bootstrap, from a mean and a variance of clamped Normal records.

The indirect estimate (Wang, Chang and Awan 2025, arXiv 2507.10746) is the parameters under which the published values
are expected. The authors find it by simulation. Here the expectations are exact.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.head_to_head_normal import SCALES, expected, simulate

STEPS = 40
FARTHEST = np.array([[-10.0, np.log(0.02)], [13.0, np.log(20.0)]])
"""The least and the largest mean and log of the standard deviation that are looked at."""

Estimate = Callable[[jax.Array], jax.Array]
"""Mean and standard deviation [2] from the published mean and variance [2]."""


def plug_in(published: jax.Array) -> jax.Array:
    """What is published, taken for the mean and the variance of the records."""
    return jnp.stack([published[0], jnp.sqrt(jnp.maximum(published[1], 0.0))])


def indirect(published: jax.Array) -> jax.Array:
    """The parameters [2] under which the published values [2] are expected, or the nearest, by damped Newton steps."""

    def loss(parameters: jax.Array) -> jax.Array:
        return jnp.sum(((expected(parameters) - published) / SCALES) ** 2)

    def step(_: int, state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        parameters, damping = state
        slopes = jax.jacfwd(expected)(parameters) / SCALES[:, None]
        residuals = (expected(parameters) - published) / SCALES
        curvature = slopes.T @ slopes
        move = jnp.linalg.solve(curvature + damping * jnp.eye(2), slopes.T @ residuals)
        tried = jnp.clip(parameters - move, *FARTHEST)
        better = loss(tried) < loss(parameters)
        return jnp.where(better, tried, parameters), jnp.where(better, damping / 4, damping * 4)

    start = jnp.array([published[0], 0.0])
    mu, log_sigma = jax.lax.fori_loop(0, STEPS, step, (start, jnp.asarray(1.0)))[0]
    return jnp.stack([mu, jnp.exp(log_sigma)])


ESTIMATES: dict[str, Estimate] = {"plug-in": plug_in, "indirect": indirect}


def bootstrap(key: jax.Array, published: np.ndarray, estimate: Estimate, shares: Any, number: int) -> dict[str, Any]:
    """Percentile and basic intervals [2, release, 2] from releases simulated at the estimate of each [release, 2]."""

    def resample(key: jax.Array, value: jax.Array) -> tuple[jax.Array, jax.Array]:
        found = estimate(value)
        again = jax.vmap(lambda key: estimate(simulate(key, found)))(jax.random.split(key, number))
        return found, jnp.quantile(again, jnp.array(shares), axis=0)

    keys = jax.random.split(key, len(published))
    found, ends = jax.jit(jax.vmap(resample))(keys, jnp.asarray(published, float))
    percentile = np.swapaxes(np.asarray(ends), 0, 1)
    return {"percentile": percentile, "basic": 2 * np.asarray(found) - percentile[::-1]}
