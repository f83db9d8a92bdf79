"""Over-dispersed starts: chains begin with one cluster, a few, or many, whatever the values."""

from typing import Any

import jax
import jax.numpy as jnp

from dpjax.base import Array, Key
from dpjax.mixture.base import Component, Theta
from dpjax.mixture.binned import Binned
from dpjax.mixture.problem import MixtureProblem
from dpjax.numerics import tree_where

__all__ = ["NUM_GROUPS", "possible_records", "record_shape", "record_type", "start_labels", "start_records"]

NUM_GROUPS = (1, 8, 3, 16)
"""The numbers of clusters at the start of the first chain, the second, and so on, repeated."""


def record_shape(component: Component) -> tuple[int, ...]:
    """The shape of one record of a component."""
    return one_record(component).shape[1:]


def record_type(component: Component) -> Any:
    """The dtype of the records of a component."""
    return one_record(component).dtype


def one_record(component: Component) -> Any:
    """The shape and dtype of one record [1, ...] of a component."""

    def one(key: Key) -> Array:
        prior_key, record_key = jax.random.split(key)
        return component.sample(record_key, component.sample_prior(prior_key, 1))

    return jax.eval_shape(one, jax.eval_shape(jax.random.key, 0))


def start_labels(records: Array, num_groups: Array) -> Array:
    """Labels [n] of groups of about equal size, in the order of the records' first coordinate."""
    n = records.shape[0]
    ranks = jnp.argsort(jnp.argsort(records.reshape(n, -1)[:, 0]))
    return (ranks * jnp.minimum(num_groups, n) // n).astype(jnp.int32)


def start_records(problem: MixtureProblem, key: Key) -> Array:
    """Records [n, ...] to start from: the released values if they are possible records, else prior draws."""
    key_prior, key_record = jax.random.split(key)
    n, shape = problem.n, record_shape(problem.component)
    theta = problem.component.sample_prior(key_prior, n)
    drawn = problem.component.sample(key_record, theta)
    if problem.values.shape != (n, *shape) or isinstance(problem.channel, Binned):
        return drawn
    values = problem.values.astype(drawn.dtype)
    if problem.channel is None:
        return values
    possible = have_density(problem.component, values, theta)
    return tree_where(possible, values, drawn)


def have_density(component: Component, records: Array, theta: Theta) -> Array:
    """Whether each record [n, ...] is possible under its parameters [n, ...]."""
    return jnp.isfinite(jax.vmap(component.log_density)(records, theta))


@jax.jit
def possible_records(problem: MixtureProblem, key: Key) -> Array:
    """Whether each value [n] is a possible record, at parameters drawn from the base measure."""
    theta = problem.component.sample_prior(key, problem.n)
    return have_density(problem.component, problem.values, theta)
