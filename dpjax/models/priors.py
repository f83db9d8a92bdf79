"""Prior distributions with their conjugate updates."""

from dataclasses import dataclass
from math import log
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln, multigammaln
from jax.scipy.stats import norm
from jax.typing import ArrayLike

from dpjax._util.pytree import frozen_pytree
from dpjax._util.spelling import NamesArguments
from dpjax._util.validation import check_positive_floats, fail, is_traced
from dpjax._util.warn import warn_at_the_call
from dpjax.base import Array, Key
from dpjax.models.arguments import (
    check_definite,
    check_degrees,
    check_finite,
    check_lengths,
    hold_arrays,
)
from dpjax.numerics.ends import positive_at
from dpjax.numerics.gamma import draw_gamma, draw_log_gamma
from dpjax.numerics.linear_algebra import (
    LOG_TWO_PI,
    cross_products,
    draw_bartlett,
    factorize,
    product,
    solve_lower,
    solve_upper,
)

__all__ = [
    "GammaPrior",
    "InverseGammaPrior",
    "NormalInverseGammaPrior",
    "NormalInverseWishartPrior",
    "NormalPrior",
    "as_float",
    "broadcast",
    "may_underflow",
    "warn_of_underflow",
]

NEGLIGIBLE = 1e-6
"""Underflow probability below which initial draws and the tuning of a kernel will not meet the event."""

NOTABLE = 1e-3
"""Underflow probability of a prior above which a warning is given."""


def as_float(value: Any) -> Array:
    """A parameter of a prior in the default float dtype."""
    return jnp.asarray(value, float)


def broadcast(shape: tuple[int, ...] | None, *values: Any) -> tuple[Array, ...]:
    """Parameters of a prior broadcast to the given shape, or to a common one."""
    arrays = [as_float(value) for value in values]
    common = jnp.broadcast_shapes(*(array.shape for array in arrays)) if shape is None else shape
    return tuple(jnp.broadcast_to(array, common) for array in arrays)


@frozen_pytree
@dataclass(frozen=True)
class NormalPrior(NamesArguments):
    """Independent Normal distributions N(mean, scale²).

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
    >>> import dpjax
    >>> prior = dpjax.models.NormalPrior(mean=0.0, scale=5.0)
    >>> round(float(prior.log_density(0.0)), 3)
    -2.528
    """

    mean: ArrayLike
    scale: ArrayLike

    def __post_init__(self) -> None:
        check_finite("mean", self.mean)
        check_positive_floats("scale", self.scale, "Pass standard deviations, not variances or precisions.")
        check_lengths("scale", self.scale, "mean", self.mean)
        hold_arrays(self)

    def log_density(self, value: Array) -> Array:
        """The joint log-density [] of all entries."""
        return jnp.sum(norm.logpdf(value, *broadcast(jnp.shape(value), self.mean, self.scale)))

    def sample(self, key: Key, shape: tuple[int, ...] | None = None) -> Array:
        """A draw of this shape, by default that of the mean and scale."""
        mean, scale = broadcast(shape, self.mean, self.scale)
        return mean + scale * jax.random.normal(key, mean.shape, float)


@frozen_pytree
@dataclass(frozen=True)
class GammaPrior(NamesArguments):
    """Independent Gamma distributions of density ∝ v^(shape - 1) exp(-rate v).

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
        If the shape is so small that more than 0.1 % of the distribution lies below the smallest float.

    Examples
    --------
    >>> import dpjax
    >>> model = dpjax.models.exponential(dpjax.models.GammaPrior(2.0, 1.0))
    """

    shape: ArrayLike
    rate: ArrayLike

    def __post_init__(self) -> None:
        check_positive_floats("shape", self.shape)
        check_positive_floats("rate", self.rate, "Pass the rate, that is 1 / scale.")
        check_lengths("rate", self.rate, "shape", self.shape)
        hold_arrays(self)
        warn_of_underflow("shape", self.shape)

    def log_density(self, value: Array) -> Array:
        """The joint log-density [] of all entries."""
        shape, rate = broadcast(jnp.shape(value), self.shape, self.rate)
        return jnp.sum(shape * jnp.log(rate) - gammaln(shape) + (shape - 1) * jnp.log(value) - rate * value)

    def sample(self, key: Key, shape: tuple[int, ...] | None = None) -> Array:
        """A draw of this shape, by default that of the shape and rate."""
        gamma_shape, rate = broadcast(shape, self.shape, self.rate)
        return draw_gamma(key, gamma_shape, rate)

    def posterior(self, waits: Array) -> "GammaPrior":
        """The posterior of the rate of Exponential values [n]: Gamma(shape + n, rate + Σ values)."""
        return GammaPrior(as_float(self.shape) + waits.size, as_float(self.rate) + jnp.sum(waits))


