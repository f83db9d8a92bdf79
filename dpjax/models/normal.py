"""Normal records with unknown mean, and known or unknown variance."""

import jax
import jax.numpy as jnp
from jax.scipy.stats import norm
from jax.typing import ArrayLike

from dpjax._util.validation import fail
from dpjax.base import Array, Key, Model, NonCentred, Parameters, Records, Statistic
from dpjax.models.arguments import as_scalar
from dpjax.models.bijections import scales
from dpjax.models.clamped_moments import normal_moments
from dpjax.models.distributions import accept_distributions
from dpjax.models.priors import InverseGammaPrior, NormalPrior, positive
from dpjax.models.recipe import numbered
from dpjax.numerics.linear_algebra import LOG_TWO_PI
from dpjax.numerics.normals import standard_normals
from dpjax.numerics.scores import NORMAL_SCORES

__all__ = ["normal"]


@accept_distributions
@numbered
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
    >>> from dpjax.models import InverseGammaPrior, NormalPrior
    >>> normal(NormalPrior(0.0, 5.0), variance=InverseGammaPrior(2.0, 2.0)).exchangeable
    True
    """
    prior_mean, prior_scale = check_mean_prior(mean_prior)
    noise_variance = positive("variance", variance, InverseGammaPrior, "variance")

    def field(parameters: Parameters) -> tuple[Array, Array]:
        return parameters["mean"], jnp.sqrt(noise_variance.value(parameters))

    def sample_prior(key: Key) -> Parameters:
        key_mean, key_variance = jax.random.split(key)
        return {"mean": mean_prior.sample(key_mean), **noise_variance.sample_prior(key_variance)}

    def posterior(parameters: Parameters, records: Records) -> tuple[Array, Array]:
        value, variance = records["y"], noise_variance.value(parameters)
        precision = prior_scale**-2 + value.size / variance
        linear = prior_mean / prior_scale**2 + jnp.sum(value) / variance
        return linear / precision, 1 / jnp.sqrt(precision)

    def update(key: Key, parameters: Parameters, records: Records) -> Parameters:
        key_mean, key_variance = jax.random.split(key)
        centre, scale = posterior(parameters, records)
        mean = centre + scale * jax.random.normal(key_mean, (), float)
        return {"mean": mean, **noise_variance.update(key_variance, records["y"] - mean)}

    def update_log_density(new: Parameters, parameters: Parameters, records: Records) -> Array:
        log_mean = norm.logpdf(new["mean"], *posterior(parameters, records))
        return log_mean + noise_variance.update_log_density(new, records["y"] - new["mean"])

    def records_at(parameters: Parameters, noise: Array) -> Records:
        mean, scale = field(parameters)
        return {"y": mean + scale * noise}

    def noise_of(key: Key, parameters: Parameters, records: Records) -> Array:
        del key
        mean, scale = field(parameters)
        return (records["y"] - mean) / scale

    def statistic_moments(parameters: Parameters, statistic: Statistic) -> tuple[Array, Array | None] | None:
        mean, scale = field(parameters)
        return normal_moments({"y": slice(0, 1)}, mean[None], scale[None, None], statistic)

    def log_likelihood(parameters: Parameters, summary: Records) -> Array:
        variance = noise_variance.value(parameters)
        squares = summary["squares"] + summary["count"] * (summary["mean"] - parameters["mean"]) ** 2
        return -(summary["count"] * (LOG_TWO_PI + jnp.log(variance)) + squares / variance) / 2

    return Model(
        sample_prior=sample_prior,
        log_prior=lambda parameters: mean_prior.log_density(parameters["mean"]) + noise_variance.log_prior(parameters),
        sample_records=lambda key, parameters, n: records_at(parameters, standard_normals(key, (n,))),
        log_density=lambda parameters, records: norm.logpdf(records["y"], *field(parameters)),
        update=update,
        noncentred=NonCentred(noise_of, records_at, scores=NORMAL_SCORES, forms=(("y", "standardised"),)),
        **scales(noise_variance.bijections),
        summarize=summarize,
        log_likelihood=log_likelihood,
        normal_field=field,
        update_log_density=update_log_density,
        statistic_moments=statistic_moments,
    )


def check_mean_prior(prior: NormalPrior) -> tuple[Array, Array]:
    """The mean and scale of the prior as numbers []."""
    if not isinstance(prior, NormalPrior):
        fail("mean_prior", type(prior).__name__, "a NormalPrior", "Pass NormalPrior(mean, scale).", error=TypeError)
    remedy = "The mean of one field takes one number."
    return as_scalar("mean_prior.mean", prior.mean, remedy), as_scalar("mean_prior.scale", prior.scale, remedy)


def summarize(records: Records) -> Records:
    """The number of records, their mean and the sum of squared deviations from it."""
    value = records["y"]
    mean = jnp.mean(value)
    return {"count": jnp.asarray(value.size, float), "mean": mean, "squares": jnp.sum((value - mean) ** 2)}
