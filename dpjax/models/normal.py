"""Normal records with unknown mean, and known or unknown variance."""

from typing import Any

import jax
import jax.numpy as jnp
from jax.scipy.stats import norm
from jax.typing import ArrayLike

from dpjax._util.validation import fail, name_of
from dpjax.base import Array, Key, Model, NonCentred, Parameters, Records, Statistic
from dpjax.models.arguments import as_scalar
from dpjax.models.bijections import Bijection, MappedModel
from dpjax.models.distributions import accept_distributions
from dpjax.models.positive import Positive, positive
from dpjax.models.priors import InverseGammaPrior, NormalPrior, as_float
from dpjax.numerics.intervals import normal_between
from dpjax.numerics.linear_algebra import LOG_TWO_PI
from dpjax.numerics.normals import standard_normals
from dpjax.numerics.scores import NORMAL_SCORES
from dpjax.statistics.base import normal_moments

__all__ = ["normal"]


@accept_distributions
def normal(mean_prior: NormalPrior, variance: ArrayLike | InverseGammaPrior) -> Model:
    """Records ``{"y": []}`` with y ~ N(mean, variance).

    Parameters
    ----------
    mean_prior
        The prior of ``mean`` [].
    variance
        The known variance, or the prior of ``variance`` [].

    Notes
    -----
    With a known variance the update is an exact draw of the mean. Otherwise it draws the mean given the variance and
    then the variance given the mean, which leaves their posterior invariant.

    Raises
    ------
    TypeError, ValueError
        If a prior is of another type, or a number is not finite, not positive or not scalar.

    Examples
    --------
    >>> import dpjax
    >>> from dpjax.models import InverseGammaPrior, NormalPrior
    >>> dpjax.models.normal(NormalPrior(0.0, 5.0), variance=InverseGammaPrior(2.0, 2.0)).exchangeable
    True
    """
    check_mean_prior(mean_prior)
    return Normal(mean_prior, positive("variance", variance, InverseGammaPrior, "variance"))


class Normal(MappedModel):
    """Normal records, as `normal` describes them."""

    mean_prior: NormalPrior
    variance: Positive

    def normal_field(self, parameters: Parameters) -> tuple[Array, Array]:
        """The mean and the standard deviation of a record."""
        return parameters["mean"], jnp.sqrt(self.variance.value(parameters))

    def sample_prior(self, key: Key) -> Parameters:
        """A draw from the prior."""
        key_mean, key_variance = jax.random.split(key)
        return {"mean": self.mean_prior.sample(key_mean), **self.variance.sample_prior(key_variance)}

    def log_prior(self, parameters: Parameters) -> Array:
        """The log-density [] of the prior."""
        return self.mean_prior.log_density(parameters["mean"]) + self.variance.log_prior(parameters)

    def sample_records(self, key: Key, parameters: Parameters, n: int) -> Records:
        """Records drawn given the parameters."""
        return self.records_at(parameters, standard_normals(key, (n,)))

    def log_density(self, parameters: Parameters, records: Records) -> Array:
        """The log-density of each record [n]."""
        return norm.logpdf(records["y"], *self.normal_field(parameters))

    def log_density_between(self, parameters: Parameters, records: Records, ends: Any) -> Array:
        """The same of records between ends."""
        low, high = ends.get("y", (records["y"], records["y"]))
        return normal_between(low, high, *self.normal_field(parameters))

    def update(self, key: Key, parameters: Parameters, records: Records) -> Parameters:
        """A draw of the mean given the variance, and then of the variance given the mean."""
        key_mean, key_variance = jax.random.split(key)
        centre, scale = self.mean_given(parameters, records)
        mean = centre + scale * jax.random.normal(key_mean, (), float)
        return {"mean": mean, **self.variance.update(key_variance, records["y"] - mean)}

    def update_log_density(self, new: Parameters, parameters: Parameters, records: Records) -> Array:
        """The log-density [] of that draw."""
        log_mean = norm.logpdf(new["mean"], *self.mean_given(parameters, records))
        return log_mean + self.variance.update_log_density(new, records["y"] - new["mean"])

    def mean_given(self, parameters: Parameters, records: Records) -> tuple[Array, Array]:
        """The mean and the standard deviation of the posterior of the mean given the variance and the records."""
        value, variance = records["y"], self.variance.value(parameters)
        prior_mean, prior_scale = as_float(self.mean_prior.mean), as_float(self.mean_prior.scale)
        precision = prior_scale**-2 + value.size / variance
        linear = prior_mean / prior_scale**2 + jnp.sum(value) / variance
        return linear / precision, 1 / jnp.sqrt(precision)

    @property
    def noncentred(self) -> NonCentred:
        """Records standardised by their mean and standard deviation."""
        return NonCentred(self.noise_of, self.records_at, scores=NORMAL_SCORES, forms=(("y", "standardised"),))

    def records_at(self, parameters: Parameters, noise: Array) -> Records:
        """The records of this noise [n]."""
        mean, scale = self.normal_field(parameters)
        return {"y": mean + scale * noise}

    def noise_of(self, key: Key, parameters: Parameters, records: Records) -> Array:
        """The noise [n] of records."""
        del key
        mean, scale = self.normal_field(parameters)
        return (records["y"] - mean) / scale

    def summarize(self, records: Records) -> Records:
        """The number of records, their mean and the sum of squared deviations from it."""
        value = records["y"]
        mean = jnp.mean(value)
        return {"count": jnp.asarray(value.size, float), "mean": mean, "squares": jnp.sum((value - mean) ** 2)}

    def log_likelihood(self, parameters: Parameters, summary: Records) -> Array:
        """The log-density [] of all records."""
        variance = self.variance.value(parameters)
        squares = summary["squares"] + summary["count"] * (summary["mean"] - parameters["mean"]) ** 2
        return -(summary["count"] * (LOG_TWO_PI + jnp.log(variance)) + squares / variance) / 2

    def statistic_moments(self, parameters: Parameters, statistic: Statistic) -> tuple[Array, Array | None] | None:
        """The mean and the covariance of a record's contribution to a sum, if they have a closed form."""
        mean, scale = self.normal_field(parameters)
        return normal_moments(statistic, {"y": slice(0, 1)}, mean[None], scale[None, None])

    @property
    def bijections(self) -> dict[str, Bijection]:
        """The logarithm of an unknown variance."""
        return self.variance.bijections


def check_mean_prior(prior: NormalPrior) -> None:
    """Raise unless the prior is that of one number."""
    if not isinstance(prior, NormalPrior):
        fail("mean_prior", name_of(prior), "a NormalPrior", "Pass NormalPrior(mean, scale).", error=TypeError)
    for name in ("mean", "scale"):
        as_scalar(f"mean_prior.{name}", getattr(prior, name), "The mean of one field takes one number.")
