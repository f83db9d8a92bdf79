"""Categorical draws by inversion: each uniform number selects a cell.

Cell j of c holds the uniforms in ``[edges[j - 1], edges[j])``, with edges -1 and c - 1 at 0 and 1.
"""

import jax
import jax.numpy as jnp

from dpjax.base import Array, Key

__all__ = ["cell_edges", "cells_at", "count_cells", "log_probability", "uniforms_within"]

MAX_COMPARED = 64
"""Largest number of cells for which comparing with every edge is faster than a binary search."""


def cell_edges(probabilities: Array) -> Array:
    """The inner edges of the cells [..., c - 1].

    Dividing by the last cumulative sum makes the upper edge of the last cell of positive probability exactly 1. So no
    uniform below 1 falls into a cell of probability 0.
    """
    cumulative = jnp.cumsum(probabilities, axis=-1)
    return cumulative[..., :-1] / cumulative[..., -1:]


def cells_at(uniforms: Array, edges: Array) -> Array:
    """The cell [n] of each uniform [n], in 0..c-1."""
    method = "compare_all" if edges.size < MAX_COMPARED else "scan"
    return jnp.searchsorted(edges, uniforms, side="right", method=method).astype(int)


def uniforms_within(key: Key, lower: Array, upper: Array) -> Array:
    """Uniform draws from the intervals ``[lower, upper)``, never rounded up to the upper end."""
    share = jax.random.uniform(key, lower.shape, lower.dtype)
    return jnp.minimum(lower + share * (upper - lower), jnp.nextafter(upper, jnp.zeros_like(upper)))


def log_probability(probabilities: Array, cell: Array) -> Array:
    """The log-probability of each cell [...]; -inf for numbers outside 0..c-1, which indexing would clip."""
    inside = (cell >= 0) & (cell < probabilities.size)
    return jnp.where(inside, jnp.log(probabilities)[cell], -jnp.inf)


def all_edges(edges: Array) -> Array:
    """The edges including 0 and 1 [..., c + 1]."""
    zeros = jnp.zeros_like(edges[..., :1])
    return jnp.concatenate([zeros, edges, zeros + 1], axis=-1)


def count_cells(index: Array, num_cells: int) -> Array:
    """How often each of 0..num_cells-1 occurs in an integer array, as floats [num_cells]."""
    return jnp.zeros(num_cells, int).at[index].add(1).astype(float)
