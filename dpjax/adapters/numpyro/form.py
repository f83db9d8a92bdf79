"""The form of a distribution: its values as noise."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp

from dpjax.base import Array, Key, NormalScores

CENTRED = "centred"


class Form(NamedTuple):
    """A map between a distribution's values [n, ...] and noise [n, ...].

    Attributes
    ----------
    description
        The form in words, for `Model.describe`.
    noise
        ``(key, value) -> noise``.
    value
        Its inverse ``noise -> value``.
    log_density
        ``noise -> [n]``, the log-density of the noise if it depends on the distribution's parameters.
    scores
        The noise as standard Normal variables.
    draw
        ``(key, shape, dtype) -> noise``, if JAX has a sampler for the noise.
    possible
        ``noise -> [n] bool``, whether noise gives a value; None if it always does.
    """

    description: str
    noise: Callable[[Key, Array], Array]
    value: Callable[[Array], Array]
    log_density: Callable[[Array], Array] | None = None
    scores: NormalScores | None = None
    draw: Callable[..., Array] | None = None
    possible: Callable[[Array], Array] | None = None


def expand_as(parameter: Any, value: Array) -> Array:
    """A parameter broadcast to the shape and dtype of a value."""
    return jnp.broadcast_to(jnp.asarray(parameter, value.dtype), value.shape)


def per_record(terms: Array) -> Array:
    """The sum over all axes but the first [n]."""
    return jnp.sum(terms, axis=tuple(range(1, terms.ndim)))
