"""Beta records with known shapes or Gamma priors of the shapes."""

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from dpjax.base import Array, Key, Model, NonCentred, Parameters, Records
from dpjax.models.bijections import Bijection, MappedModel
from dpjax.models.distributions import accept_distributions
from dpjax.models.positive import Positive, positive
from dpjax.models.priors import GammaPrior
from dpjax.numerics.dirichlet import (
    beta_features,
    beta_log_density,
    beta_log_likelihood,
    draw_beta,
    logit_log_density,
    logit_moments,
    logit_within,
    value_at,
)

__all__ = ["beta"]

FORMS = (("y", "standardised on the logit scale"),)


@accept_distributions
def beta(a: GammaPrior | ArrayLike, b: GammaPrior | ArrayLike) -> Model:
    """Records ``{"y": []}`` with y of density ∝ y^(a - 1) (1 - y)^(b - 1) on (0, 1).

    Parameters
    ----------
    a
        The first shape [], which is then not a parameter, or its Gamma prior.
    b
        The second shape, likewise.

    Raises
    ------
    TypeError, ValueError
        If a prior is of another type, or a number is not finite and positive.

    Notes
    -----
    There is no exact update of the shapes: a kernel on the log scale updates them, through ``summarize`` and
    ``log_likelihood``. The non-centred form is standardised on the logit scale, approximately: a density of the noise
    corrects it.

    Records are drawn strictly inside (0, 1). Those closer to 0 than 4 times the smallest float, or closer to 1 than 64
    units of rounding, are represented by one number. The density there is its average over that cell. So the posterior
    is exact for arbitrarily small shapes.

    Examples
    --------
    >>> import dpjax
    >>> model = dpjax.models.beta(dpjax.models.GammaPrior(2.0, 1.0), 1.5)
    """
    return Beta(positive("a", a, GammaPrior, "a"), positive("b", b, GammaPrior, "b"))


class Beta(MappedModel):
    """Beta records, as `beta` describes them."""

    first: Positive
    second: Positive

    def shapes(self, parameters: Parameters) -> tuple[Array, Array]:
        """The two shapes [] and []."""
        return self.first.value(parameters), self.second.value(parameters)

    def sample_prior(self, key: Key) -> Parameters:
        """A draw from the prior."""
        key_first, key_second = jax.random.split(key)
        return self.first.sample_prior(key_first) | self.second.sample_prior(key_second)

    def log_prior(self, parameters: Parameters) -> Array:
        """The log-density [] of the prior."""
        return self.first.log_prior(parameters) + self.second.log_prior(parameters)

    def sample_records(self, key: Key, parameters: Parameters, n: int) -> Records:
        """Records drawn given the parameters."""
        shapes = jnp.stack(self.shapes(parameters))
        return {"y": draw_beta(key, *jnp.broadcast_to(shapes[:, None], (2, n)))}

    def log_density(self, parameters: Parameters, records: Records) -> Array:
        """The log-density of each record [n]."""
        return beta_log_density(records["y"], *self.shapes(parameters))

    @property
    def noncentred(self) -> NonCentred:
        """Records standardised on the logit scale, and the density of that noise."""
        return NonCentred(self.noise_of, self.records_at, self.noise_log_density, forms=FORMS)

    def noise_of(self, key: Key, parameters: Parameters, records: Records) -> Array:
        """The noise [n] of records."""
        shapes = self.shapes(parameters)
        location, scale = logit_moments(*shapes)
        return (logit_within(key, records["y"], *shapes) - location) / scale

    def records_at(self, parameters: Parameters, noise: Array) -> Records:
        """The records of this noise [n]."""
        location, scale = logit_moments(*self.shapes(parameters))
        return {"y": value_at(location + scale * noise)}

    def noise_log_density(self, parameters: Parameters, noise: Array) -> Array:
        """The log-density of the noise [n] given the parameters."""
        shapes = self.shapes(parameters)
        location, scale = logit_moments(*shapes)
        return logit_log_density(location + scale * noise, *shapes) + jnp.log(scale)

    def summarize(self, records: Records) -> Records:
        """The number of records and the sums of the features of the Beta density."""
        value = records["y"]
        return {"count": jnp.asarray(value.size, float), "features": tuple(map(jnp.sum, beta_features(value)))}

    def log_likelihood(self, parameters: Parameters, summary: Records) -> Array:
        """The log-density [] of all records."""
        return beta_log_likelihood(*self.shapes(parameters), summary["count"], summary["features"])

    @property
    def bijections(self) -> dict[str, Bijection]:
        """The logarithms of unknown shapes."""
        return self.first.bijections | self.second.bijections
