"""The log-density of a distribution, where NumPyro's own leaves the support unchecked or loses a tail."""

from math import prod
from typing import Any

import jax
import jax.numpy as jnp
from numpyro import distributions as dist

from dpjax.adapters.numpyro.truncation import is_cut, truncated_log_density
from dpjax.adapters.numpyro.visit import unwrap
from dpjax.base import Array

CATEGORIES = (dist.CategoricalProbs, dist.CategoricalLogits)
MIXTURES = (dist.MixtureSameFamily, dist.MixtureGeneral)


def log_density(law: Any, value: Array) -> Array:
    """The log-density of a value; -inf beyond the support."""
    inner = unwrap(law)
    if is_cut(inner):
        return over_events(law, jnp.where(inner.support(value), truncated_log_density(inner, value), -jnp.inf))
    result = log_probability(law, inner, value)
    inside = in_support(inner, value)
    return jnp.where(jnp.all(inside, axis=tuple(range(result.ndim, inside.ndim))), result, -jnp.inf)


def log_probability(law: Any, inner: Any, value: Array) -> Array:
    """NumPyro's log-density; of categories of one law for all records without its copy of the law for each of them.

    A gradient would hold that copy: as many numbers as records times categories.
    """
    if not isinstance(inner, CATEGORIES) or law.event_shape or prod(inner.batch_shape) > 1:
        return law.log_prob(value)
    logs = jnp.ravel(inner.logits)
    return (logs if isinstance(inner, dist.CategoricalProbs) else jax.nn.log_softmax(logs))[value]


def in_support(inner: Any, value: Array) -> Array:
    """Whether single numbers are possible values; vectors, matrices and mixtures are not looked at."""
    if inner.event_shape or isinstance(inner, MIXTURES):
        return jnp.ones(value.shape[: value.ndim - len(inner.event_shape)], bool)
    return jnp.broadcast_to(jnp.asarray(inner.support(value)), value.shape)


def over_events(law: Any, terms: Array) -> Array:
    """The sum over the axes that belong to one value of the law."""
    return jnp.sum(terms, axis=tuple(range(terms.ndim - len(law.event_shape), terms.ndim)))
