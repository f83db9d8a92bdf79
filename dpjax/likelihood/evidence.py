"""The log-likelihood of the release at given parameters, by particles that are tempered from the model's records."""

import jax.numpy as jnp
import numpy as np

from dpjax.base import Array, Key, Model, Parameters
from dpjax.likelihood.imputed import Imputed
from dpjax.likelihood.surface import Surface, parameters_at
from dpjax.models.same_records import SameRecords
from dpjax.release import PrivateRelease
from dpjax.smc import sample_smc

__all__ = ["FixedParameters", "estimate_log_likelihood"]

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
    if not isinstance(surface, Imputed):
        return surface.log_likelihood(vector)
    held = FixedParameters(model, parameters_at(model, jnp.asarray(vector, float)))
    found = sample_smc(
        key,
        held,
        release,
        num_particles=NUM_PARTICLES,
        num_islands=NUM_ISLANDS,
        num_sweeps=NUM_SWEEPS,
        imputation=surface.imputation,
        progress=False,
    )
    return found.log_marginal_likelihood, found.log_marginal_likelihood_error


class FixedParameters(SameRecords):
    """The model of the same records as another one, without parameters: their values are fixed."""

    model: Model
    parameters: Parameters

    def own_parameters(self, parameters: Parameters) -> Parameters:
        """The fixed values."""
        return self.parameters

    def sample_prior(self, key: Key) -> Parameters:
        """No parameters."""
        return {}

    def log_prior(self, parameters: Parameters) -> Array:
        """0."""
        return jnp.zeros(())
