"""The log-likelihood of the release at given parameters, by particles that are tempered from the model's records."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dpjax.base import Array, Key, Model, Parameters, Records
from dpjax.likelihood.approximate import Approximate
from dpjax.likelihood.imputed import Imputed
from dpjax.likelihood.surface import Surface, parameters_at
from dpjax.models.recipe import Form, numbered_by, recipe_of
from dpjax.release import PrivateRelease
from dpjax.smc import sample_smc

__all__ = ["estimate_log_likelihood", "hold_parameters"]

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
    held = hold_parameters(model, parameters_at(model, jnp.asarray(vector, float)))
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


def hold_parameters(model: Model, parameters: Parameters) -> Model:
    """The model of the same records without parameters, whose values are held."""
    recipe = recipe_of(model)
    if recipe is None:
        return build_held(model, parameters)
    leaves, structure = jax.tree.flatten(parameters)
    return numbered_by(Holding(recipe.form, structure, len(recipe.numbers)), (*recipe.numbers, *leaves))


@dataclass(frozen=True)
class Holding:
    """Builds the model without parameters from the numbers of a model, and then the values of its parameters."""

    form: Form
    structure: Any
    num_numbers: int

    def __call__(self, *numbers: Array) -> Model:
        """The model without parameters."""
        parameters = jax.tree.unflatten(self.structure, numbers[self.num_numbers :])
        return build_held(self.form(numbers[: self.num_numbers]), parameters)


def build_held(model: Model, parameters: Parameters) -> Model:
    """The model without parameters."""

    def sample_records(key: Key, nothing: Parameters, n: int) -> Records:
        del nothing
        return model.sample_records(key, parameters, n)

    normal_field = model.normal_field
    return Model(
        sample_prior=lambda key: {},
        log_prior=lambda nothing: jnp.zeros(()),
        sample_records=sample_records,
        log_density=lambda nothing, records: model.log_density(parameters, records),
        support=model.support,
        num_records=model.num_records,
        exchangeable=model.exchangeable,
        count_field=model.count_field,
        normal_field=None if normal_field is None else lambda nothing: normal_field(parameters),
    )
