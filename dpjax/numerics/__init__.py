"""Sums, choices and log-space arithmetic shared by the kernels."""

from collections.abc import Callable
from functools import reduce
from math import isqrt
from operator import add
from typing import Any

import jax
import jax.numpy as jnp

from dpjax.base import Array, Key

MAX_ROWS = 64
"""Up to this many rows are added one by one; beyond, the program would grow long."""


def sum_rows(row: Callable[[Any], Array], num_rows: int) -> Array:
    """The sum of row(0), row(1), ...; one expression, which XLA's CPU compiler vectorises better than a reduction."""
    if num_rows > MAX_ROWS:
        return jnp.sum(jax.vmap(row)(jnp.arange(num_rows)), axis=0)
    return reduce(add, map(row, range(num_rows)))


def proper_density(log_density: Array) -> Array:
    """The log-density with NaN and +∞ read as zero density, so that what is no density is never accepted."""
    return jnp.where(log_density < jnp.inf, log_density, -jnp.inf)


def all_finite(tree: Any) -> Array:
    """Whether every number in a tree of arrays is finite []; whole numbers are."""
    leaves = [leaf for leaf in jax.tree.leaves(tree) if jnp.issubdtype(jnp.result_type(leaf), jnp.floating)]
    return reduce(jnp.logical_and, [jnp.all(jnp.isfinite(leaf)) for leaf in leaves], jnp.array(True))


def take_if(condition: Array, new: Any, old: Any) -> Any:
    """One tree of arrays where the condition [] holds, else the other."""
    return jax.tree.map(lambda one, other: jnp.where(condition, one, other), new, old)


def decision_uniforms(key: Key, shape: tuple[int, ...] = (), dtype: Any = float) -> Array:
    """Uniform draws to decide by: never 0, below which every offer would be taken, however impossible.

    In float32 one draw in 2^23 is 0. It stands for all numbers rounded down to it, and is read as their middle.
    """
    draws = jax.random.uniform(key, shape, dtype)
    return jnp.maximum(draws, jnp.finfo(draws.dtype).eps / 2)


def select_index(log_weights: Array, uniform: Array) -> tuple[Array, Array]:
    """An index drawn with probability proportional to exp(log_weights), and the log of the total weight.

    The cumulative sum is inverted at one uniform in two levels, blocks and then entries, so that the work is
    O(m) in a few vectorised passes and needs no m Gumbel draws.

    Parameters
    ----------
    log_weights : [m]
        Logarithms of the weights; ``-inf`` is a weight of zero.
    uniform : []
        A draw from the uniform law on [0, 1).

    Returns
    -------
    index : [] int
        Never an entry of zero weight where another weight is positive.
    log_total : []
        ``logsumexp(log_weights)``.
    """
    weights, shift = scale_weights(log_weights)
    index, total = select_weight(weights, uniform)
    return index, jnp.log(total) + shift


def scale_weights(log_weights: Array) -> tuple[Array, Array]:
    """exp(log_weights − shift) [m], of which the largest is 1, and the shift [], finite where all weights are zero."""
    shift = jnp.max(log_weights, initial=jnp.finfo(log_weights.dtype).min)
    return jnp.exp(log_weights - shift), shift


def select_weight(weights: Array, uniform: Array) -> tuple[Array, Array]:
    """An index drawn with probability proportional to weights [m], and their sum []; see `select_index`."""
    size = weights.shape[0]
    width = isqrt(size - 1) + 1
    blocks = jnp.pad(weights, (0, -size % width)).reshape(-1, width)
    block_ends = _cumulative_sum(jnp.sum(blocks.T, axis=0))  # sums over a first axis are vectorised
    total = block_ends[-1]
    target = below(uniform * total, total)
    block = _count(block_ends <= target)
    entry_ends = _cumulative_sum(blocks[block])
    before = jnp.where(block > 0, block_ends[block - 1], 0.0)
    # Rounding between the two levels can leave the target just past the block.
    inside = below(target - before, entry_ends[-1])
    # Without any weight the last place of the last block is found, which may be padding.
    return jnp.minimum(block * width + _count(entry_ends <= inside), size - 1), total


def below(value: Array, bound: Array) -> Array:
    """The value, or the largest number below a positive bound if it is not below it."""
    return jnp.minimum(value, bound * (1 - jnp.finfo(bound.dtype).epsneg))


def _cumulative_sum(values: Array) -> Array:
    """The running sum of a short vector as one masked reduction, which compiles to a single loop."""
    steps = jnp.arange(values.shape[0])
    return jnp.sum(jnp.where(steps[:, None] <= steps[None, :], values[:, None], 0.0), axis=0)


def _count(passed: Array) -> Array:
    """How many are true [], but not all: the index of the first that is not."""
    return jnp.minimum(jnp.sum(passed), passed.shape[0] - 1)
