"""Discrete values as a uniform within their cell: the cell of x holds the uniforms from P(X < x) to P(X ≤ x)."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from dpjax.adapters.numpyro.form import Form, along
from dpjax.base import Array
from dpjax.models.cells import bounded, cell_edges, uniforms_within
from dpjax.models.scores import UNIFORM_SCORES

WORDS = "a uniform within its cell"
MAX_COUNT = 1_000_000
"""A search for the cell of a count ends here, whatever its law."""


def cells(edges: Callable[[Array], tuple[Array, Array]], value: Callable[[Array], Array], inner: Any) -> Form:
    """The form whose cells lie between ``edges(value)``; ``value(noise)`` finds the cell that holds a uniform."""
    kind = jax.eval_shape(inner.sample, jax.random.key(0)).dtype
    return Form(
        WORDS,
        lambda key, values: uniforms_within(key, *edges(values)),
        lambda noise: value(noise).astype(kind),
        scores=UNIFORM_SCORES,
        draw=jax.random.uniform,
    )


def binary_form(inner: Any) -> Form:
    """A Bernoulli law: 1 holds the uniforms above P(X = 0)."""
    edge = 1 - jnp.asarray(inner.probs, float)

    def edges(values: Array) -> tuple[Array, Array]:
        ends = jnp.broadcast_to(edge, values.shape)
        return jnp.where(values == 1, ends, 0.0), jnp.where(values == 1, 1.0, ends)

    return cells(edges, lambda noise: noise >= along(edge, noise), inner)


def category_form(inner: Any) -> Form:
    """A Categorical law."""
    inside = cell_edges(inner.probs)

    def edges(values: Array) -> tuple[Array, Array]:
        ends = jnp.broadcast_to(bounded(inside), (*values.shape, inside.shape[-1] + 2))
        lower, upper = (jnp.take_along_axis(ends, values[..., None] + step, axis=-1)[..., 0] for step in (0, 1))
        return lower, upper

    def value(noise: Array) -> Array:
        ends = jnp.broadcast_to(inside, (*noise.shape, inside.shape[-1]))
        return jnp.sum(ends <= noise[..., None], axis=-1)

    return cells(edges, value, inner)


def level_form(inner: Any) -> Form:
    """A discrete Uniform law: cells of equal width from its lowest to its highest value."""

    def span(values: Array) -> tuple[Array, Array]:
        low, high = (jnp.broadcast_to(jnp.asarray(bound), values.shape) for bound in (inner.low, inner.high))
        return low, (high - low + 1).astype(float)

    def edges(values: Array) -> tuple[Array, Array]:
        low, levels = span(values)
        place = (values - low).astype(float)
        return place / levels, (place + 1) / levels

    def value(noise: Array) -> Array:
        low, levels = span(noise)
        return low + jnp.minimum(jnp.floor(noise * levels), levels - 1).astype(low.dtype)

    return cells(edges, value, inner)


def count_form(inner: Any) -> Form:
    """A law on 0, 1, 2, ..., such as a Poisson or a Binomial one: its probabilities are added up from 0."""
    kind = jax.eval_shape(inner.sample, jax.random.key(0)).dtype

    def probability(counts: Array) -> Array:
        # Beyond the support some of NumPyro's formulas are not a number.
        return jnp.where(inner.support(counts), jnp.exp(inner.log_prob(counts)), 0.0).astype(float)

    def edges(values: Array) -> tuple[Array, Array]:
        def add(count: Array, below: Array) -> Array:
            return below + jnp.where(count < values, probability(jnp.full(values.shape, count, kind)), 0.0)

        lower = jax.lax.fori_loop(jnp.zeros((), kind), jnp.max(values), add, jnp.zeros(values.shape, float))
        return lower, jnp.minimum(lower + probability(values), 1.0)

    def value(noise: Array) -> Array:
        mean = along(inner.mean, noise)

        def add(carry: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
            count, below, found, _ = carry
            reached = below + probability(jnp.full(noise.shape, count, kind))
            beyond = reached <= noise
            # Past the mean, a sum that no longer grows has met the end of the law or of the number format.
            going = beyond & ((reached > below) | (count.astype(float) < mean))
            return count + jnp.ones((), kind), reached, found + beyond.astype(kind), jnp.any(going)

        def unfinished(carry: tuple[Array, Array, Array, Array]) -> Array:
            return carry[3] & (carry[0] < MAX_COUNT)

        zeros = jnp.zeros(noise.shape, kind)
        start = (jnp.zeros((), kind), zeros.astype(float), zeros, jnp.array(True))
        return jax.lax.while_loop(unfinished, add, start)[2]

    return cells(edges, value, inner)
