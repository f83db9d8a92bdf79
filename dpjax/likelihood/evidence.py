"""The log-likelihood of the release at given parameters, by particles that are tempered from the model's records."""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np

from dpjax.base import Array, Key, Model, Parameters, Records
from dpjax.likelihood.approximate import Approximate
from dpjax.likelihood.imputed import Imputed
from dpjax.likelihood.surface import Surface, parameters_at
from dpjax.release import PrivateRelease
from dpjax.smc import sample_smc

__all__ = ["Held", "estimate_log_likelihood"]

NUM_PARTICLES, NUM_ISLANDS, NUM_SWEEPS = 250, 16, 5


def estimate_log_likelihood(
    key: Key, surface: Surface, model: Model, release: PrivateRelease, vector: np.ndarray
) -> tuple[float, float]:
    """The log-likelihood at a vector [k], and its standard error.

    Records drawn from the model are tempered until their sums fit the release: the product of the mean weights
    estimates its density without bias (Del Moral, Doucet and Jasra 2006).

    Parameters
    ----------
    model
        As the user knows it.
    release
        As the user knows it.
    """
    if isinstance(surface, Approximate):
        return surface.log_likelihood(vector)
    assert isinstance(surface, Imputed)
    held = Held(model, parameters_at(model, jnp.asarray(vector, float)))
    found = sample_smc(
        key,
        held,
        release,
        num_particles=NUM_PARTICLES,
        num_islands=NUM_ISLANDS,
        num_sweeps=NUM_SWEEPS,
        imputation=surface.imputation,
    )
    return found.log_marginal_likelihood, found.log_marginal_likelihood_error


class Held(Model):
    """The model of the same records as another one, without parameters: their values are held."""

    model: Model
    parameters: Parameters

    def sample_prior(self, key: Key) -> Parameters:
        """No parameters."""
        return {}

    def log_prior(self, parameters: Parameters) -> Array:
        """0."""
        return jnp.zeros(())

    def sample_records(self, key: Key, parameters: Parameters, n: int) -> Records:
        """Records drawn given the values that are held."""
        return self.model.sample_records(key, self.parameters, n)

    def log_density(self, parameters: Parameters, records: Records) -> Array:
        """The log-density of each record [n]."""
        return self.model.log_density(self.parameters, records)

    @property
    def support(self) -> Callable[[], Records] | None:
        """That of the other model."""
        return self.model.support

    @property
    def num_records(self) -> int | None:
        """That of the other model."""
        return self.model.num_records

    @property
    def exchangeable(self) -> bool:
        """That of the other model."""
        return self.model.exchangeable

    @property
    def count_field(self) -> str | None:
        """That of the other model."""
        return self.model.count_field

    @property
    def normal_field(self) -> Callable[[Parameters], tuple[Array, Array]] | None:
        """The mean and standard deviation at the values that are held."""
        return None if self.model.normal_field is None else self.normal_moments

    def normal_moments(self, parameters: Parameters) -> tuple[Array, Array]:
        """The mean and standard deviation of the only field."""
        assert self.model.normal_field is not None
        return self.model.normal_field(self.parameters)
