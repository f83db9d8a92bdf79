"""Priors of single numbers or of independent entries of an array, with their conjugate updates."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax.scipy.special import gammaln
from jax.scipy.stats import norm
from jax.typing import ArrayLike

from dpjax.base import Array, Key
from dpjax.models.arguments import check_finite, check_lengths, hold_arrays
from dpjax.models.underflow import warn_of_underflow
from dpjax.numerics.ends import positive_at
from dpjax.numerics.gamma import draw_gamma, draw_log_gamma
from dpjax.pytree import frozen_pytree
from dpjax.validation import check_positive

__all__ = ["GammaPrior", "InverseGammaPrior", "NormalPrior"]


def as_float(value: Any) -> Array:
    """A parameter of a prior in the default float dtype."""
    return jnp.asarray(value, float)


def broadcast(shape: tuple[int, ...] | None, *values: Any) -> tuple[Array, ...]:
    """Parameters of a prior at one shape: the given one, or the smallest that holds them all."""
    arrays = [as_float(value) for value in values]
    common = jnp.broadcast_shapes(*(array.shape for array in arrays)) if shape is None else shape
    return tuple(jnp.broadcast_to(array, common) for array in arrays)


@frozen_pytree
@dataclass(frozen=True)
class NormalPrior:
    """Independent Normal laws N(mean, scale²).

    Parameters
    ----------
    mean : [] or [k]
        The mean of each entry.
    scale : [] or [k]
        The standard deviation of each entry.

    Raises
    ------
    ValueError
        If a mean is not finite or a scale is not finite and positive.

    Examples
    --------
    >>> prior = NormalPrior(mean=0.0, scale=5.0)
    >>> round(float(prior.log_density(0.0)), 3)
    -2.528
    """

    mean: ArrayLike
    scale: ArrayLike

    def __post_init__(self) -> None:
        check_finite("mean", self.mean)
        check_positive("scale", self.scale, "Pass standard deviations, not variances or precisions.")
        check_lengths("scale", self.scale, "mean", self.mean)
        hold_arrays(self)

    def log_density(self, value: Array) -> Array:
        """The log-density [] of all entries together."""
        return jnp.sum(norm.logpdf(value, *broadcast(jnp.shape(value), self.mean, self.scale)))

    def sample(self, key: Key, shape: tuple[int, ...] | None = None) -> Array:
        """A draw of this shape, by default that of the mean and scale."""
        mean, scale = broadcast(shape, self.mean, self.scale)
        return mean + scale * jax.random.normal(key, mean.shape, float)


@frozen_pytree
@dataclass(frozen=True)
class GammaPrior:
    """Independent Gamma laws of density ∝ v^(shape - 1) exp(-rate v).

    Parameters
    ----------
    shape : [] or [k]
        The shape; the mean is shape / rate.
    rate : [] or [k]
        The rate (inverse scale).

    Raises
    ------
    ValueError
        If a shape or rate is not finite and positive.

    Warns
    -----
    UserWarning
        If the shape is so small that more than 0.1 % of the law lies below the smallest float.

    Examples
    --------
    >>> import dpjax
    >>> model = dpjax.models.exponential(dpjax.models.GammaPrior(2.0, 1.0))
    """

    shape: ArrayLike
    rate: ArrayLike

    def __post_init__(self) -> None:
        check_positive("shape", self.shape)
        check_positive("rate", self.rate, "Pass the rate, that is 1 / scale.")
        check_lengths("rate", self.rate, "shape", self.shape)
        hold_arrays(self)
        warn_of_underflow("shape", self.shape)

    def log_density(self, value: Array) -> Array:
        """The log-density [] of all entries together."""
        shape, rate = broadcast(jnp.shape(value), self.shape, self.rate)
        return jnp.sum(shape * jnp.log(rate) - gammaln(shape) + (shape - 1) * jnp.log(value) - rate * value)

    def sample(self, key: Key, shape: tuple[int, ...] | None = None) -> Array:
        """A draw of this shape, by default that of the shape and rate."""
        gamma_shape, rate = broadcast(shape, self.shape, self.rate)
        return draw_gamma(key, gamma_shape, rate)

    def posterior(self, waits: Array) -> "GammaPrior":
        """The law of the rate of Exponential values [n]: Gamma(shape + n, rate + Σ values)."""
        return GammaPrior(as_float(self.shape) + waits.size, as_float(self.rate) + jnp.sum(waits))


@frozen_pytree
@dataclass(frozen=True)
class InverseGammaPrior:
    """The inverse Gamma law of density ∝ v^(-shape - 1) exp(-scale / v).

    Parameters
    ----------
    shape : []
        The shape; the mean is scale / (shape - 1) where shape > 1.
    scale : []
        The scale, in the units of the variance.

    Raises
    ------
    ValueError
        If a shape or scale is not finite and positive.

    Warns
    -----
    UserWarning
        If the shape is so small that more than 0.1 % of the law lies above the largest float.

    Examples
    --------
    >>> prior = InverseGammaPrior(shape=2.0, scale=1.0)
    >>> round(float(prior.log_density(1.0)), 3)
    -1.0
    """

    shape: ArrayLike
    scale: ArrayLike

    def __post_init__(self) -> None:
        check_positive("shape", self.shape)
        check_positive("scale", self.scale)
        hold_arrays(self)
        warn_of_underflow("shape", self.shape)

    def log_density(self, value: Array) -> Array:
        """The log-density [] of a variance []."""
        shape, scale = as_float(self.shape), as_float(self.scale)
        return shape * jnp.log(scale) - gammaln(shape) - (shape + 1) * jnp.log(value) - scale / value

    def sample(self, key: Key) -> Array:
        """A draw []."""
        return positive_at(jnp.log(as_float(self.scale)) - draw_log_gamma(key, as_float(self.shape)))

    def posterior(self, residuals: Array) -> "InverseGammaPrior":
        """The law of the variance of Normal residuals [n]: shape + n/2, scale + Σ residuals² / 2."""
        return InverseGammaPrior(
            as_float(self.shape) + residuals.size / 2, as_float(self.scale) + jnp.sum(residuals**2) / 2
        )
