"""The labels given the mixing measure: slice variables cut its infinite row of atoms, then each record chooses one."""

from typing import NamedTuple

import jax.numpy as jnp

from dpjax.base import Array
from dpjax.mixture.samplers.weights import Weights
from dpjax.numerics import select_indices

__all__ = ["Slices", "choose_slots", "draw_slices", "open_slices"]


class Slices(NamedTuple):
    """Slice variables and what they leave for each record to choose from.

    Attributes
    ----------
    levels
        The slice variable u_i [n] of each record: only slots of height at least u_i may be chosen.
    heights
        The height ξ_h [H] of each slot, a fixed function of its weight.
    log_shares
        log(w_h / ξ_h) [H], what is left of a slot's weight where it may be chosen.
    num_slots
        How many slots [] the records might choose from: all behind them have a smaller height than any level.
    overflow
        Whether some slot beyond the last might be chosen [].
    """

    levels: Array
    heights: Array
    log_shares: Array
    num_slots: Array
    overflow: Array


def draw_slices(uniforms: Array, labels: Array, weights: Weights, threshold: Array) -> Slices:
    """Slice variables u_i ~ U(0, ξ_(c_i)) given the labels and the *new* weights, where ξ_h = min(1, w_h / threshold).

    With a threshold of 1 they are those of Walker (2007) and Kalli, Griffin and Walker (2011). With a lower one every
    atom above it can be chosen always, so that records move more freely, at the cost of a few more slots.

    Parameters
    ----------
    uniforms : [n]
        Draws from the uniform law on (0, 1].
    labels : [n]
        The present slots.
    weights
        Drawn after the labels.
    threshold : []
        A number in (0, 1] that depends on nothing random.
    """
    heights = jnp.minimum(weights.weights / threshold, 1)
    levels = uniforms * heights[labels]
    lowest = jnp.min(levels)
    # The atoms behind a slot weigh together no more than what is left there.
    open_slots = jnp.minimum(weights.beyond / threshold, 1) >= lowest
    log_shares = jnp.log(jnp.maximum(weights.weights, threshold))
    log_shares = jnp.where(weights.weights > 0, log_shares, -jnp.inf)
    return Slices(levels, heights, log_shares, jnp.sum(open_slots) + 1, open_slots[-1])


def open_slices(labels: Array, weights: Weights) -> Slices:
    """No slices: every slot may be chosen by every record."""
    shape, dtype = weights.weights.shape, weights.weights.dtype
    levels = jnp.zeros(labels.shape, dtype)
    return Slices(levels, jnp.ones(shape, dtype), jnp.log(weights.weights), jnp.array(shape[0]), jnp.array(False))


def choose_slots(uniforms: Array, slices: Slices, log_densities: Array, labels: Array) -> tuple[Array, Array]:
    """Labels drawn from their law given levels, weights and parameters, and how many had none and kept their label.

    Parameters
    ----------
    uniforms : [n]
        Draws from the uniform law on [0, 1).
    log_densities : [H, n]
        The log-density of each record at each slot.
    labels : [n]
        The present slots.
    """
    possible = slices.heights[:, None] >= slices.levels[None, :]
    log_weights = jnp.where(possible, log_densities + slices.log_shares[:, None], -jnp.inf)
    chosen, possible = select_indices(log_weights, uniforms)
    return jnp.where(possible, chosen, labels), jnp.sum(~possible)