@frozen_pytree
@dataclass(frozen=True)
class InverseGammaPrior(NamesArguments):
    """The inverse Gamma distribution of density ∝ v^(-shape - 1) exp(-scale / v).

    Parameters
    ----------
    shape : []
        The shape; the mean is scale / (shape - 1) if shape > 1.
    scale : []
        The scale, in the units of the variance.

    Raises
    ------
    ValueError
        If a shape or scale is not finite and positive.

    Warns
    -----
    UserWarning
        If the shape is so small that more than 0.1 % of the distribution lies above the largest float.

    Examples
    --------
    >>> import dpjax
    >>> prior = dpjax.models.InverseGammaPrior(shape=2.0, scale=1.0)
    >>> round(float(prior.log_density(1.0)), 3)
    -1.0
    """

    shape: ArrayLike
    scale: ArrayLike

    def __post_init__(self) -> None:
        check_positive_floats("shape", self.shape)
        check_positive_floats("scale", self.scale)
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
        """The posterior of the variance of Normal residuals [n]: shape + n/2, scale + Σ residuals² / 2."""
        return InverseGammaPrior(
            as_float(self.shape) + residuals.size / 2, as_float(self.scale) + jnp.sum(residuals**2) / 2
        )


@frozen_pytree
@dataclass(frozen=True)
class NormalInverseGammaPrior(NamesArguments):
    """The prior variance ~ InverseGamma(shape, scale) and coef | variance ~ N(mean, variance · precision⁻¹).

    Parameters
    ----------
    mean : [] or [k]
        The mean of the coefficients; one number is used for all.
    precision : [] or [k, k]
        The prior precision in units of 1 / variance; a number is that multiple of the identity.
    shape : []
        The shape of the prior of the variance.
    scale : []
        Its scale.

    Raises
    ------
    ValueError
        If an entry is not finite, the precision not symmetric positive definite, or shape or scale not positive.

    Examples
    --------
    >>> import dpjax
    >>> prior = dpjax.models.NormalInverseGammaPrior(0.0, 0.1, 3.0, 2.0)
    """

    mean: ArrayLike
    precision: ArrayLike
    shape: ArrayLike
    scale: ArrayLike

    def __post_init__(self) -> None:
        check_finite("mean", self.mean)
        check_definite("precision", self.precision, "Pass an inverse covariance, in units of 1 / variance.")
        check_positive_floats("shape", self.shape)
        check_positive_floats("scale", self.scale)
        hold_arrays(self)

    @property
    def variance(self) -> InverseGammaPrior:
        """The marginal prior of the variance."""
        return InverseGammaPrior(self.shape, self.scale)

    def expand(self, dim: int) -> tuple[Array, Array]:
        """The mean [dim] and the precision [dim, dim] as full arrays."""
        precision = as_float(self.precision)
        return jnp.broadcast_to(as_float(self.mean), (dim,)), precision if precision.ndim else precision * jnp.eye(dim)

    def log_density(self, coef: Array, variance: Array) -> Array:
        """The joint log-density [] of coefficients [k] and a variance []."""
        mean, precision = self.expand(coef.size)
        factor = factorize(precision)
        scaled = product(factor.T, coef - mean)
        log_det = 2 * jnp.sum(jnp.log(jnp.diagonal(factor))) - coef.size * (LOG_TWO_PI + jnp.log(variance))
        return self.variance.log_density(variance) + (log_det - jnp.sum(scaled**2) / variance) / 2

    def sample(self, key: Key, dim: int) -> tuple[Array, Array]:
        """A draw of coefficients [dim] and a variance []."""
        key_variance, key_coef = jax.random.split(key)
        mean, precision = self.expand(dim)
        variance = self.variance.sample(key_variance)
        normal = jax.random.normal(key_coef, (dim, 1), float)
        return mean + jnp.sqrt(variance) * solve_upper(factorize(precision), normal)[:, 0], variance

    def posterior(self, design: Array, response: Array) -> "NormalInverseGammaPrior":
        """The posterior given a response [n] to a design [k, n].

        The scale is b₀ + ½(‖y - Xμₙ‖² + (μₙ - μ₀)ᵀΛ₀(μₙ - μ₀)), which equals
        b₀ + ½(yᵀy + μ₀ᵀΛ₀μ₀ - μₙᵀΛₙμₙ) without cancellation.
        """
        prior_mean, prior_precision = self.expand(len(design))
        products = cross_products(design, jnp.concatenate([design, response[None]]))
        precision = prior_precision + products[:, :-1]
        factor = factorize(precision)
        linear = product(prior_precision, prior_mean) + products[:, -1]
        mean = solve_upper(factor, solve_lower(factor, linear[:, None]))[:, 0]
        shift = mean - prior_mean
        loss = jnp.sum((response - product(mean, design)) ** 2) + product(shift, product(prior_precision, shift))
        shape, scale = as_float(self.shape) + response.size / 2, as_float(self.scale) + loss / 2
        return NormalInverseGammaPrior(mean, precision, shape, scale)


