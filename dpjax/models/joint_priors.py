"""Joint conjugate priors: of coefficients and a variance, and of a mean and a covariance matrix."""

from dataclasses import dataclass
from math import log

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import multigammaln
from jax.typing import ArrayLike

from dpjax.base import Array, Key
from dpjax.models.arguments import check_definite, check_degrees, check_finite, hold_arrays
from dpjax.models.priors import InverseGammaPrior, as_float
from dpjax.numerics.linear_algebra import LOG_TWO_PI, factorize, product, solve_lower, solve_upper
from dpjax.numerics.wishart import draw_bartlett
from dpjax.pytree import frozen_pytree
from dpjax.validation import check_positive

__all__ = ["NormalInverseGammaPrior", "NormalInverseWishartPrior"]


@frozen_pytree
@dataclass(frozen=True)
class NormalInverseGammaPrior:
    """variance ~ InverseGamma(shape, scale) and coef | variance ~ N(mean, variance · precision⁻¹).

    Parameters
    ----------
    mean : [] or [k]
        The mean of the coefficients; one number stands for all.
    precision : [] or [k, k]
        The prior precision in units of 1 / variance; a number stands for that multiple of the identity.
    shape : []
        The shape of the law of the variance.
    scale : []
        Its scale.

    Raises
    ------
    ValueError
        If an entry is not finite, the precision not symmetric positive definite, or shape or scale not positive.

    Examples
    --------
    >>> import dpjax
    >>> prior = NormalInverseGammaPrior(0.0, 0.1, 3.0, 2.0)
    """

    mean: ArrayLike
    precision: ArrayLike
    shape: ArrayLike
    scale: ArrayLike

    def __post_init__(self) -> None:
        check_finite("mean", self.mean)
        check_definite("precision", self.precision, "Pass an inverse covariance, in units of 1 / variance.")
        check_positive("shape", self.shape)
        check_positive("scale", self.scale)
        hold_arrays(self)

    @property
    def variance(self) -> InverseGammaPrior:
        """The marginal law of the variance."""
        return InverseGammaPrior(self.shape, self.scale)

    def expand(self, dim: int) -> tuple[Array, Array]:
        """The mean [dim] and the precision [dim, dim] written out."""
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
        """Coefficients [dim] and a variance []."""
        key_variance, key_coef = jax.random.split(key)
        mean, precision = self.expand(dim)
        variance = self.variance.sample(key_variance)
        normal = jax.random.normal(key_coef, (dim, 1), float)
        return mean + jnp.sqrt(variance) * solve_upper(factorize(precision), normal)[:, 0], variance

    def posterior(self, design: Array, response: Array) -> "NormalInverseGammaPrior":
        """The law given a response [n] to a design [k, n].

        The scale is b₀ + ½(‖y - Xμₙ‖² + (μₙ - μ₀)ᵀΛ₀(μₙ - μ₀)), which equals
        b₀ + ½(yᵀy + μ₀ᵀΛ₀μ₀ - μₙᵀΛₙμₙ) and does not cancel.
        """
        prior_mean, prior_precision = self.expand(len(design))
        precision = prior_precision + product(design, design.T)
        factor = factorize(precision)
        linear = product(prior_precision, prior_mean) + product(design, response)
        mean = solve_upper(factor, solve_lower(factor, linear[:, None]))[:, 0]
        shift = mean - prior_mean
        loss = jnp.sum((response - product(mean, design)) ** 2) + product(shift, product(prior_precision, shift))
        shape, scale = as_float(self.shape) + response.size / 2, as_float(self.scale) + loss / 2
        return NormalInverseGammaPrior(mean, precision, shape, scale)


@frozen_pytree
@dataclass(frozen=True)
class NormalInverseWishartPrior:
    """covariance ~ InverseWishart(degrees, scale) and mean | covariance ~ N(mean, covariance / precision).

    Parameters
    ----------
    mean : [p]
        The prior mean.
    precision : []
        How many records the prior mean is worth (κ).
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
    >>> import jax.numpy as jnp
    >>> prior = NormalInverseWishartPrior(jnp.zeros(2), 0.5, 4.0, jnp.eye(2))
    """

    mean: ArrayLike
    precision: ArrayLike
    degrees: ArrayLike
    scale: ArrayLike

    def __post_init__(self) -> None:
        check_finite("mean", self.mean)
        check_positive("precision", self.precision)
        check_definite("scale", self.scale, "Pass the scale matrix of the inverse Wishart law.")
        check_degrees(self.degrees, np.shape(self.scale)[-1] if np.ndim(self.scale) else 1)
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
        """A mean [p] and a covariance [p, p], by the Bartlett decomposition."""
        key_gamma, key_below, key_mean = jax.random.split(key, 3)
        scale, mean = as_float(self.scale), as_float(self.mean)
        triangle = draw_bartlett(key_gamma, key_below, as_float(self.degrees) - jnp.arange(mean.size, dtype=float))
        root = solve_lower(triangle, factorize(scale).T)  # covariance = rootᵀ root
        normal = jax.random.normal(key_mean, mean.shape, float)
        return mean + product(normal, root) / jnp.sqrt(as_float(self.precision)), product(root.T, root)

    def posterior(self, records: Array) -> "NormalInverseWishartPrior":
        """The law given Normal records [p, n]."""
        size, kappa, prior_mean = records.shape[1], as_float(self.precision), as_float(self.mean)
        average = jnp.mean(records, axis=1)
        spread, shift = records - average[:, None], average - prior_mean
        mean = prior_mean + shift * (size / (kappa + size))
        scale = as_float(self.scale) + product(spread, spread.T)
        scale = scale + jnp.outer(shift, shift) * (kappa * size / (kappa + size))
        return NormalInverseWishartPrior(mean, kappa + size, as_float(self.degrees) + size, scale)
