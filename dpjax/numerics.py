"""Log-space arithmetic shared by the kernels."""

from math import isqrt

import jax.numpy as jnp

from dpjax.base import Array


def never_nan(log_density: Array) -> Array:
    """The log-density with NaN read as zero density, so that a broken ratio is a rejection."""
    return jnp.where(jnp.isnan(log_density), -jnp.inf, log_density)


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
    peak = jnp.max(log_weights)
    shift = jnp.where(jnp.isfinite(peak), peak, 0.0)
    index, total = select_weight(jnp.exp(log_weights - shift), uniform)
    return index, jnp.log(total) + shift


def select_weight(weights: Array, uniform: Array) -> tuple[Array, Array]:
    """An index drawn with probability proportional to weights [m], and their sum []; see `select_index`."""
    size = weights.shape[0]
    width = isqrt(size - 1) + 1
    blocks = jnp.pad(weights, (0, -size % width)).reshape(-1, width)
    block_ends = _cumulative_sum(jnp.sum(blocks, axis=1))
    total = block_ends[-1]
    target = uniform * total
    block = _first_above(block_ends, target)
    row = blocks[block]
    before = block_ends[block] - jnp.sum(row)
    entry = _first_above(before + _cumulative_sum(row), target)
    # Rounding between the two levels can leave the target just past the block: then its heaviest entry.
    entry = jnp.where(row[entry] > 0, entry, jnp.argmax(row))
    return block * width + entry, total


def _cumulative_sum(values: Array) -> Array:
    """The running sum of a short vector as one masked reduction, which compiles to a single loop."""
    steps = jnp.arange(values.shape[0])
    return jnp.sum(jnp.where(steps[None, :] <= steps[:, None], values[None, :], 0.0), axis=1)


def _first_above(ends: Array, target: Array) -> Array:
    """The index of the first cumulative end above the target, or the last index."""
    return jnp.minimum(jnp.sum(ends <= target), ends.shape[0] - 1)
