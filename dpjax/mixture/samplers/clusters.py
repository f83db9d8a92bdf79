"""The statistics of the clusters and the parameters of their records."""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from dpjax.base import Array
from dpjax.mixture.base import Component, Theta

__all__ = ["at_labels", "at_slots", "summarize_clusters"]


def summarize_clusters(component: Component, capacity: int, labels: Array, records: Array) -> tuple[Array, Array]:
    """The number of records [H] and the sum of features [H, k] of each slot.

    A product with a table of ones is many times faster than adding at indices.
    """
    features = jax.vmap(component.features)(records)
    members = (labels[None, :] == jnp.arange(capacity, dtype=labels.dtype)[:, None]).astype(features.dtype)
    totals = jnp.matmul(members, features, precision=jax.lax.Precision.HIGHEST)
    return jnp.sum(members, axis=1), totals


def at_labels(theta: Theta, labels: Array) -> Theta:
    """Each record's parameters, leaves [n, ...]."""
    return {name: leaf[labels] for name, leaf in theta.items()}


def at_slots(log_density: Callable[[Array, Theta], Array], given: Array, theta: Theta) -> Array:
    """A log-density [H, n] of each of [n] at each slot."""
    return jax.vmap(jax.vmap(log_density, in_axes=(0, None)), in_axes=(None, 0))(given, theta)
