"""Mechanisms that add independent noise to each coordinate of a statistic: their base class, and continuous noise."""

from abc import abstractmethod
from dataclasses import dataclass, field
from math import log, pi
from typing import Any, ClassVar, NoReturn

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import log_ndtr

from dpjax._util.pytree import frozen_pytree
from dpjax._util.validation import check_float, check_positive, fail
from dpjax._util.words import amount
from dpjax.base import Array, Key
from dpjax.mechanisms.added_noise import AddedNoise, Tails
from dpjax.mechanisms.base import Mechanism, as_floating, as_leaf
from dpjax.mechanisms.calibrated import FromEpsilon, FromZCDP
from dpjax.mechanisms.possible_sums import PossibleSums
from dpjax.mechanisms.privacy import Privacy, check_privacy
from dpjax.mechanisms.promises import NO_NOISE, Promise, ProtectedSums, Unpromised, concentrated, pure, smallest
from dpjax.numerics.laplace_sums import LaplaceNormal
from dpjax.numerics.tails import log_mills, normal_excess

__all__ = ["Additive", "Exact"]


class Additive(Mechanism):
    """Adds independent noise, symmetric about zero, to each coordinate of a statistic.

    A subclass is a frozen pytree dataclass with the three elementwise methods `log_noise`, `log_cdf` and
    `sample_noise`; everything else follows from them. Each parameter is a scalar or has one entry a coordinate.
    Integer noise says so by ``integer_noise: ClassVar[bool] = True``. Hidden counts behind real noise are summed over
    only if its density never rises away from 0, and `noise` says so by ``is_unimodal``.

    Examples
    --------
    >>> from dpjax.mechanisms.additive import Additive
    >>> import dpjax
    >>> import jax.numpy as jnp
    >>> isinstance(dpjax.Laplace(2.0), Additive)
    True
    >>> round(float(dpjax.Laplace(2.0).log_survival(jnp.array(0.0))), 3)
    -0.693
    """

    integer_noise: ClassVar[bool] = False
    parameter_axes: ClassVar[dict[str, int] | None] = {}

    @abstractmethod
    def log_noise(self, noise: Array) -> Array:
        """The log-density of each coordinate's noise [..., d]."""

    @abstractmethod
    def log_cdf(self, noise: Array) -> Array:
        """The log-probability [..., d] that a coordinate's noise is at most the given one."""

    @abstractmethod
    def sample_noise(self, key: Key, shape: tuple[int, ...], dtype: Any) -> Array:
        """Draws of the noise, of the given shape and floating dtype."""

    def log_survival(self, noise: Array) -> Array:
        """The log-probability [..., d] that a coordinate's noise is at least the given one."""
        return self.log_cdf(-noise)

    @property
    def noise(self) -> AddedNoise:
        """The noise; a subclass replaces what more is known of it."""
        return AddedNoise(self.log_noise, self.sample_noise, scale=lambda: getattr(self, "scale", None))

    @property
    def tails(self) -> Tails:
        """The tails of the noise."""
        return Tails(self.log_cdf, self.log_survival)

    def log_density_terms(self, value: Array, statistic: Array) -> Array:
        """The log-density of each coordinate of the value [..., d] given that of the statistic [..., d]."""
        return self.log_noise(as_floating(value) - as_floating(statistic))

    def log_density(self, value: Array, statistic: Array) -> Array:
        """The log-density [] of the value [d] given the statistic [d]."""
        return jnp.sum(self.log_density_terms(value, statistic))

    def sample(self, key: Key, statistic: Array) -> Array:
        """The statistic [d] plus a draw of the noise."""
        exact = as_floating(statistic)
        return exact + self.sample_noise(key, exact.shape, exact.dtype)


def checked_scale(scale: Any, remedy: str, argument: str = "scale") -> Any:
    """The scale, sequences made floating arrays, or an error unless every entry is finite and positive."""
    check_positive(argument, scale, remedy)
    if np.size(scale) == 0:
        fail(argument, "no number", "one, or one for each coordinate", remedy)
    check_float(argument, scale)
    return as_leaf(scale)


