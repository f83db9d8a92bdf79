"""Which of several candidates wins: the probability that utilities with independent noise of scale 1 have it on top."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.nn import log_softmax, logsumexp

from dpjax.base import Array

__all__ = ["log_win_by_exponential", "log_win_by_gumbel", "log_win_by_laplace"]

NODES = 16
"""Gauss-Legendre nodes of a piece: exact for up to twice as many candidates under exponential noise."""

PIECE = 3.0
"""The length of a piece under Laplace noise, in scales: a fall of many factors F is about one scale wide."""

REACH = 40.0
"""How far from a kink is integrated: what is left out is a share of e^-40."""

MOST_KINKS = 64
"""The largest utilities between which is integrated: below them the integrand is a share of 2^-64."""


def log_win_by_gumbel(utility: Array, chosen: Array) -> Array:
    """The log-probability [] that the chosen of the utilities [k] wins under Gumbel noise: the softmax."""
    return log_softmax(utility)[chosen]


def log_win_by_exponential(utility: Array, chosen: Array) -> Array:
    """The same under exponential noise, by q_r ∫₀¹ Π_{i ≠ r} (1 − t q_i) dt, where q_i = exp(u_i − max u)."""
    below = utility - jnp.max(utility)
    return below[chosen] + log_none_above(below, chosen)


def log_win_by_laplace(utility: Array, chosen: Array) -> Array:
    """The same under Laplace noise, by ∫ f(x − u_r) Π_{i ≠ r} F(x − u_i) dx between the kinks at the utilities.

    To a relative 1e-8 in double precision. Above the largest utility the integral is that of exponential noise, with
    halved q_i. Below j of the utilities the integrand is at most 2^-j, and falls to the left like exp(j x) or faster.
    """
    below = utility - jnp.max(utility)
    # The ends of pieces change nothing. With ties, the slope through an empty piece would be lost.
    low, high = laplace_pieces(jax.lax.stop_gradient(jnp.sort(below)[::-1]))
    nodes, weights = gauss_legendre()

    def log_piece(ends: tuple[Array, Array]) -> Array:
        low, length = ends[0], ends[1] - ends[0]
        points = low + length * jnp.asarray(nodes, below.dtype)
        cdf = log_laplace_cdf(points[:, None] - below[None])
        others = jnp.sum(jnp.where((jnp.arange(below.size) == chosen)[None], 0.0, cdf), axis=1)
        own = -jnp.abs(points - below[chosen]) - np.log(2.0)
        size = jnp.where(length > 0, jnp.log(jnp.where(length > 0, length, 1.0)), -jnp.inf)
        return size + logsumexp(own + others + jnp.asarray(np.log(weights), below.dtype))

    above = below[chosen] - np.log(2.0) + log_none_above(below - np.log(2.0), chosen)
    return logsumexp(jnp.append(jax.lax.map(log_piece, (low, high)), above))


def log_none_above(log_shares: Array, chosen: Array) -> Array:
    """The logarithm of ∫₀¹ Π_{i ≠ r} (1 − t q_i) dt, by the logarithms of the q_i.

    The integrand falls like exp(−t Σ q_i), so that pieces are halved towards 0, as often as k candidates ask for.
    """
    halvings = max(0, int(np.ceil(np.log2(log_shares.size / (2 * NODES)))))
    ends = np.append(0.0, 0.5 ** np.arange(halvings, -1, -1))
    nodes, weights = gauss_legendre()
    times = jnp.asarray((ends[:-1, None] + np.diff(ends)[:, None] * nodes).ravel(), log_shares.dtype)
    misses = jnp.log1p(-times[:, None] * jnp.exp(log_shares)[None])
    others = jnp.sum(jnp.where((jnp.arange(log_shares.size) == chosen)[None], 0.0, misses), axis=1)
    return logsumexp(others + jnp.asarray(np.log(np.diff(ends)[:, None] * weights).ravel(), log_shares.dtype))


def laplace_pieces(kinks: Array) -> tuple[Array, Array]:
    """The ends [piece] of short pieces between the kinks [k], given in falling order, where the integrand counts.

    Below the first kink alone it may be level, and rises where many others lie: there are pieces at both ends.
    """
    number = min(kinks.size, MOST_KINKS)
    right, left = kinks[:number], jnp.append(kinks[1:], kinks[-1] - REACH)[:number]
    reach = REACH / np.maximum(np.arange(number), 1)
    counts = np.ceil(reach / PIECE).astype(int)
    kink = np.repeat(np.arange(number), counts)
    start = np.concatenate([np.arange(count) / count for count in counts])
    near, far, grid = (
        jnp.asarray(share, kinks.dtype) for share in (start, start + 1 / counts[kink], np.linspace(0, 1, counts[0] + 1))
    )
    span = jnp.minimum(right - left, jnp.asarray(reach, kinks.dtype))
    first = jnp.minimum(right[0] - span[0] - left[0], REACH) * grid + left[0]
    low = jnp.concatenate([right[kink] - span[kink] * far, first])
    return low, jnp.concatenate([right[kink] - span[kink] * near, first[1:], (right - span)[:1]])


def log_laplace_cdf(noise: Array) -> Array:
    """The log-probability [...] that Laplace noise of scale 1 is at most the given one."""
    half = jnp.exp(-jnp.abs(noise)) / 2
    return jnp.where(noise < 0, jnp.minimum(noise, 0.0) - np.log(2.0), jnp.log1p(-half))


def gauss_legendre() -> tuple[np.ndarray, np.ndarray]:
    """Nodes in (0, 1) and their weights."""
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    return (1 + nodes) / 2, weights / 2
