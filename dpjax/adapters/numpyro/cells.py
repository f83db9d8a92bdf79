"""Discrete values as a uniform within their cell: the cell of x holds the uniforms from P(X < x) to P(X ≤ x)."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from dpjax.adapters.numpyro.form import Form, along
from dpjax.base import Array, Key
from dpjax.numerics.cells import bounded, cell_edges, uniforms_within
from dpjax.numerics.scores import UNIFORM_SCORES

WORDS = "a uniform within its cell"


def cells(
    edges: Callable[[Array], tuple[Array, Array]],
    value: Callable[[Array], Array],
    inner: Any,
    reached: Callable[[Array], Array] | None = None,
) -> Form:
    """The form whose cells lie between ``edges(value)``; ``value(noise)`` finds the cell that holds a uniform.

    Far out in the upper tail a cell is too narrow to hold any number: the noise of its value is NaN, and impossible. So
    is noise whose cell is beyond reach, where ``reached(value)`` says so.
    """
    kind = kind_of(inner)

    def noise(key: Key, values: Array) -> Array:
        place = uniforms_within(key, *edges(values))
        return jnp.where(value(place).astype(kind) == values, place, jnp.nan)

    def possible(noise: Array) -> Array:
        holds = ~jnp.isnan(noise)
        if reached is not None:
            holds = holds & reached(value(noise))
        return jnp.all(holds, axis=tuple(range(1, holds.ndim)))

    return Form(
        WORDS,
        noise,
        lambda noise: value(noise).astype(kind),
        scores=UNIFORM_SCORES,
        draw=jax.random.uniform,
        possible=possible,
    )


def kind_of(inner: Any) -> Any:
    """The type of a law's values."""
    return jax.eval_shape(inner.sample, jax.random.key(0)).dtype


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
        # The number of levels may be too large for an integer.
        return low, high.astype(float) - low.astype(float) + 1

    def edges(values: Array) -> tuple[Array, Array]:
        low, levels = span(values)
        place = values.astype(float) - low.astype(float)
        return place / levels, (place + 1) / levels

    def value(noise: Array) -> Array:
        low, levels = span(noise)
        return low + jnp.minimum(jnp.floor(noise * levels), levels - 1).astype(low.dtype)

    return cells(edges, value, inner)
