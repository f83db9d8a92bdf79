"""One distribution's values as noise."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp

from dpjax.base import Array, Key, NormalScores

CENTRED = "centred"


class Form(NamedTuple):
    """One distribution's values [n, ...] as noise [n, ...].

    Attributes
    ----------
    words
        The form, for `Model.describe`.
    noise
        ``(key, value) -> noise``.
    value
        Its inverse ``noise -> value``.
    log_density
        ``noise -> [n]`` where the noise is not free of the distribution's parameters.
    scores
        The noise as standard Normal numbers.
    draw
        ``(key, shape, dtype) -> noise``, where its law is one that JAX draws from at once.
    possible
        ``noise -> [n] bool``, whether it gives a value, where some does not.
    """

    words: str
    noise: Callable[[Key, Array], Array]
    value: Callable[[Array], Array]
    log_density: Callable[[Array], Array] | None = None
    scores: NormalScores | None = None
    draw: Callable[..., Array] | None = None
    possible: Callable[[Array], Array] | None = None


def along(parameter: Any, value: Array) -> Array:
    """A parameter in the shape and type of a value."""
    return jnp.broadcast_to(jnp.asarray(parameter, value.dtype), value.shape)


def per_record(terms: Array) -> Array:
    """The sum over all axes but the first [n]."""
    return jnp.sum(terms, axis=tuple(range(1, terms.ndim)))
