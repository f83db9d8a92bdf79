"""Smooth one-to-one maps between parameters on their natural scale and unconstrained arrays."""

from collections.abc import Callable, Mapping
from math import isqrt, log
from typing import NamedTuple

import jax
import jax.numpy as jnp

from dpjax.base import Array, Model, Parameters
from dpjax.numerics.linear_algebra import factorize, product

__all__ = ["COVARIANCE", "POSITIVE", "SIMPLEX", "Bijection", "MappedModel"]


class Bijection(NamedTuple):
    """A bijection between a parameter and an unconstrained array.

    Attributes
    ----------
    log_jacobian
        ``unconstrained -> []``: log |det| of ``constrain``, for the coordinates that the parameter's density refers to.
    """

    unconstrain: Callable[[Array], Array]
    constrain: Callable[[Array], Array]
    log_jacobian: Callable[[Array], Array]


class MappedModel(Model, abstract=True):
    """A model whose parameters are mapped to unconstrained arrays one by one."""

    @property
    def bijections(self) -> Mapping[str, Bijection]:
        """The map of each parameter that cannot take every real value."""
        return {}

    def unconstrain(self, parameters: Parameters) -> Parameters:
        """The unconstrained arrays of the parameters."""
        return parameters | {
            name: bijection.unconstrain(parameters[name]) for name, bijection in self.bijections.items()
        }

    def constrain(self, unconstrained: Parameters) -> Parameters:
        """The parameters of unconstrained arrays."""
        return unconstrained | {
            name: bijection.constrain(unconstrained[name]) for name, bijection in self.bijections.items()
        }

    def log_jacobian(self, unconstrained: Parameters) -> Array:
        """The sum [] of the log-determinants of the maps."""
        terms = (one.log_jacobian(unconstrained[name]) for name, one in self.bijections.items())
        return sum(terms, jnp.zeros((), float))


def simplex_to_real(probabilities: Array) -> Array:
    """Log-ratios [..., c - 1] of the first c - 1 probabilities to the last."""
    logs = jnp.log(probabilities)
    return logs[..., :-1] - logs[..., -1:]


def append_zero(ratios: Array) -> Array:
    """The log-ratios [..., c] including that of the last probability to itself."""
    return jnp.concatenate([ratios, jnp.zeros_like(ratios[..., :1])], axis=-1)


def real_to_simplex(ratios: Array) -> Array:
    """The inverse of `simplex_to_real`: probabilities [..., c]."""
    return jax.nn.softmax(append_zero(ratios), axis=-1)


def simplex_log_jacobian(ratios: Array) -> Array:
    """log |det| for the first c - 1 probabilities: the sum of the logarithms of all c."""
    return jnp.sum(jax.nn.log_softmax(append_zero(ratios), axis=-1))


def covariance_to_real(covariance: Array) -> Array:
    """The Cholesky factor of a matrix [p, p] as a vector: p log-diagonals, then the rows below the diagonal."""
    factor = factorize(covariance)
    below = jnp.tril_indices(len(factor), -1)
    return jnp.concatenate([jnp.log(jnp.diagonal(factor)), factor[below]])


def real_to_covariance(vector: Array) -> Array:
    """The inverse of `covariance_to_real`."""
    dim = matrix_size(vector)
    below = jnp.tril_indices(dim, -1)
    factor = jnp.diag(jnp.exp(vector[:dim])).at[below].set(vector[dim:])
    return product(factor, factor.T)


def covariance_log_jacobian(vector: Array) -> Array:
    """log |det| for the lower triangle of L Lᵀ; |det| = 2^p Π L_ii^(p + 1 - i), i from 0, for log L_ii."""
    dim = matrix_size(vector)
    return dim * log(2) + jnp.sum(jnp.arange(dim + 1, 1, -1, dtype=float) * vector[:dim])


def matrix_size(vector: Array) -> int:
    """The p for a vector of p (p + 1) / 2 entries."""
    return (isqrt(8 * vector.size + 1) - 1) // 2


POSITIVE = Bijection(jnp.log, jnp.exp, jnp.sum)
SIMPLEX = Bijection(simplex_to_real, real_to_simplex, simplex_log_jacobian)
COVARIANCE = Bijection(covariance_to_real, real_to_covariance, covariance_log_jacobian)
