"""Sums over records of clipped contributions, a chunk of records at a time."""

from collections.abc import Callable
from math import inf
from typing import NamedTuple

import jax
import jax.numpy as jnp

from dpjax.base import Array
from dpjax.private.target import Target

__all__ = ["ClippedSum", "clip_rows", "clipped_gradients", "clipped_ratios", "gradients_of"]


class ClippedSum(NamedTuple):
    """A sum over records of bounded contributions, before any noise: **not private**, neither of the two.

    value
        The sum [d] or [].
    clipped
        How many contributions were clipped [].
    """

    value: Array
    clipped: Array


def clipped_gradients(target: Target, vector: Array, bound: float) -> ClippedSum:
    """The sum [d] of the records' gradients of the log-likelihood at a vector [d], each clipped to norm `bound`.

    The gradients of one chunk of records are held at a time. A record whose gradient is not a number adds nothing:
    any other reading would show that it is there.

    Notes
    -----
    Rounding can leave a clipped norm above the bound by a few units in the last place.
    """

    def contribution(records: object, weights: Array) -> ClippedSum:
        return clip_rows(gradients_of(target, vector, records), weights, bound)

    return sum_chunks(target, contribution, ClippedSum(jnp.zeros_like(vector), jnp.zeros((), vector.dtype)))


def clipped_ratios(target: Target, vector: Array, proposal: Array, bound: Array) -> ClippedSum:
    """The sum [] of log p(x | proposal) − log p(x | vector) over records, each clipped to ±bound.

    A ratio that is not a number counts as −bound: the proposal is taken for impossible there.
    """

    def contribution(records: object, weights: Array) -> ClippedSum:
        density = jax.vmap(target.log_likelihood, (None, 0))
        ratios = density(proposal, records) - density(vector, records)
        ratios = jnp.where(jnp.isnan(ratios), -jnp.inf, ratios)
        clipped = jnp.clip(ratios, -bound, bound)
        # A product would turn an infinite ratio of filling into NaN.
        kept = jnp.where(weights > 0, clipped, 0.0)
        return ClippedSum(jnp.sum(kept), jnp.sum(jnp.where(jnp.abs(ratios) > bound, weights, 0.0)))

    zero = jnp.zeros((), vector.dtype)
    return sum_chunks(target, contribution, ClippedSum(zero, zero))


def gradients_of(target: Target, vector: Array, records: object) -> Array:
    """The gradients of the log-likelihood [d, m] of m records: this layout needs no transpose to be summed."""
    return jax.vmap(jax.grad(target.log_likelihood), (None, 0), -1)(vector, records)


def clip_rows(gradients: Array, weights: Array, bound: float) -> ClippedSum:
    """The weighted sum [d] of vectors [d, m], each scaled down to norm `bound` if it is longer."""
    norms = jnp.sqrt(jnp.sum(gradients * gradients, axis=0))
    finite = jnp.isfinite(norms)
    gradients = jnp.where(finite[None, :], gradients, 0.0)
    # bound / max(norm, bound) is 1 at a gradient of zero, without a division by it.
    scales = weights if bound == inf else weights * (bound / jnp.maximum(norms, bound))
    longer = jnp.sum(jnp.where((norms > bound) | ~finite, weights, 0.0))
    return ClippedSum(gradients @ jnp.where(finite, scales, 0.0), longer)


def sum_chunks(target: Target, contribution: Callable[[object, Array], ClippedSum], zero: ClippedSum) -> ClippedSum:
    """The sum of a contribution over the chunks of records, one after the other."""

    def add(total: ClippedSum, chunk: tuple[object, Array]) -> tuple[ClippedSum, None]:
        return jax.tree.map(jnp.add, total, contribution(*chunk)), None

    return jax.lax.scan(add, zero, (target.records, target.weights))[0]
