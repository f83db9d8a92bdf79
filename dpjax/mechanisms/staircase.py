"""Noise whose density is constant in steps: the staircase mechanism and the truncated-uniform-Laplace distribution."""

from dataclasses import dataclass, field
from math import log
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.pytree import frozen_pytree
from dpjax._util.validation import check_array, fail
from dpjax._util.words import amount
from dpjax.base import Array, Key
from dpjax.mechanisms.added_noise import AddedNoise
from dpjax.mechanisms.additive import Additive, checked_scale
from dpjax.mechanisms.base import as_leaf
from dpjax.mechanisms.discrete import DiscreteLaplace, geometric_difference
from dpjax.mechanisms.privacy import Privacy, check_privacy
from dpjax.mechanisms.promises import Promise, ProtectedSums, Unpromised, pure, smallest

__all__ = ["Staircase", "Tulap"]

COUNTS_ALONE = "It is known of the counts of a histogram only, which move by 1."


@frozen_pytree
@dataclass(frozen=True)
class Staircase(Additive):
    """Adds noise whose density falls by exp(-ε) from each interval of length Δ to the next, in a step within it.

    The density is constant on the first part, of `share` Δ, and on the rest of each interval [k Δ, (k + 1) Δ] on either
    side of 0. From part to part it falls by exp(-ε).

    Parameters
    ----------
    epsilon : [] or [d]
        The ε that was promised of a sum that moves by at most Δ.
    sensitivity : [] or [d]
        That Δ, in the units of the released value.
    share : [] or [d]
        The place of the step, from 0 to 1; None for 1 / (1 + exp(ε / 2)), of which the mean absolute noise is least.
    privacy
        What the release promises; never needed for inference.

    Raises
    ------
    ValueError
        If ε or the sensitivity is not finite and positive, or the share is not from 0 to 1.

    Notes
    -----
    Geng and Viswanath (2014), the optimal mechanism in differential privacy; a(γ) is their equation 15.

    Examples
    --------
    >>> import dpjax
    >>> import jax.numpy as jnp
    >>> noise = dpjax.mechanisms.Staircase(epsilon=2.0, sensitivity=1.0, share=0.5)
    >>> (noise.log_noise(jnp.array([0.2, 0.7, 1.2])) - noise.log_noise(jnp.array(0.2))).tolist()
    [0.0, -2.0, -2.0]
    """

    json_name: ClassVar[str | None] = "staircase"

    epsilon: Array | float
    sensitivity: Array | float = 1.0
    share: Array | float | None = None
    privacy: Privacy | None = field(default=None, metadata={"static": True}, kw_only=True)

    def __post_init__(self) -> None:
        check_privacy(self.privacy)
        remedies = {"epsilon": "Pass the ε that was promised.", "sensitivity": "Pass how far one record moves a sum."}
        for name, remedy in remedies.items():
            object.__setattr__(self, name, checked_scale(getattr(self, name), remedy, name))
        if self.share is None:
            object.__setattr__(self, "share", 1 / (1 + jnp.exp(jnp.asarray(self.epsilon, float) / 2)))
        remedy = "Leave it out for the share of which the noise is least."
        check_array("share", self.share, lambda share: (share >= 0) & (share <= 1), "numbers from 0 to 1", remedy)
        if np.shape(self.share) == (0,):  # type: ignore[arg-type]
            fail("share", "no number", "one, or one for each coordinate", remedy)
        object.__setattr__(self, "share", as_leaf(self.share))

    @property
    def scale(self) -> Array:
        """Δ / ε, the scale of the Laplace noise of the same promise."""
        return jnp.asarray(self.sensitivity) / jnp.asarray(self.epsilon)

    def _words(self) -> str:
        """The promise that the steps were made for."""
        return f"staircase of ε = {amount(self.epsilon)} for sums that move by at most {amount(self.sensitivity)}"

    def _promise_of(self, sums: ProtectedSums) -> Promise:
        """ε for each step that a count moves over."""
        if sums.num_bins is None:
            raise Unpromised(COUNTS_ALONE)
        steps = np.ceil(1 / np.asarray(self.sensitivity)) * np.asarray(self.epsilon)
        return pure(sums.sensitivity(1) * float(np.max(steps)))

    @property
    def noise(self) -> AddedNoise:
        """Of the variance that follows from the steps."""
        return super().noise._replace(variance=self._variance, is_unimodal=True)

    def _variance(self) -> Array:
        """2 Δ³ a Σ_k e^(-kε) (∫ x² on the first part of interval k + e^(-ε) ∫ x² on the rest)."""
        share, fall = jnp.asarray(self.share), jnp.exp(-jnp.asarray(self.epsilon))
        lost = -jnp.expm1(-jnp.asarray(self.epsilon))  # 1 - fall would lose the digits of a small ε
        first = (share, share**2, share**3 / 3)
        rest = (1 - share, 1 - share**2, (1 - share**3) / 3)
        moments = (fall * (1 + fall) / lost**3, fall / lost**2, 1 / lost)
        total = sum(moment * (one + fall * other) for moment, one, other in zip(moments, first, rest, strict=True))
        return jnp.square(jnp.asarray(self.sensitivity)) * 2 * jnp.exp(self._log_height()) * total

    def log_noise(self, noise: Array) -> Array:
        """The log-density of each coordinate's noise [..., d]."""
        _, steps, _ = self._place(noise)
        return self._log_height() - jnp.log(jnp.asarray(self.sensitivity)) - steps * self.epsilon

    def log_cdf(self, noise: Array) -> Array:
        """The log-probability [..., d] that a coordinate's noise is at most the given one."""
        inside, steps, is_past = self._place(noise)
        share, epsilon = jnp.asarray(self.share), jnp.asarray(self.epsilon)
        # What is left of the interval and what is beyond it, in units of the part of the step at this place.
        left = jnp.where(is_past, 1 - inside, share - inside + jnp.exp(-epsilon) * (1 - share))
        beyond = jnp.where(is_past, 0.0, -epsilon) - log(2)
        tail = jnp.logaddexp(beyond, self._log_height() + jnp.log(left)) - steps * epsilon
        return jnp.where(noise < 0, tail, jnp.log1p(-jnp.exp(tail)))

    def _place(self, noise: Array) -> tuple[Array, Array, Array]:
        """The place within an interval, by how many steps the density has fallen, and whether it is past the step."""
        place = jnp.abs(noise) / self.sensitivity
        whole = jnp.floor(place)
        inside = place - whole
        is_past = inside >= jnp.asarray(self.share)
        return inside, whole + is_past.astype(whole.dtype), is_past

    def sample_noise(self, key: Key, shape: tuple[int, ...], dtype: Any) -> Array:
        """Draws of the noise, of the given shape and floating dtype."""
        key_side, key_step, key_part, key_place = jax.random.split(key, 4)
        share, fall = jnp.asarray(self.share, dtype), jnp.exp(-jnp.asarray(self.epsilon, dtype))
        steps = jnp.floor(jax.random.exponential(key_step, shape, dtype) / self.epsilon)
        first = jax.random.uniform(key_part, shape, dtype) * (share + fall * (1 - share)) < share
        place = jax.random.uniform(key_place, shape, dtype)
        inside = jnp.where(first, share * place, share + (1 - share) * place)
        return self.sensitivity * jax.random.rademacher(key_side, shape, dtype) * (steps + inside)

    def _log_height(self) -> Array:
        """The logarithm of the density at 0 in units of Δ."""
        share, epsilon = jnp.asarray(self.share), jnp.asarray(self.epsilon)
        log_parts = jnp.logaddexp(jnp.log(share), jnp.log1p(-share) - epsilon)
        return jnp.log(-jnp.expm1(-epsilon)) - log_parts - log(2)


