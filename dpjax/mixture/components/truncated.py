"""The Gaussian kernel behind Gaussian noise with a base measure that is conjugate to the released values.

With z = y + N(0, η²) and y ~ N(μ, τ² - η²), the released value is z ~ N(μ, τ²) with τ² >= η²: a Normal-inverse-gamma
law cut to that range is conjugate to z itself, so that no record is imputed.
"""

from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp

from dpjax.base import Array, Key
from dpjax.mechanisms.base import is_normal
from dpjax.mixture.base import Theta
from dpjax.mixture.components.gaussian import NormalInverseGamma
from dpjax.numerics.incomplete_gamma import draw_log_cut_gamma, log_lower_gamma
from dpjax.pytree import frozen_pytree
from dpjax.validation import check_array, check_number, fail

__all__ = ["TruncatedNormalInverseGamma"]


@frozen_pytree
@dataclass(frozen=True)
class TruncatedNormalInverseGamma(NormalInverseGamma):
    """Released values z ~ N(μ, τ²) with τ² ~ IG(shape, scale) cut to [η², ∞) and μ | τ² ~ N(mean, τ² / precision).

    The parameters are named ``"mean"`` and ``"variance"`` (τ², that of the released values); the confidential records
    of a cluster are N(μ, τ² - η²). `dpjax.mixture.sample` fills in η² from the channel, which must be `dpjax.Gaussian`
    or other noise that says it is Normal.

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
    Model (11) of Beraha, Favaro and Rao (2025), whose base measure lacks the constant 1 / P(shape, scale / η²). It is
    another prior than the Normal-inverse-gamma law of a record's own mean and variance.

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
        if not is_normal(channel):
            remedy = "Use NormalInverseGamma for other channels."
            fail("channel", type(channel).__name__, "dpjax.Gaussian, for this base measure", remedy, error=TypeError)
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
        """Draws [H] from Normal-inverse-gamma laws cut to variances of at least η²."""
        key_variance, key_mean = jax.random.split(key)
        variance = scale * jnp.exp(-draw_log_cut_gamma(key_variance, shape, scale / self.noise_variance))
        normal = jax.random.normal(key_mean, mean.shape, mean.dtype)
        return {"mean": mean + jnp.sqrt(variance / precision) * normal, "variance": variance}
