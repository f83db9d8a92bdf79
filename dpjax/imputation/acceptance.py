"""One attempt of SOMA, as a function of the weights and two uniforms: Xiong and Ju (2025), Algorithm 1."""

import jax.numpy as jnp

from dpjax.base import Array
from dpjax.numerics import scale_weights, select_weight

__all__ = ["choose", "reverse_total"]


def choose(
    log_weights: Array, log_current: Array, select_uniform: Array, accept_uniform: Array
) -> tuple[Array, Array, Array]:
    """The place I ∝ w [] and whether the offer takes it [], with the acceptance ratio before the minimum with 1 [].

    Everything is relative to the largest weight, and no logarithm is taken: in a sweep each costs as much as a loop.

    Parameters
    ----------
    log_weights : [m]
        log w_i of the records tried.
    log_current : []
        log w_0.
    """
    weights, shift = scale_weights(log_weights)
    index, total = select_weight(weights, select_uniform)
    reverse = reverse_total(total, weights[index], jnp.exp(log_current - shift))
    return index, accept_uniform * reverse < total, total / reverse


def reverse_total(total: Array, chosen: Array, current: Array) -> Array:
    """W + w_0 − w_I, the total weight of the reverse attempt, whose offer is the record replaced: equation (8).

    W − w_I cannot be negative; rounding can make it so where w_I is nearly all of W.
    """
    return jnp.maximum(total - chosen, 0.0) + current
