"""Which of several candidates wins: the probability that utilities with independent noise of scale 1 have it on top."""

import jax.numpy as jnp
import numpy as np
from jax.nn import log_softmax, logsumexp

from dpjax.base import Array

__all__ = ["log_win_by_exponential", "log_win_by_gumbel", "log_win_by_laplace"]

MOST_NODES = 64
"""Gauss-Legendre nodes: exact up to 128 candidates, and beyond them to rounding, as the nodes crowd at the ends."""

LAPLACE_NODES = 61
"""Nodes between neighbouring kinks. They crowd at both ends, where the integrand may be concentrated."""

LAPLACE_REACH = 3.2
"""The range of the double exponential rule, beyond which its weights are below 1e-15."""

TAIL = 40.0
"""How far beyond the lowest and the highest utility is integrated: what is left out is a share of e^-40."""


def log_win_by_gumbel(utility: Array, chosen: Array) -> Array:
    """The log-probability [] that the chosen of the utilities [k] wins under Gumbel noise: the softmax."""
    return log_softmax(utility)[chosen]


def log_win_by_exponential(utility: Array, chosen: Array) -> Array:
    """The same under exponential noise, by q_r ∫₀¹ Π_{i ≠ r} (1 − t q_i) dt, where q_i = exp(u_i − max u).

    The integrand is a polynomial, of which a Gauss-Legendre rule is exact.
    """
    nodes, weights = np.polynomial.legendre.leggauss(min(utility.size // 2 + 1, MOST_NODES))
    below = utility - jnp.max(utility)
    misses = jnp.log1p(-jnp.asarray((1 + nodes[:, None]) / 2, below.dtype) * jnp.exp(below)[None])
    others = jnp.sum(jnp.where(jnp.arange(utility.size)[None] == chosen, 0.0, misses), axis=1)
    return below[chosen] + logsumexp(others + jnp.asarray(np.log(weights / 2), below.dtype))


def log_win_by_laplace(utility: Array, chosen: Array) -> Array:
    """The same under Laplace noise, by ∫ f(x − u_r) Π_{i ≠ r} F(x − u_i) dx between the kinks at the utilities.

    To a relative 1e-8 in double precision; the cost is quadratic in the number of candidates.
    """
    nodes, log_weights = double_exponential()
    centred = utility - jnp.max(utility)
    ordered = jnp.sort(centred)
    kinks = jnp.concatenate([ordered[:1] - TAIL, ordered, ordered[-1:] + TAIL])
    length = jnp.diff(kinks)
    points = kinks[:-1, None] + length[:, None] * jnp.asarray(nodes, centred.dtype)[None]
    distance = points[..., None] - centred[None, None]
    others = jnp.sum(jnp.where(jnp.arange(utility.size) == chosen, 0.0, log_laplace_cdf(distance)), axis=-1)
    own = -jnp.abs(points - centred[chosen]) - np.log(2.0)
    known = jnp.where(length > 0, jnp.log(jnp.where(length > 0, length, 1.0)), -jnp.inf)
    return logsumexp(own + others + known[:, None] + jnp.asarray(log_weights, centred.dtype)[None])


def log_laplace_cdf(noise: Array) -> Array:
    """The log-probability [...] that Laplace noise of scale 1 is at most the given one."""
    half = jnp.exp(-jnp.abs(noise)) / 2
    return jnp.where(noise < 0, jnp.minimum(noise, 0.0) - np.log(2.0), jnp.log1p(-half))


def double_exponential() -> tuple[np.ndarray, np.ndarray]:
    """Nodes in (0, 1) and the logarithms of their weights."""
    steps, width = np.linspace(-LAPLACE_REACH, LAPLACE_REACH, LAPLACE_NODES, retstep=True)
    lifted = np.pi / 2 * np.sinh(steps)
    weights = width * np.pi / 4 * np.cosh(steps) / np.cosh(lifted) ** 2
    return 1 / (1 + np.exp(-2 * lifted)), np.log(weights)