@frozen_pytree
@dataclass(frozen=True)
class Tulap(Additive):
    """Adds discrete Laplace noise and a uniform number from -1/2 to 1/2: the Tulap distribution.

    The density at u is the probability of discrete Laplace noise at the whole number nearest to u.

    Parameters
    ----------
    scale : [] or [d]
        The scale 1 / ε of the discrete Laplace part, whose geometric ratio is exp(-1 / scale).
    privacy
        What the release promises; never needed for inference.

    Raises
    ------
    ValueError
        If a scale is not finite and positive.

    Notes
    -----
    Awan and Slavković (2018, Differentially private uniformly most powerful tests for binomial data), with b = exp(-1 /
    scale) and q = 0, that is without their truncation for δ > 0. What is released of counts is no whole number.

    Examples
    --------
    >>> import dpjax
    >>> release = dpjax.Release([11.3, 8.9], dpjax.mechanisms.Tulap(1.0), dpjax.statistics.cells("cell", 2), n=20)
    >>> round(float(dpjax.mechanisms.Tulap(1.0).noise.variance()), 3)
    1.925
    """

    json_name: ClassVar[str | None] = "tulap"

    scale: Array | float
    privacy: Privacy | None = field(default=None, metadata={"static": True}, kw_only=True)

    def __post_init__(self) -> None:
        check_privacy(self.privacy)
        remedy = "Pass 1 / ε; for a geometric ratio b, -1 / log(b)."
        object.__setattr__(self, "scale", checked_scale(self.scale, remedy))

    def _words(self) -> str:
        """The family and its scale."""
        return f"Tulap of scale {amount(self.scale)}"

    def _promise_of(self, sums: ProtectedSums) -> Promise:
        """ε = Δ₁ / scale of counts."""
        if sums.num_bins is None:
            raise Unpromised(COUNTS_ALONE)
        return pure(sums.sensitivity(1) / smallest(self.scale))

    @property
    def noise(self) -> AddedNoise:
        """Of the variance of its discrete Laplace part, and 1 / 12."""
        return super().noise._replace(
            variance=lambda: jnp.asarray(DiscreteLaplace(self.scale).noise.variance()) + 1 / 12, is_unimodal=True
        )

    def log_noise(self, noise: Array) -> Array:
        """The log-density of each coordinate's noise [..., d]."""
        rate = -1 / jnp.asarray(self.scale)
        return jnp.round(jnp.abs(noise)) * rate + jnp.log(-jnp.expm1(rate)) - jnp.log1p(jnp.exp(rate))

    def log_cdf(self, noise: Array) -> Array:
        """The log-probability [..., d] that a coordinate's noise is at most the given one."""
        distance, rate = jnp.abs(noise), -1 / jnp.asarray(self.scale)
        nearest = jnp.round(distance)
        left = jnp.exp(rate) - jnp.expm1(rate) * (nearest + 0.5 - distance)
        tail = nearest * rate + jnp.log(left) - jnp.log1p(jnp.exp(rate))
        return jnp.where(noise < 0, tail, jnp.log1p(-jnp.exp(tail)))

    def sample_noise(self, key: Key, shape: tuple[int, ...], dtype: Any) -> Array:
        """Draws of the noise, of the given shape and floating dtype."""
        key_whole, key_rest = jax.random.split(key)
        whole = geometric_difference(key_whole, self.scale, shape, dtype)
        return whole + jax.random.uniform(key_rest, shape, dtype, -0.5, 0.5)
