"""Exponential records with a Gamma prior of their rate."""

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from dpjax.base import Array, Key, Model, NonCentred, Parameters, Records
from dpjax.models.bijections import Bijection, MappedModel
from dpjax.models.distributions import accept_distributions
from dpjax.models.positive import Positive, positive
from dpjax.models.priors import GammaPrior
from dpjax.numerics.scores import EXPONENTIAL_SCORES

__all__ = ["exponential"]


@accept_distributions
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
    >>> import dpjax
    >>> import jax.numpy as jnp
    >>> from dpjax.models import GammaPrior
    >>> model = dpjax.models.exponential(GammaPrior(2.0, 1.0))
    >>> model.log_density({"rate": jnp.array(1.0)}, {"y": jnp.array([0.5, 2.0])}).tolist()
    [-0.5, -2.0]
    """
    return Exponential(positive("rate", rate_prior, GammaPrior, "rate_prior"))


class Exponential(MappedModel):
    """Exponential records, as `exponential` describes them."""

    rate: Positive

    def sample_prior(self, key: Key) -> Parameters:
        """A draw from the prior."""
        return self.rate.sample_prior(key)

    def log_prior(self, parameters: Parameters) -> Array:
        """The log-density [] of the prior."""
        return self.rate.log_prior(parameters)

    def sample_records(self, key: Key, parameters: Parameters, n: int) -> Records:
        """Records drawn given the parameters."""
        return self.records_at(parameters, jax.random.exponential(key, (n,), float))

    def log_density(self, parameters: Parameters, records: Records) -> Array:
        """The log-density of each record [n]."""
        value = self.rate.value(parameters)
        return jnp.where(records["y"] >= 0, jnp.log(value) - value * records["y"], -jnp.inf)

    def update(self, key: Key, parameters: Parameters, records: Records) -> Parameters:
        """An exact Gamma draw."""
        return self.rate.update(key, records["y"])

    def update_log_density(self, new: Parameters, parameters: Parameters, records: Records) -> Array:
        """The log-density [] of that draw."""
        return self.rate.update_log_density(new, records["y"])

    @property
    def noncentred(self) -> NonCentred:
        """Records times their rate."""
        return NonCentred(self.noise_of, self.records_at, scores=EXPONENTIAL_SCORES, forms=(("y", "times its rate"),))

    def records_at(self, parameters: Parameters, noise: Array) -> Records:
        """The records of this noise [n]."""
        return {"y": noise / self.rate.value(parameters)}

    def noise_of(self, key: Key, parameters: Parameters, records: Records) -> Array:
        """The noise [n] of records."""
        del key
        return records["y"] * self.rate.value(parameters)

    def summarize(self, records: Records) -> Records:
        """The number of records and their sum."""
        return {"count": jnp.asarray(records["y"].size, float), "sum": jnp.sum(records["y"])}

    def log_likelihood(self, parameters: Parameters, summary: Records) -> Array:
        """The log-density [] of all records."""
        value = self.rate.value(parameters)
        return summary["count"] * jnp.log(value) - value * summary["sum"]

    @property
    def bijections(self) -> dict[str, Bijection]:
        """The logarithm of an unknown rate."""
        return self.rate.bijections
