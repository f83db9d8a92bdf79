"""The univariate Gaussian kernel N(mean, variance) with its Normal-inverse-gamma base measure."""

from dataclasses import dataclass, replace
from math import log, pi
from typing import Any

import jax
import jax.numpy as jnp
from jax.scipy.special import gammaln

from dpjax._util.pytree import frozen_pytree
from dpjax._util.spelling import NamesArguments
from dpjax._util.validation import check_array, check_number, check_positive, fail, name_of
from dpjax.base import Array, Key
from dpjax.mechanisms.base import as_mechanism
from dpjax.mixture.base import Theta
from dpjax.models.priors import warn_of_underflow
from dpjax.numerics.ends import positive_at
from dpjax.numerics.gamma import draw_log_cut_gamma, draw_log_gamma, log_lower_gamma

__all__ = ["NormalInverseGamma", "TruncatedNormalInverseGamma"]


@frozen_pytree
@dataclass(frozen=True)
class NormalInverseGamma(NamesArguments):
    """Records y ~ N(μ, σ²) with the base measure σ² ~ IG(shape, scale), μ | σ² ~ N(mean, σ² / precision).

    The parameters are named ``"mean"`` and ``"variance"``; draws of them given a cluster are exact.

    Parameters
    ----------
    mean : []
        The prior mean of a cluster's mean.
    precision : []
        The number of records that the prior mean counts for.
    shape : []
        The shape of the inverse gamma distribution, with density ∝ v^(-shape - 1) exp(-scale / v).
    scale : []
        Its scale.

    Raises
    ------
    ValueError
        If the mean is not finite, or another number is not finite and positive.

    Examples
    --------
    >>> import dpjax
    >>> import jax.numpy as jnp
    >>> component = dpjax.mixture.NormalInverseGamma(mean=0.0, precision=0.1, shape=2.0, scale=1.0)
    >>> round(float(component.log_density(0.0, {"mean": jnp.array(0.0), "variance": jnp.array(1.0)})), 3)
    -0.919
    """

    mean: Array | float
    precision: Array | float
    shape: Array | float
    scale: Array | float

    def __post_init__(self) -> None:
        check_array("mean", self.mean, lambda array: array == array, "a finite number", "Pass the prior mean.")
        check_positive("precision", self.precision, "Pass how many records the prior mean is worth.")
        check_positive("shape", self.shape)
        check_positive("scale", self.scale)
        for name in ("mean", "precision", "shape", "scale"):
            check_number(name, getattr(self, name))
        warn_of_underflow("shape", self.shape)

    def sample_prior(self, key: Key, size: int) -> Theta:
        """Independent draws [size] from the base measure."""
        return self._draw(key, *self.posterior(jnp.zeros(size), jnp.zeros((size, 2))))

    def sample(self, key: Key, theta: Theta) -> Array:
        """One record [n] for each set of parameters [n]."""
        mean = theta["mean"]
        return mean + jnp.sqrt(theta["variance"]) * jax.random.normal(key, mean.shape, mean.dtype)

    def log_density(self, record: Array, theta: Theta) -> Array:
        """log N(y | μ, σ²), elementwise."""
        variance = theta["variance"]
        return -jnp.square(record - theta["mean"]) / (2 * variance) - jnp.log(variance) / 2 - log(2 * pi) / 2

    def normal_field(self, theta: Theta) -> tuple[Array, Array]:
        """The mean and standard deviation of a record, elementwise."""
        return theta["mean"], jnp.sqrt(theta["variance"])

    def features(self, record: Array) -> Array:
        """The deviation from the prior mean and its square [2], centred to lose less to rounding."""
        deviation = record - self.mean
        return jnp.stack([deviation, jnp.square(deviation)])

    def update(self, key: Key, theta: Theta, counts: Array, totals: Array) -> Theta:
        """An exact draw [H] given the clusters' statistics."""
        return self._draw(key, *self.posterior(counts, totals))

    def posterior(self, counts: Array, totals: Array) -> tuple[Array, Array, Array, Array]:
        """The mean, precision, shape and scale [H] of the Normal-inverse-gamma posteriors given the statistics."""
        precision = self.precision + counts
        shift = totals[:, 0] / precision
        squares = jnp.maximum(totals[:, 1] - precision * jnp.square(shift), 0)
        return self.mean + shift, precision, self.shape + counts / 2, self.scale + squares / 2

    def log_evidence(self, counts: Array, totals: Array) -> Array:
        """The log-density [H] of the records of each cluster with its parameters integrated out."""
        _, precision, shape, scale = self.posterior(counts, totals)
        prior_shape, prior_scale = jnp.asarray(self.shape, counts.dtype), jnp.asarray(self.scale, counts.dtype)
        of_precision = jnp.log(jnp.asarray(self.precision, counts.dtype) / precision) / 2
        of_scale = prior_shape * jnp.log(prior_scale) - shape * jnp.log(scale)
        return of_precision + of_scale + gammaln(shape) - gammaln(prior_shape) - counts * log(2 * pi) / 2

    def _draw(self, key: Key, mean: Array, precision: Array, shape: Array, scale: Array) -> Theta:
        """Draws [H] from Normal-inverse-gamma distributions."""
        key_variance, key_mean = jax.random.split(key)
        variance = positive_at(jnp.log(scale) - draw_log_gamma(key_variance, shape))
        normal = jax.random.normal(key_mean, mean.shape, mean.dtype)
        return {"mean": mean + jnp.sqrt(variance / precision) * normal, "variance": variance}


