"""Mechanisms that add independent integer noise to each coordinate of an integer statistic.

Values are floats that hold integers, and negative ones are as legal as positive ones.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from dpjax._util.pytree import frozen_pytree
from dpjax._util.words import amount
from dpjax.base import Array, Key
from dpjax.mechanisms.added_noise import AddedNoise
from dpjax.mechanisms.additive import Additive, Gaussian, Laplace, checked_scale
from dpjax.mechanisms.calibrated import FromEpsilon, FromZCDP
from dpjax.mechanisms.privacy import Privacy, check_privacy
from dpjax.mechanisms.promises import Promise, ProtectedSums, concentrated, pure, smallest
from dpjax.numerics.theta import integer_variance, log_theta, log_upper_theta


@frozen_pytree
@dataclass(frozen=True)
class DiscreteLaplace(FromEpsilon, Additive):
    """Adds integer noise of probability proportional to exp(-|k| / scale), the two-sided geometric distribution.

    Parameters
    ----------
    scale : [] or [d]
        The scale b; the geometric ratio is exp(-1 / b).
    privacy
        What the release promises; never needed for inference.

    Raises
    ------
    ValueError
        If a scale is not finite and positive.

    Examples
    --------
    >>> import dpjax, jax
    >>> float(dpjax.DiscreteLaplace(scale=2.0).log_density(jax.numpy.array([3]), jax.numpy.array([3])))
    -1.41
    """

    json_name: ClassVar[str | None] = "discrete_laplace"
    integer_noise: ClassVar[bool] = True

    scale: Array | float
    privacy: Privacy | None = field(default=None, metadata={"static": True}, kw_only=True)

    def __post_init__(self) -> None:
        check_privacy(self.privacy)
        remedy = "Pass b = sensitivity / epsilon; for a geometric ratio alpha, b = -1 / log(alpha)."
        object.__setattr__(self, "scale", checked_scale(self.scale, remedy))

    def _words(self) -> str:
        """The family and its scale."""
        return f"discrete Laplace of scale {amount(self.scale)}"

    def _promise_of(self, sums: ProtectedSums) -> Promise:
        """ε = Δ₁ / b, on sums that are whole."""
        return pure(sums.sensitivity(1) / smallest(self.scale))

    @property
    def noise(self) -> AddedNoise:
        """Noise of variance 1 / (2 sinh²(1 / 2b)); it is an exponential on either side of 0."""
        return super().noise._replace(
            variance=lambda: 0.5 / jnp.square(jnp.sinh(0.5 / jnp.asarray(self.scale))),
            is_unimodal=True,
            bends=(),
            smoothed=lambda: Laplace(0.5 / jnp.sinh(0.5 / jnp.asarray(self.scale))),
        )

    def log_noise(self, noise: Array) -> Array:
        """The log-probability of each coordinate's noise [..., d]; ``-inf`` if it is not an integer."""
        rate = -1 / jnp.asarray(self.scale)
        log_constant = jnp.log(-jnp.expm1(rate)) - jnp.log1p(jnp.exp(rate))
        return _on_integers(noise, log_constant - jnp.abs(noise) / self.scale)

    def log_cdf(self, noise: Array) -> Array:
        """The log-probability [..., d] that a coordinate's noise is at most the given one."""
        return _log_cdf_from_tail(noise, self._log_upper_tail)

    def sample_noise(self, key: Key, shape: tuple[int, ...], dtype: Any) -> Array:
        """Draws of the noise, of the given shape and floating dtype."""
        return geometric_difference(key, self.scale, shape, dtype)

    def _log_upper_tail(self, least: Array) -> Array:
        return -least / self.scale - jnp.log1p(jnp.exp(-1 / jnp.asarray(self.scale)))