@frozen_pytree
@dataclass(frozen=True)
class Laplace(FromEpsilon, Additive):
    """Adds Laplace noise of density exp(-|u| / scale) / (2 scale) to each coordinate.

    Parameters
    ----------
    scale : [] or [d]
        The scale b of the noise, in the units of the released value; its variance is 2 b².
    privacy
        What the release promises; never needed for inference.

    Raises
    ------
    ValueError
        If a scale is not finite and positive.

    Examples
    --------
    >>> import dpjax
    >>> import jax.numpy as jnp
    >>> round(float(dpjax.Laplace(scale=2.0).log_density(jnp.array([1.0]), jnp.array([1.0]))), 3)
    -1.386
    """

    json_name: ClassVar[str | None] = "laplace"

    scale: Array | float
    privacy: Privacy | None = field(default=None, metadata={"static": True}, kw_only=True)

    def __post_init__(self) -> None:
        check_privacy(self.privacy)
        remedy = "Pass the Laplace scale b; b = sensitivity / epsilon."
        object.__setattr__(self, "scale", checked_scale(self.scale, remedy))

    def _words(self) -> str:
        """The family and its scale."""
        return f"Laplace of scale {amount(self.scale)}"

    def _promise_of(self, sums: ProtectedSums) -> Promise:
        """ε = Δ₁ / b."""
        return pure(sums.sensitivity(1) / smallest(self.scale))

    @property
    def noise(self) -> AddedNoise:
        """Noise of variance 2 b²; it is an exponential on either side of 0."""
        return super().noise._replace(
            variance=lambda: 2 * jnp.square(jnp.asarray(self.scale)),
            is_scale_mixture=True,
            is_unimodal=True,
            bends=(),
            log_marginal_normal=self._log_marginal_normal,
            sample_latent_normal=self._sample_latent_normal,
        )

    def log_noise(self, noise: Array) -> Array:
        """The log-density of each coordinate's noise [..., d]."""
        return -jnp.abs(noise) / self.scale - jnp.log(2 * jnp.asarray(self.scale))

    def log_cdf(self, noise: Array) -> Array:
        """The log-probability [..., d] that a coordinate's noise is at most the given one."""
        smaller_side = -jnp.abs(noise) / self.scale - log(2)
        return jnp.where(noise < 0, smaller_side, jnp.log1p(-jnp.exp(smaller_side)))

    def sample_noise(self, key: Key, shape: tuple[int, ...], dtype: Any) -> Array:
        """Draws of the noise, of the given shape and floating dtype."""
        return self.scale * jax.random.laplace(key, shape, dtype)

    def _log_marginal_normal(self, value: Array, mean: Array, scale: Array) -> Array:
        """The log-density of the released value if the statistic is y ~ N(mean, scale²), elementwise.

        Parameters
        ----------
        value : [...]
            The released value.
        mean : [...]
            The mean of y.
        scale : [...]
            The standard deviation of y.
        """
        return LaplaceNormal(jnp.asarray(self.scale), scale).log_density(jnp.abs(value - mean))

    def _sample_latent_normal(self, key: Key, value: Array, mean: Array, scale: Array) -> Array:
        """A draw of the statistic y given the released value, where y ~ N(mean, scale²), elementwise.

        The distribution is a normal truncated above at the value, or one truncated below, with means moved by
        ± scale² / b towards the value.

        Parameters
        ----------
        key
            One typed key.
        value : [...]
            The released value.
        mean : [...]
            The mean of y.
        scale : [...]
            The standard deviation of y.

        Notes
        -----
        Let λ = scale / b and r = (value - mean) / scale, in units of `scale`. Then y lies below the value with odds M(λ
        - r) / M(λ + r), M being Mills' ratio. These are the weights of the two pieces of the marginal density of z,
        exp(∓ λ r) Φ(± r - λ), after their normal factors cancel.
        """
        value, mean, scale = jnp.broadcast_arrays(as_floating(value), as_floating(mean), as_floating(scale))
        tilt = scale / self.scale
        offset = (value - mean) / scale
        log_odds = log_mills(tilt - offset) - log_mills(tilt + offset)
        side, depth = jax.random.uniform(key, (2, *offset.shape), offset.dtype)
        below = side < jax.nn.sigmoid(log_odds)
        excess = scale * normal_excess(-jnp.log1p(-depth), jnp.where(below, tilt - offset, tilt + offset))
        return jnp.where(below, value - excess, value + excess)


