"""Decisions by uniform numbers: acceptance of a proposal, categorical draws by inversion, and keys of branches."""

from collections.abc import Callable
from math import isqrt

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike

from dpjax.base import Array, Key

__all__ = [
    "accept",
    "decision_uniforms",
    "first_above",
    "key_of_branches",
    "running_sums",
    "scale_weights",
    "select_index",
    "select_indices",
    "select_weight",
]

UNROLLED = 64
"""Largest number of weights whose running sums are unrolled, which compiles to a single loop over the columns."""


def key_of_branches(key: Key) -> Callable[[], Key]:
    """A function that gives the key to each of several branches, of which one is taken.

    Under vmap all of them run, which the key reuse checker would report as several uses of one key.
    """
    data, kind = jax.random.key_data(key), jax.random.key_impl(key)
    return lambda: jax.random.wrap_key_data(data, impl=kind)


def decision_uniforms(key: Key, shape: tuple[int, ...] = (), dtype: DTypeLike = float) -> Array:
    """Uniform draws for acceptance, never 0, with which even an impossible proposal would be accepted.

    In float32 one draw in 2^23 is 0; it is replaced by the middle of the interval that is rounded down to it.
    """
    draws = jax.random.uniform(key, shape, dtype)
    return jnp.maximum(draws, jnp.finfo(draws.dtype).eps / 2)


def accept(proposed: Array, log_density: Array, log_uniform: Array) -> tuple[Array, Array]:
    """Which proposals are accepted [...] by Metropolis's rule, and of which the log-ratio is NaN or +∞ [...].

    Parameters
    ----------
    proposed : [...]
        The log-density at each proposal, with what corrects for an asymmetric proposal. None of NaN or +∞ is accepted.
    log_density : [...]
        That at the current state.
    log_uniform : [...]
        The logarithms of `decision_uniforms`.
    """
    log_ratio = proposed - log_density
    return (log_uniform < log_ratio) & (proposed < jnp.inf), ~(log_ratio < jnp.inf)


def select_index(log_weights: Array, uniform: Array) -> tuple[Array, Array]:
    """An index drawn with probability proportional to exp(log_weights), and the log of the total weight.

    The cumulative sum is inverted at one uniform in two levels, blocks and then entries: O(m) work in a few vectorised
    passes, without m Gumbel draws.

    Parameters
    ----------
    log_weights : [m]
        Logarithms of the weights; ``-inf`` is a weight of zero.
    uniform : []
        A uniform draw from [0, 1).

    Returns
    -------
    index : [] int
        Never an entry of zero weight if another weight is positive.
    log_total : []
        ``logsumexp(log_weights)``.
    """
    weights, shift = scale_weights(log_weights)
    index, total = select_weight(weights, uniform)
    return index, jnp.log(total) + shift


def scale_weights(log_weights: Array) -> tuple[Array, Array]:
    """exp(log_weights − shift) [m] with maximum 1, and the shift [], which is finite if all weights are zero."""
    shift = jnp.max(log_weights, initial=jnp.finfo(log_weights.dtype).min)
    return jnp.exp(log_weights - shift), shift


def select_weight(weights: Array, uniform: Array) -> tuple[Array, Array]:
    """An index drawn with probability proportional to weights [m], and their sum []; see `select_index`."""
    size = weights.shape[0]
    width = isqrt(size - 1) + 1
    blocks = jnp.pad(weights, (0, -size % width)).reshape(-1, width)
    block_ends = _cumulative_sum(jnp.sum(blocks.T, axis=0))  # sums over the first axis are vectorised
    total = block_ends[-1]
    target = below(uniform * total, total)
    block = _count(block_ends <= target)
    entry_ends = _cumulative_sum(blocks[block])
    before = jnp.where(block > 0, block_ends[block - 1], 0.0)
    # Rounding between the two levels can leave the target just past the block.
    inside = below(target - before, entry_ends[-1])
    # If all weights are zero, the last place of the last block is found, which may be padding.
    return jnp.minimum(block * width + _count(entry_ends <= inside), size - 1), total


def below(value: Array, bound: Array) -> Array:
    """The value, or the largest number below a positive bound if it is not below it."""
    return jnp.minimum(value, bound * (1 - jnp.finfo(bound.dtype).epsneg))


def _cumulative_sum(values: Array) -> Array:
    """The running sum of a short vector as one masked reduction, which compiles to a single loop."""
    steps = jnp.arange(values.shape[0])
    return jnp.sum(jnp.where(steps[:, None] <= steps[None, :], values[:, None], 0.0), axis=0)


def _count(passed: Array) -> Array:
    """The number of true entries [], at most all but one: the index of the first false one."""
    return jnp.minimum(jnp.sum(passed), passed.shape[0] - 1)


def select_indices(log_weights: Array, uniforms: Array) -> tuple[Array, Array]:
    """For each of n columns an index drawn with probability ∝ exp(log_weights), and whether any is possible.

    Parameters
    ----------
    log_weights : [m, n]
        Logarithms of the weights; ``-inf`` is a weight of zero.
    uniforms : [n]
        Uniform draws from [0, 1).

    Returns
    -------
    indices : [n] int
        Never an entry of zero weight if another weight of its column is positive; 0 if none is.
    possible : [n] bool
        Whether the largest log-weight is finite.
    """
    peaks = jnp.max(log_weights, axis=0)
    possible = jnp.isfinite(peaks)
    ends = running_sums(jnp.exp(log_weights - jnp.where(possible, peaks, 0)[None]))
    return jnp.where(possible, first_above(ends, uniforms), 0), possible


def running_sums(weights: Array) -> list[Array] | Array:
    """The running sums over the first axis of weights [m, n]: m arrays [n], or one array [m, n] if m is large."""
    if weights.shape[0] > UNROLLED:
        return jax.lax.scan(lambda total, row: (total + row, total + row), jnp.zeros_like(weights[0]), weights)[1]
    sums = [weights[0]]
    for row in weights[1:]:
        sums.append(sums[-1] + row)
    return sums


def first_above(ends: list[Array] | Array, uniforms: Array) -> Array:
    """The first index [n] whose running sum lies above the share `uniforms` of the total; never one of weight zero."""
    total = ends[-1]
    target = uniforms * total
    # If rounding raises the target to the total, the first index that reaches it is the last of positive weight.
    if isinstance(ends, list):
        return sum(((end <= target) & (end < total)).astype(jnp.int32) for end in ends)  # type: ignore[return-value]
    return jnp.sum((ends <= target[None]) & (ends < total[None]), axis=0, dtype=jnp.int32)