@frozen_pytree
@dataclass(frozen=True)
class DiscreteGaussian(FromZCDP, Additive):
    """Adds integer noise of probability proportional to exp(-k² / (2 scale²)).

    Parameters
    ----------
    scale : [] or [d]
        The parameter σ (not σ²); the standard deviation equals it to 1e-6 if σ >= 1.
    privacy
        What the release promises; never needed for inference.

    Raises
    ------
    ValueError
        If a scale is not finite and positive.

    Notes
    -----
    The sampler accepts discrete Laplace draws, as in Canonne, Kamath and Steinke (2020, Algorithm 3).

    Examples
    --------
    >>> import dpjax, jax
    >>> dpjax.DiscreteGaussian(scale=2.0).sample(jax.random.key(1), jax.numpy.array([12, 8])).shape
    (2,)
    """

    json_name: ClassVar[str | None] = "discrete_gaussian"
    integer_noise: ClassVar[bool] = True

    scale: Array | float
    privacy: Privacy | None = field(default=None, metadata={"static": True}, kw_only=True)

    def __post_init__(self) -> None:
        check_privacy(self.privacy)
        remedy = "Pass the parameter sigma, not its square; dpjax.mechanisms.zcdp_scale computes one."
        object.__setattr__(self, "scale", checked_scale(self.scale, remedy))

    def _words(self) -> str:
        """The family and its scale."""
        return f"discrete Gaussian of scale {amount(self.scale)}"

    def _promise_of(self, sums: ProtectedSums) -> Promise:
        """ρ = Δ₂² / 2σ²."""
        return concentrated(smallest(self.scale), sums.sensitivity(2))

    @property
    def noise(self) -> AddedNoise:
        """Of variance σ² for all but small σ."""
        return super().noise._replace(
            variance=lambda: integer_variance(self.scale),
            is_unimodal=True,
            bends=(self.scale,),
            smoothed=lambda: Gaussian(jnp.sqrt(integer_variance(self.scale))),
        )

    def log_noise(self, noise: Array) -> Array:
        """The log-probability of each coordinate's noise [..., d]; ``-inf`` if it is not an integer."""
        return _on_integers(noise, -jnp.square(noise / self.scale) / 2 - log_theta(self.scale))

    def log_cdf(self, noise: Array) -> Array:
        """The log-probability [..., d] that a coordinate's noise is at most the given one."""
        return _log_cdf_from_tail(noise, self._log_upper_tail)

    def sample_noise(self, key: Key, shape: tuple[int, ...], dtype: Any) -> Array:
        """Draws of the noise, of the given shape and floating dtype; more than half of all proposals are accepted."""

        def redraw(carry: tuple[Key, Array, Array]) -> tuple[Key, Array, Array]:
            next_key, noise, pending = carry
            next_key, key_proposal, key_accept = jax.random.split(next_key, 3)
            proposal = geometric_difference(key_proposal, self.scale, shape, dtype)
            cost = jnp.square(jnp.abs(proposal) / self.scale - 1) / 2
            rejected = jax.random.exponential(key_accept, shape, dtype) < cost
            return next_key, jnp.where(pending, proposal, noise), pending & rejected

        start = (key, jnp.zeros(shape, dtype), jnp.ones(shape, bool))
        return jax.lax.while_loop(lambda carry: jnp.any(carry[2]), redraw, start)[1]

    def _log_upper_tail(self, least: Array) -> Array:
        return log_upper_theta(least, self.scale) - log_theta(self.scale)


def _on_integers(noise: Array, log_probability: Array) -> Array:
    """The log-probability if the noise is an integer, zero probability elsewhere."""
    return jnp.where(noise == jnp.floor(noise), log_probability, -jnp.inf)


def _log_cdf_from_tail(noise: Array, log_upper_tail: Any) -> Array:
    """log P(N <= noise) of symmetric integer noise from m -> log P(N >= m), m >= 1, never larger than 1/2."""
    whole = jnp.floor(noise)
    tail = log_upper_tail(jnp.where(whole < 0, -whole, whole + 1))
    return jnp.where(whole < 0, tail, jnp.log1p(-jnp.exp(tail)))


def geometric_difference(key: Key, scale: Array | float, shape: tuple[int, ...], dtype: Any) -> Array:
    """The difference of two geometric draws of ratio exp(-1 / scale), each the whole part of an exponential."""
    up, down = jax.random.exponential(key, (2, *shape), dtype)
    return jnp.floor(scale * up) - jnp.floor(scale * down)
