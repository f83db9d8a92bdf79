"""Noise on a whole vector whose density depends on its Euclidean norm."""

from dataclasses import dataclass, field
from math import lgamma, log, pi
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.pytree import frozen_pytree
from dpjax._util.validation import check_positive_number
from dpjax._util.words import amount
from dpjax.base import Array, Key
from dpjax.mechanisms.base import Mechanism, as_floating, noise_and_value
from dpjax.mechanisms.privacy import Privacy, check_privacy
from dpjax.mechanisms.promises import Promise, ProtectedSums, pure

__all__ = ["VectorLaplace"]


@frozen_pytree
@dataclass(frozen=True)
class VectorLaplace(Mechanism):
    """Adds a vector of density proportional to exp(-|b| / scale), with |b| its Euclidean norm.

    Parameters
    ----------
    scale : []
        The scale β: the norm is Gamma(d, β) distributed, with mean d β, and the direction is uniform.
    privacy
        What the release promises; never needed for inference.

    Raises
    ------
    TypeError, ValueError
        If the scale is not one finite and positive number.

    Notes
    -----
    Chaudhuri, Monteleoni and Sarwate (2011), Section 2. Noise on a sum of L2 sensitivity Δ is private with ε = Δ / β.

    Examples
    --------
    >>> import dpjax
    >>> import jax.numpy as jnp
    >>> round(float(dpjax.mechanisms.VectorLaplace(1.0).log_density(jnp.zeros(2), jnp.zeros(2))), 3)
    -1.838
    """

    json_name: ClassVar[str | None] = "vector_laplace"

    scale: Array | float
    privacy: Privacy | None = field(default=None, metadata={"static": True}, kw_only=True)

    def __post_init__(self) -> None:
        check_privacy(self.privacy)
        check_positive_number("scale", self.scale, "Pass the scale β; β = sensitivity / epsilon.")

    def _words(self) -> str:
        """The family and its scale."""
        return f"a vector of density ∝ exp(-|b| / β), of scale β = {amount(self.scale)}"

    def _promise_of(self, sums: ProtectedSums) -> Promise:
        """ε = Δ₂ / β."""
        return pure(sums.sensitivity(2) / float(self.scale))

    def _noise_and_sum(self, value: np.ndarray, n: int, radius: float | None) -> tuple[float, float]:
        """The scale, and the largest value."""
        del n, radius
        return noise_and_value(self.scale, value)

    def log_density(self, value: Array, statistic: Array) -> Array:
        """The log-density [] of the value [d] given the statistic [d]."""
        noise = as_floating(value) - as_floating(statistic)
        d, scale = noise.size, jnp.asarray(self.scale, noise.dtype)
        # The integral is the area of the unit sphere, 2 π^(d/2) / Γ(d/2), times Γ(d) β^d.
        constant = log(2) + d / 2 * log(pi) - lgamma(d / 2) + lgamma(d)
        return -norm_of(noise) / scale - d * jnp.log(scale) - constant

    def sample(self, key: Key, statistic: Array) -> Array:
        """The statistic [d] plus a draw of the noise."""
        norm_key, direction_key = jax.random.split(key)
        exact = as_floating(statistic)
        direction = jax.random.normal(direction_key, exact.shape, exact.dtype)
        norm = jnp.asarray(self.scale, exact.dtype) * jax.random.gamma(norm_key, exact.size, dtype=exact.dtype)
        return exact + norm * direction / norm_of(direction)


def norm_of(vector: Array) -> Array:
    """The Euclidean norm [] of a vector [d], with gradient 0 if it is 0."""
    square = jnp.sum(vector**2)
    return jnp.where(square > 0, jnp.sqrt(jnp.where(square > 0, square, 1.0)), 0.0)
