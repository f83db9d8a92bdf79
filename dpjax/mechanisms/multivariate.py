"""Noise on all coordinates of a statistic together: correlated Gaussian noise, and noise in the maximum norm."""

from dataclasses import dataclass, field
from math import log, pi
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular
from jax.scipy.special import gammaln

from dpjax._util.pytree import frozen_pytree
from dpjax._util.validation import check_array, check_number, fail, is_traced
from dpjax._util.words import amount
from dpjax.base import Array, Key
from dpjax.mechanisms.additive import checked_scale
from dpjax.mechanisms.base import Mechanism, as_floating, noise_and_value
from dpjax.mechanisms.privacy import Privacy, check_privacy
from dpjax.mechanisms.promises import Promise, ProtectedSums, concentrated, pure
from dpjax.numerics.linear_algebra import product

__all__ = ["KNormLinf", "MultivariateGaussian"]

ASYMMETRY = 1e-6
"""The largest difference of mirrored entries, against the largest entry: covariances are products of matrices."""


@frozen_pytree
@dataclass(frozen=True)
class MultivariateGaussian(Mechanism):
    """Adds Gaussian noise N(0, covariance) to a statistic.

    Parameters
    ----------
    covariance : [d, d]
        The covariance matrix, symmetric and positive definite.
    privacy
        What the release promises; never needed for inference.

    Raises
    ------
    ValueError
        If the matrix is not square, symmetric and positive definite.

    Notes
    -----
    The noise that is left after linear post-processing of sums with Gaussian noise, which `dpjax.releases.linear`
    finds. In counts the sums are combined so that their noise is independent. With covariance L D Lᵀ of a unit
    triangular L, L⁻¹ value is L⁻¹ sums and noise N(0, D), of the same density.

    Examples
    --------
    >>> import dpjax
    >>> import jax.numpy as jnp
    >>> noise = dpjax.mechanisms.MultivariateGaussian([[2.0, 1.0], [1.0, 2.0]])
    >>> round(float(noise.log_density(jnp.array([1.0, 1.0]), jnp.array([0.0, 0.0]))), 3)
    -2.721
    """

    json_name: ClassVar[str | None] = "multivariate_gaussian"

    covariance: Array
    privacy: Privacy | None = field(default=None, metadata={"static": True}, kw_only=True)
    root: Array = field(init=False, repr=False)

    def __post_init__(self) -> None:
        check_privacy(self.privacy)
        remedy = "Pass the covariance of the noise, such as B Σ Bᵀ where B (sums + noise) was published."
        largest = float(jnp.finfo(jnp.result_type(float)).max)
        expected = f"numbers up to {largest:.2g} in size, which floats can hold"
        check_array("covariance", self.covariance, lambda array: np.abs(array) <= largest, expected, remedy)
        covariance = as_floating(self.covariance)
        if covariance.ndim != 2 or len(set(covariance.shape)) > 1 or not covariance.size:
            fail("covariance", f"shape {list(covariance.shape)}", "shape [d, d]", remedy)
        _check_definite(covariance, remedy)
        object.__setattr__(self, "covariance", covariance)
        object.__setattr__(self, "root", jnp.linalg.cholesky(covariance))

    def _json_fields(self) -> dict[str, Any]:
        """The covariance, and the promise; the root follows."""
        return {"covariance": self.covariance, "privacy": self.privacy}

    def _words(self) -> str:
        """The standard deviations."""
        deviations = amount(np.sqrt(np.diag(np.asarray(self.covariance))))
        return f"Gaussian of standard deviation {deviations}, correlated between the numbers"

    def _promise_of(self, sums: ProtectedSums) -> Promise:
        """ρ = Δ₂² / 2λ, where λ is the variance of the noise in the direction in which it is least."""
        return concentrated(self._least_deviation(), sums.sensitivity(2))

    def _noise_and_sum(self, value: np.ndarray, n: int, radius: float | None) -> tuple[float, float]:
        """The standard deviation in the direction in which it is least, and the largest value."""
        del n, radius
        return noise_and_value(self._least_deviation(), value)

    def log_density(self, value: Array, statistic: Array) -> Array:
        """The log-density [] of the value [d] given the statistic [d]."""
        noise = as_floating(value) - as_floating(statistic)
        white = solve_triangular(self.root, noise, lower=True)
        return -jnp.sum(jnp.square(white)) / 2 - self._log_volume()

    def sample(self, key: Key, statistic: Array) -> Array:
        """The statistic [d] plus a draw of the noise."""
        exact = as_floating(statistic)
        return exact + product(self.root, jax.random.normal(key, exact.shape, exact.dtype))

    def _normal_covariance(self, size: int) -> np.ndarray:
        """The covariance [d, d]."""
        del size
        return np.asarray(self.covariance, float)

    def _least_deviation(self) -> float:
        """The standard deviation of the noise in the direction in which it is least."""
        return float(np.linalg.eigvalsh(np.asarray(self.covariance, float))[0]) ** 0.5

    def _log_volume(self) -> Array:
        """log √det(2π covariance)."""
        return jnp.sum(jnp.log(jnp.diagonal(self.root))) + len(self.root) * log(2 * pi) / 2