@frozen_pytree
@dataclass(frozen=True)
class Gaussian(FromZCDP, Additive):
    """Adds Gaussian noise of standard deviation `scale` to each coordinate.

    Parameters
    ----------
    scale : [] or [d]
        The standard deviation σ of the noise, in the units of the released value (not its variance).
    privacy
        What the release promises; never needed for inference.

    Raises
    ------
    ValueError
        If a scale is not finite and positive.

    Examples
    --------
    >>> import dpjax
    >>> import jax.numpy as jnp
    >>> round(float(dpjax.Gaussian(scale=2.0).log_density(jnp.array([1.0]), jnp.array([1.0]))), 3)
    -1.612
    """

    json_name: ClassVar[str | None] = "gaussian"

    scale: Array | float
    privacy: Privacy | None = field(default=None, metadata={"static": True}, kw_only=True)

    def __post_init__(self) -> None:
        check_privacy(self.privacy)
        remedy = "Pass the standard deviation of the noise; dpjax.mechanisms.gaussian_scale computes one."
        object.__setattr__(self, "scale", checked_scale(self.scale, remedy))

    def _words(self) -> str:
        """The family and its standard deviation."""
        return f"Gaussian of standard deviation {amount(self.scale)}"

    def _promise_of(self, sums: ProtectedSums) -> Promise:
        """ρ = Δ₂² / 2σ²."""
        return concentrated(smallest(self.scale), sums.sensitivity(2))

    @property
    def noise(self) -> AddedNoise:
        """Of variance σ²."""
        return super().noise._replace(
            variance=lambda: jnp.square(jnp.asarray(self.scale)),
            is_normal=True,
            is_unimodal=True,
            bends=(self.scale,),
            log_marginal_normal=self._log_marginal_normal,
            sample_latent_normal=self._sample_latent_normal,
        )

    def log_noise(self, noise: Array) -> Array:
        """The log-density of each coordinate's noise [..., d]."""
        return -jnp.square(noise / self.scale) / 2 - jnp.log(jnp.asarray(self.scale)) - log(2 * pi) / 2

    def log_cdf(self, noise: Array) -> Array:
        """The log-probability [..., d] that a coordinate's noise is at most the given one."""
        return log_ndtr(noise / self.scale, series_order=8)

    def sample_noise(self, key: Key, shape: tuple[int, ...], dtype: Any) -> Array:
        """Draws of the noise, of the given shape and floating dtype."""
        return self.scale * jax.random.normal(key, shape, dtype)

    def _log_marginal_normal(self, value: Array, mean: Array, scale: Array) -> Array:
        """The log-density of the released value if the statistic is y ~ N(mean, scale²), elementwise.

        Parameters
        ----------
        value : [...]
            The released value.
        mean : [...]
            The mean of y.
        scale : [...]
            The standard deviation of y.
        """
        variance = jnp.square(scale) + jnp.square(self.scale)
        return -jnp.square(value - mean) / (2 * variance) - jnp.log(variance) / 2 - log(2 * pi) / 2

    def _sample_latent_normal(self, key: Key, value: Array, mean: Array, scale: Array) -> Array:
        """A draw of the statistic y given the released value, where y ~ N(mean, scale²), elementwise.

        Parameters
        ----------
        key
            One typed key.
        value : [...]
            The released value.
        mean : [...]
            The mean of y.
        scale : [...]
            The standard deviation of y.
        """
        value, mean, scale = jnp.broadcast_arrays(as_floating(value), as_floating(mean), as_floating(scale))
        total = jnp.hypot(scale, self.scale)
        shrinkage = jnp.square(scale / total)
        normal = jax.random.normal(key, value.shape, value.dtype)
        return mean + shrinkage * (value - mean) + scale * (self.scale / total) * normal


@frozen_pytree
@dataclass(frozen=True)
class Exact(Mechanism):
    """Releases the statistic as it is: a total that is public, or the zeros of a table.

    Notes
    -----
    Given its value only the records with this very sum are possible. Records that move one by one could hardly reach
    each other, so that `dpjax.imwg`, `dpjax.soma` and `dpjax.pcn` refuse it; moves of counts keep known totals.

    Examples
    --------
    >>> import dpjax
    >>> statistic = dpjax.statistics.cells("cell", num_categories=2)
    >>> known = dpjax.Release([12, 8], dpjax.Exact(), statistic, n=20)
    >>> noisy = dpjax.Release([11, 9], dpjax.DiscreteLaplace(1.0), statistic, n=20)
    >>> dpjax.joint(known, noisy).value.shape
    (4,)
    """

    json_name: ClassVar[str | None] = "exact"

    def _words(self) -> str:
        """That there is none."""
        return "none, these are exact"

    def _promise_of(self, sums: ProtectedSums) -> NoReturn:
        """None, even if the sums are rounded or clamped."""
        del sums
        raise Unpromised(NO_NOISE)

    @property
    def sums(self) -> PossibleSums:
        """The value is the sum."""
        return PossibleSums(known=True, tells=True)

    @property
    def noise(self) -> AddedNoise:
        """Of variance 0."""
        return AddedNoise(self._log_noise, variance=lambda: 0.0)

    @property
    def tails(self) -> Tails:
        """Those of 0, by which the sum itself may be rounded or clamped."""
        return Tails(lambda noise: where_certain(noise >= 0), lambda noise: where_certain(noise <= 0))

    def _log_noise(self, noise: Array) -> Array:
        """0 where a coordinate's noise [..., d] is 0, and ``-inf`` elsewhere."""
        noise = as_floating(noise)
        return jnp.where(noise == 0, jnp.zeros_like(noise), -jnp.inf)

    def log_density_terms(self, value: Array, statistic: Array) -> Array:
        """0 where a coordinate of the value [..., d] is that of the statistic [..., d], and ``-inf`` elsewhere."""
        return self._log_noise(as_floating(value) - as_floating(statistic))

    def log_density(self, value: Array, statistic: Array) -> Array:
        """The log-probability [] of the value [d] given the statistic [d]: 0 if they are equal, else ``-inf``."""
        return jnp.sum(self.log_density_terms(value, statistic))

    def sample(self, key: Key, statistic: Array) -> Array:
        """The statistic [d]."""
        del key
        return as_floating(statistic)


def where_certain(is_certain: Array) -> Array:
    """The logarithm of 1 where something is certain, and of 0 elsewhere."""
    return jnp.where(is_certain, 0.0, -jnp.inf)
