"""Records in a plate within plates, one after another: the last plate varies fastest."""

from typing import Any

import jax.numpy as jnp
from numpyro import distributions as dist

from dpjax.base import Array

__all__ = ["FLAT", "flatten"]

FLAT = (
    dist.BernoulliLogits,
    dist.BernoulliProbs,
    dist.Beta,
    dist.BinomialLogits,
    dist.BinomialProbs,
    dist.CategoricalLogits,
    dist.CategoricalProbs,
    dist.Cauchy,
    dist.Exponential,
    dist.Gamma,
    dist.Laplace,
    dist.LogNormal,
    dist.Logistic,
    dist.NegativeBinomial2,
    dist.Normal,
    dist.Poisson,
    dist.StudentT,
)
"""Families that the arguments of their constructors describe completely."""


def flatten(distribution: Any, shape: tuple[int, ...], places: Array) -> Any:
    """The distributions [m] of the records at these places [m], from those of all in plates of this shape."""
    inner = distribution
    while isinstance(inner, dist.ExpandedDistribution):
        inner = inner.base_dist

    def pick(name: str, event_dim: int) -> Array:
        value = jnp.asarray(getattr(inner, name))
        own = value.shape[value.ndim - event_dim :]
        return jnp.broadcast_to(value, shape + own).reshape(-1, *own)[places]

    constraints = inner.arg_constraints.items()
    return type(inner)(**{name: pick(name, constraint.event_dim) for name, constraint in constraints})
