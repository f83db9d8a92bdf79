"""Couplings in closed form: two Normal laws of one covariance, and two events."""

import jax
import jax.numpy as jnp

from dpjax.base import Array, Key
from dpjax.numerics import decision_uniforms
from dpjax.numerics.linear_algebra import product, solve_lower

__all__ = ["common_uniform", "reflect", "reflection_maximal"]


def reflection_maximal(key: Key, mean_p: Array, mean_q: Array, factor: Array) -> tuple[Array, Array, Array]:
    """A pair x ~ N(mean_p, L Lᵀ), y ~ N(mean_q, L Lᵀ) [k] and whether they are one draw; P(same) = 1 − TV.

    Where they are not the same, y is the mirror image of x, so that the two drift towards each other: Bou-Rabee,
    Eberle and Zimmer (2020), Section 2.3.2; Jacob, O'Leary and Atchadé (2020), Section 4.1.

    Parameters
    ----------
    key
        One typed key.
    mean_p : [k]
        The mean of the first law.
    mean_q : [k]
        The mean of the second.
    factor : [k, k]
        The lower Cholesky factor L of the covariance.

    Examples
    --------
    >>> import jax, jax.numpy as jnp
    >>> x, y, same = reflection_maximal(jax.random.key(1), jnp.zeros(2), jnp.zeros(2), jnp.eye(2))
    >>> bool(same)
    True
    """
    normal_key, uniform_key = jax.random.split(key)
    normal = jax.random.normal(normal_key, mean_p.shape, mean_p.dtype)
    return reflect(normal, decision_uniforms(uniform_key, (), mean_p.dtype), mean_p, mean_q, factor)


def reflect(normal: Array, uniform: Array, mean_p: Array, mean_q: Array, factor: Array) -> tuple[Array, Array, Array]:
    """The pair as a function of a standard Normal vector [k] and a uniform []."""
    shift = solve_lower(factor, (mean_p - mean_q)[:, None])[:, 0]
    length = jnp.sum(shift**2)
    # log φ(z + shift) − log φ(z), written so that nothing cancels.
    log_ratio = -jnp.sum(shift * normal) - length / 2
    same = jnp.log(uniform) < log_ratio
    direction = shift / jnp.sqrt(jnp.where(length > 0, length, 1.0))
    mirrored = normal - 2 * jnp.sum(direction * normal) * direction
    x = mean_p + product(factor, normal)
    return x, jnp.where(same, x, mean_q + product(factor, mirrored)), same


def common_uniform(uniform: Array, log_p: Array, log_q: Array) -> tuple[Array, Array, Array]:
    """Two events [] of log-probabilities log_p and log_q decided by one uniform, and whether they agree.

    The maximal coupling of two Bernoulli laws: P(same) = 1 − |p − q|. A probability that is not a number is 0, and
    one above 1 is 1.

    Parameters
    ----------
    uniform
        One uniform number in [0, 1).
    log_p
        The log-probability of the first event.
    log_q
        That of the second.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> [bool(event) for event in common_uniform(jnp.array(0.4), jnp.log(0.5), jnp.log(0.3))]
    [True, False, False]
    """
    log_uniform = jnp.log(uniform)
    x, y = log_uniform < log_p, log_uniform < log_q
    return x, y, x == y