@frozen_pytree
@dataclass(frozen=True)
class NormalInverseWishartPrior(NamesArguments):
    """The prior covariance ~ InverseWishart(degrees, scale) and mean | covariance ~ N(mean, covariance / precision).

    Parameters
    ----------
    mean : [p]
        The prior mean.
    precision : []
        The prior mean counts as so many records (κ).
    degrees : []
        The degrees of freedom ν, above p - 1; the mean of the covariance is scale / (ν - p - 1).
    scale : [p, p]
        The scale matrix Ψ.

    Raises
    ------
    ValueError
        If shapes disagree, an entry is not finite, the scale is not symmetric positive definite, the precision
        not positive or the degrees not above p - 1.

    Examples
    --------
    >>> import dpjax
    >>> import jax.numpy as jnp
    >>> prior = dpjax.models.NormalInverseWishartPrior(jnp.zeros(2), 0.5, 4.0, jnp.eye(2))
    """

    mean: ArrayLike
    precision: ArrayLike
    degrees: ArrayLike
    scale: ArrayLike

    def __post_init__(self) -> None:
        check_finite("mean", self.mean)
        check_positive_floats("precision", self.precision)
        check_definite("scale", self.scale, "Pass the scale matrix of the inverse Wishart distribution.")
        dim = np.shape(self.scale)[-1] if np.ndim(self.scale) else 1
        check_degrees(self.degrees, dim)
        for name, shape in {"mean": (dim,), "precision": (), "degrees": (), "scale": (dim, dim)}.items():
            if (given := np.shape(getattr(self, name))) != shape:
                remedy = "All are of one vector of as many numbers as the scale matrix has rows."
                fail(name, f"shape {list(given)}", f"shape {list(shape)}", remedy)
        hold_arrays(self)

    def log_density(self, mean: Array, covariance: Array) -> Array:
        """The joint log-density [] of a mean [p] and the lower triangle of a covariance [p, p]."""
        dim, kappa, degrees = mean.size, as_float(self.precision), as_float(self.degrees)
        factor, factor_scale = factorize(covariance), factorize(as_float(self.scale))
        log_root, log_root_scale = (jnp.sum(jnp.log(jnp.diagonal(part))) for part in (factor, factor_scale))
        trace = jnp.sum(solve_lower(factor, factor_scale) ** 2)
        distance = kappa * jnp.sum(solve_lower(factor, (mean - as_float(self.mean))[:, None]) ** 2)
        log_mean = (dim * (jnp.log(kappa) - LOG_TWO_PI) - distance) / 2 - log_root
        log_constant = degrees * (log_root_scale - dim * log(2) / 2) - multigammaln(degrees / 2, dim)
        return log_mean + log_constant - (degrees + dim + 1) * log_root - trace / 2

    def sample(self, key: Key) -> tuple[Array, Array]:
        """A draw of a mean [p] and a covariance [p, p], by the Bartlett decomposition."""
        key_gamma, key_below, key_mean = jax.random.split(key, 3)
        scale, mean = as_float(self.scale), as_float(self.mean)
        triangle = draw_bartlett(key_gamma, key_below, as_float(self.degrees) - jnp.arange(mean.size, dtype=float))
        root = solve_lower(triangle, factorize(scale).T)  # covariance = rootᵀ root
        normal = jax.random.normal(key_mean, mean.shape, float)
        return mean + product(normal, root) / jnp.sqrt(as_float(self.precision)), product(root.T, root)

    def posterior(self, records: Array) -> "NormalInverseWishartPrior":
        """The posterior given Normal records [p, n]."""
        size, kappa, prior_mean = records.shape[1], as_float(self.precision), as_float(self.mean)
        average = jnp.mean(records, axis=1)
        deviations, shift = records - average[:, None], average - prior_mean
        mean = prior_mean + shift * (size / (kappa + size))
        scale = as_float(self.scale) + cross_products(deviations, deviations)
        scale = scale + jnp.outer(shift, shift) * (kappa * size / (kappa + size))
        return NormalInverseWishartPrior(mean, kappa + size, as_float(self.degrees) + size, scale)


def underflow_probability(shape: Any) -> np.ndarray:
    """The approximate mass below the smallest float of a Gamma, Beta or Dirichlet distribution with small shapes."""
    limits = jnp.finfo(jnp.zeros((), float).dtype)
    return np.exp(np.asarray(shape, np.float64) * np.log(float(limits.tiny)))


def may_underflow(concentration: Array) -> bool:
    """Whether a Dirichlet draw with this concentration, if concrete, may have entries that underflow."""
    return not is_traced(concentration) and bool(np.max(underflow_probability(concentration)) > NEGLIGIBLE)


def warn_of_underflow(argument: str, shape: Any) -> None:
    """Warn if a notable part of a prior with this shape, if concrete, underflows."""
    if is_traced(shape) or np.size(shape) == 0:
        return
    least, mass = np.min(np.asarray(shape)), np.max(underflow_probability(shape))
    if mass > NOTABLE:
        kind = jnp.zeros((), float).dtype
        remedy = "Pass a larger shape" + (
            "." if kind == jnp.float64 else ", or use 64-bit floats: jax.config.update('jax_enable_x64', True)."
        )
        warn_at_the_call(
            f"{argument}: given {least:g}; about {mass:.1%} of this prior lies beyond the range of {kind}. Its draws "
            f"are rounded to the end of that range, and the posterior is that of the prior truncated there. {remedy}",
        )
