"""Exponential records with a Gamma prior of their rate."""

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from dpjax.base import Array, Key, Model, NonCentred, Parameters, Records
from dpjax.models.bijections import scales
from dpjax.models.distributions import accept_distributions
from dpjax.models.priors import GammaPrior, positive
from dpjax.models.recipe import numbered
from dpjax.numerics.scores import EXPONENTIAL_SCORES

__all__ = ["exponential"]


@accept_distributions
@numbered
def exponential(rate_prior: GammaPrior | ArrayLike) -> Model:
    """Records ``{"y": []}`` with y of density rate · exp(-rate y), y ≥ 0.

    Parameters
    ----------
    rate_prior
        The prior of ``rate`` [], or the known rate, with which the model has no parameters.

    Notes
    -----
    The update is an exact Gamma draw.

    Raises
    ------
    TypeError, ValueError
        If the prior is of another type, or a number is not finite and positive.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from dpjax.models import GammaPrior
    >>> model = exponential(GammaPrior(2.0, 1.0))
    >>> model.log_density({"rate": jnp.array(1.0)}, {"y": jnp.array([0.5, 2.0])}).tolist()
    [-0.5, -2.0]
    """
    rate = positive("rate", rate_prior, GammaPrior, "rate_prior")

    def log_density(parameters: Parameters, records: Records) -> Array:
        value = rate.value(parameters)
        return jnp.where(records["y"] >= 0, jnp.log(value) - value * records["y"], -jnp.inf)

    def log_likelihood(parameters: Parameters, summary: Records) -> Array:
        value = rate.value(parameters)
        return summary["count"] * jnp.log(value) - value * summary["sum"]

    def records_at(parameters: Parameters, noise: Array) -> Records:
        return {"y": noise / rate.value(parameters)}

    def noise_of(key: Key, parameters: Parameters, records: Records) -> Array:
        del key
        return records["y"] * rate.value(parameters)

    return Model(
        sample_prior=rate.sample_prior,
        log_prior=rate.log_prior,
        sample_records=lambda key, parameters, n: records_at(parameters, jax.random.exponential(key, (n,), float)),
        log_density=log_density,
        update=lambda key, parameters, records: rate.update(key, records["y"]),
        noncentred=NonCentred(noise_of, records_at, scores=EXPONENTIAL_SCORES, forms=(("y", "times its rate"),)),
        **scales(rate.bijections),
        summarize=lambda records: {"count": jnp.asarray(records["y"].size, float), "sum": jnp.sum(records["y"])},
        log_likelihood=log_likelihood,
        update_log_density=lambda new, parameters, records: rate.update_log_density(new, records["y"]),
    )
