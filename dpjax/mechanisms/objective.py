"""Objective perturbation: the published coefficients minimise an empirical risk with a random linear term."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np

from dpjax._util.pytree import frozen_pytree
from dpjax._util.validation import check_array, fail, name_of
from dpjax._util.words import amount, quantity
from dpjax.base import Array
from dpjax.mechanisms.additive import Gaussian
from dpjax.mechanisms.base import Mechanism, as_floating
from dpjax.mechanisms.multivariate import KNormLinf
from dpjax.mechanisms.privacy import Privacy, check_privacy
from dpjax.mechanisms.promises import Promise, ProtectedSums, Unpromised
from dpjax.mechanisms.vector_laplace import VectorLaplace
from dpjax.numerics.triangles import full_matrix, log_determinant, triangle_size

__all__ = ["ObjectivePerturbation", "check_linear_term"]


@frozen_pytree
@dataclass(frozen=True)
class ObjectivePerturbation(Mechanism):
    """Releases the θ that minimises Σ ℓ(θ; x) + θᵀ Λ θ / 2 + bᵀ θ, with Λ diagonal and b a draw of noise.

    The statistic is the sum over records of the gradient [d] of the loss at the published θ. It also has the upper
    triangle of the loss's Hessian [d (d + 1) / 2], row by row.

    Parameters
    ----------
    linear_term
        The distribution of b: a `dpjax.mechanisms.VectorLaplace`, a `dpjax.mechanisms.KNormLinf` or a `dpjax.Gaussian`.
    regularization : [d]
        The diagonal of Λ, at least 0.
    privacy
        What the release promises; never needed for inference.

    Raises
    ------
    TypeError, ValueError
        If the noise is of another kind, or the regularization is no vector of finite numbers of at least 0.

    Notes
    -----
    At the minimum b = −(Σ ∇ℓ + Λ θ), which depends on θ with derivative −(Σ ∇²ℓ + Λ). So the density of θ is that of b
    times det(Σ ∇²ℓ + Λ) (Chaudhuri, Monteleoni and Sarwate 2011; Kifer, Smith and Thakurta 2012; Awan and
    Slavković 2021 for the maximum norm). It is 0 if that matrix is not positive definite.

    Examples
    --------
    >>> from dpjax.mechanisms.objective import ObjectivePerturbation
    >>> import jax.numpy as jnp
    >>> import dpjax
    >>> mechanism = ObjectivePerturbation(dpjax.Gaussian(1.0), regularization=[0.5])
    >>> round(float(mechanism.log_density(jnp.array([2.0]), jnp.array([-1.0, 0.5]))), 3)
    -0.919
    """

    json_name: ClassVar[str | None] = "objective_perturbation"

    linear_term: Any
    regularization: Array
    privacy: Privacy | None = field(default=None, metadata={"static": True}, kw_only=True)

    def __post_init__(self) -> None:
        check_privacy(self.privacy)
        check_linear_term("linear_term", self.linear_term)
        remedy = "Pass the factor of θ² / 2 of each coefficient; 0 for one without penalty."
        check_array(
            "regularization", self.regularization, is_penalty, "finite numbers of at least 0, shape [d]", remedy
        )
        vector = jnp.asarray(self.regularization, jnp.result_type(float))
        object.__setattr__(self, "regularization", vector)

    @property
    def value_size(self) -> int:
        """The number d of coefficients."""
        return int(self.regularization.shape[-1])

    def _check_drawn(self, argument: str, value: Array, dimension: int) -> None:
        """Raise unless the statistic is a gradient and a triangle."""
        del argument, value
        d = self.value_size
        if dimension != d + triangle_size(d):
            expected = f"{d + triangle_size(d)}: gradient and upper triangle of the Hessian for {d} coefficients"
            fail("statistic", f"{dimension} coordinates", expected, "Use dpjax.releases.objective_perturbation.")

    def _words(self) -> str:
        """The noise and the penalty."""
        penalty = f"penalties of {amount(self.regularization)}"
        fitted = f"{quantity(self.value_size, 'coefficient')} fitted with {penalty} and a random linear term"
        return f"none on the sums; {fitted}: {self.linear_term.promise.words()}"

    def _promise_of(self, sums: ProtectedSums) -> Promise:
        """Nothing that follows from the release alone.

        Raises
        ------
        Unpromised
            Always.
        """
        del sums
        raise Unpromised("It depends on bounds of the loss, of its gradient and of its curvature for any record")

    def log_density(self, value: Array, statistic: Array) -> Array:
        """The log-density [] of the coefficients [d] given the sums of gradients and Hessians."""
        coefficients, sums = as_floating(value), as_floating(statistic)
        d = coefficients.size
        penalty = self.regularization.astype(sums.dtype)
        linear_term = -(sums[:d] + penalty * coefficients)
        curvature = full_matrix(sums[d:], d) + jnp.diag(penalty)
        return self.linear_term.log_density(linear_term, jnp.zeros_like(linear_term)) + log_determinant(curvature)


def check_linear_term(argument: str, noise: Any) -> None:
    """Raise unless noise can be the linear term."""
    if not isinstance(noise, (VectorLaplace, KNormLinf, Gaussian)):
        expected, remedy = (
            "a VectorLaplace or a Gaussian, or a KNormLinf",
            "Pass the distribution of the linear term b.",
        )
        fail(argument, name_of(noise), expected, remedy, error=TypeError)


def is_penalty(array: np.ndarray) -> np.ndarray | bool:
    """Whether numbers can be penalties of coefficients."""
    return array >= 0 if array.ndim == 1 and array.size else False