@frozen_pytree
@dataclass(frozen=True)
class TruncatedNormalInverseGamma(NormalInverseGamma):
    """Released values z ~ N(μ, τ²), τ² ~ IG(shape, scale) truncated to [η², ∞), μ | τ² ~ N(mean, τ² / precision).

    The parameters are named ``"mean"`` and ``"variance"`` (τ², that of the released values); the confidential records
    of a cluster are N(μ, τ² - η²). `dpjax.mixture.sample` takes η² from the channel, which must be `dpjax.Gaussian` or
    another mechanism that declares Normal noise.

    Parameters
    ----------
    mean : []
        As in `NormalInverseGamma`.
    precision : []
        As in `NormalInverseGamma`.
    shape : []
        As in `NormalInverseGamma`, at least 1.
    scale : []
        As in `NormalInverseGamma`.
    noise_variance : []
        η², the variance of the noise; taken from the channel.

    Notes
    -----
    Model (11) of Beraha, Favaro and Rao (2025), whose base measure lacks the constant 1 / P(shape, scale / η²). This
    prior differs from a Normal-inverse-gamma prior on a record's own mean and variance.

    Examples
    --------
    >>> import dpjax
    >>> component = dpjax.mixture.TruncatedNormalInverseGamma(0.0, 0.1, 2.0, 1.0, noise_variance=0.5)
    """

    noise_variance: Array | float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_array("shape", self.shape, lambda array: array >= 1, "a number of at least 1", "Pass a larger shape.")
        remedy = "Leave it out: it is that of the channel."
        check_array("noise_variance", self.noise_variance, lambda array: array >= 0, "a number of at least 0", remedy)

    def behind(self, channel: Any) -> "TruncatedNormalInverseGamma":
        """The component of the released values behind this channel.

        Raises
        ------
        TypeError
            If the noise of the channel is not Normal.
        """
        noise = as_mechanism(channel).noise
        if noise is None or not noise.is_normal:
            remedy = "Use NormalInverseGamma for other channels."
            fail("channel", name_of(channel), "dpjax.Gaussian, for this base measure", remedy, error=TypeError)
        check_number("channel.scale", channel.scale)
        return replace(self, noise_variance=jnp.square(jnp.asarray(channel.scale, float)))

    def log_record_density(self, record: Array, theta: Theta) -> Array:
        """log N(y | μ, τ² - η²) of a confidential record, elementwise."""
        variance = jnp.maximum(theta["variance"] - self.noise_variance, jnp.finfo(theta["variance"].dtype).tiny)
        return NormalInverseGamma.log_density(self, record, {"mean": theta["mean"], "variance": variance})

    def log_evidence(self, counts: Array, totals: Array) -> Array:
        """The log-density [H] of the released values of each cluster with its parameters integrated out."""
        _, _, shape, scale = self.posterior(counts, totals)
        log_mass = log_lower_gamma(shape, scale / self.noise_variance)
        nothing = jnp.zeros_like(counts)
        _, _, shape, scale = self.posterior(nothing, jnp.zeros_like(totals))
        log_prior_mass = log_lower_gamma(shape, scale / self.noise_variance)
        return NormalInverseGamma.log_evidence(self, counts, totals) + log_mass - log_prior_mass

    def _draw(self, key: Key, mean: Array, precision: Array, shape: Array, scale: Array) -> Theta:
        """Draws [H] from Normal-inverse-gamma distributions truncated to variances of at least η²."""
        key_variance, key_mean = jax.random.split(key)
        variance = scale * jnp.exp(-draw_log_cut_gamma(key_variance, shape, scale / self.noise_variance))
        normal = jax.random.normal(key_mean, mean.shape, mean.dtype)
        return {"mean": mean + jnp.sqrt(variance / precision) * normal, "variance": variance}