def _check_definite(covariance: Array, remedy: str) -> None:
    """Raise unless a concrete matrix is symmetric and positive definite."""
    if is_traced(covariance):
        return
    matrix = np.asarray(covariance, float)
    if np.max(np.abs(matrix - matrix.T)) > ASYMMETRY * np.max(np.abs(matrix)):
        fail("covariance", "a matrix that is not symmetric", "a covariance matrix", remedy)
    least, greatest = np.linalg.eigvalsh(matrix)[[0, -1]]
    if least <= len(matrix) * np.finfo(covariance.dtype).eps * abs(greatest):
        given = f"a matrix whose eigenvalues are {least:.3g} to {greatest:.3g}"
        fail("covariance", given, "a positive definite matrix", "Leave out numbers that follow from the others.")


@frozen_pytree
@dataclass(frozen=True)
class KNormLinf(Mechanism):
    """Adds noise of density proportional to exp(-max |u| / scale): the K-norm mechanism of the maximum norm.

    Parameters
    ----------
    scale : []
        The scale b of the noise: the largest change of any sum, over ε.
    privacy
        What the release promises; never needed for inference.

    Raises
    ------
    ValueError
        If the scale is not one finite, positive number.

    Notes
    -----
    Hardt and Talwar (2010, On the geometry of differential privacy): of d numbers the constant is d! (2 b)^d. The noise
    of the coordinates is not independent.

    Examples
    --------
    >>> import dpjax
    >>> import jax.numpy as jnp
    >>> noise = dpjax.mechanisms.KNormLinf(2.0)
    >>> round(float(noise.log_density(jnp.array([1.0, 4.0]), jnp.array([0.0, 0.0]))), 3)
    -5.466
    """

    json_name: ClassVar[str | None] = "k_norm_linf"

    scale: Array | float
    privacy: Privacy | None = field(default=None, metadata={"static": True}, kw_only=True)

    def __post_init__(self) -> None:
        check_privacy(self.privacy)
        check_number("scale", self.scale)
        checked_scale(self.scale, "Pass b = the largest change of any sum / epsilon.")

    def _words(self) -> str:
        """The norm and the scale."""
        return f"K-norm noise of the maximum norm, of scale {amount(self.scale)}"

    def _promise_of(self, sums: ProtectedSums) -> Promise:
        """ε = Δ∞ / b: one record moves counts by at most 1, and other sums by at most Δ₂."""
        return pure((1.0 if sums.num_bins is not None else sums.sensitivity(2)) / float(self.scale))

    def _noise_and_sum(self, value: np.ndarray, n: int, radius: float | None) -> tuple[float, float]:
        """The scale, and the largest value."""
        del n, radius
        return noise_and_value(self.scale, value)

    def log_density(self, value: Array, statistic: Array) -> Array:
        """The log-density [] of the value [d] given the statistic [d]."""
        noise = as_floating(value) - as_floating(statistic)
        size = noise.shape[-1]
        log_volume = gammaln(size + 1.0) + size * jnp.log(2 * jnp.asarray(self.scale))
        return -jnp.max(jnp.abs(noise)) / self.scale - log_volume

    def sample(self, key: Key, statistic: Array) -> Array:
        """The statistic [d] plus a draw of the noise."""
        exact = as_floating(statistic)
        key_radius, key_place = jax.random.split(key)
        radius = self.scale * jax.random.gamma(key_radius, exact.shape[-1] + 1.0, (), exact.dtype)
        return exact + radius * jax.random.uniform(key_place, exact.shape, exact.dtype, -1.0, 1.0)
