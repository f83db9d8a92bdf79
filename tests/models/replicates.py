"""Independent replicates of parameters from the prior, records from their law, one update and the noise of the records.

One compiled program draws all replicates of a case.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from dpjax.models import InverseGammaPrior
from dpjax.numerics.cells import all_edges, cell_edges
from dpjax.numerics.dirichlet import draw_dirichlet
from dpjax.numerics.linear_algebra import draw_normal
from tests.models.cases import CASES, INVERSE_GAMMA_COEF, INVERSE_WISHART, unconstrained

NUM_REPLICATES = 20_000
NUM_RECORDS = 6


class Updates(NamedTuple):
    """The parameters before and after an update, and what it and a wrong one add to functions [replicates, functions].

    The functions are those of parameters and records below.
    """

    before: dict
    after: dict
    change: jax.Array
    wrong_change: jax.Array


class Noises(NamedTuple):
    """The parameters as unconstrained vectors [replicates, k], and the noise of the records [replicates, values].

    The noise is that of the non-centred form, and that of a wrong one.
    """

    points: jax.Array
    noise: jax.Array
    wrong_noise: jax.Array


@cache
def updates(name: str) -> Updates:
    """The replicates of a case's update."""
    return replicate(name, update_once)


@cache
def noises(name: str) -> Noises:
    """The replicates of the noise of a case's records."""
    return replicate(name, draw_noise)


def replicate(name: str, one: Callable) -> Any:
    """What one key gives, for all replicates."""
    return jax.jit(jax.vmap(lambda key: one(name, key)))(jax.random.split(jax.random.key(11), NUM_REPLICATES))


def update_once(name: str, key: jax.Array) -> Updates:
    """One replicate of an update."""
    key_parameters, key_records, key_update, _ = jax.random.split(key, 4)
    model = CASES[name]
    parameters = model.sample_prior(key_parameters)
    records = model.sample_records(key_records, parameters, NUM_RECORDS)
    start = functions(name, parameters, records)
    both = model.update, WRONG_UPDATES.get(name, model.update)
    after, wrong = (update(key_update, parameters, records) for update in both)
    change, wrong_change = (functions(name, moved, records) - start for moved in (after, wrong))
    return Updates(parameters, after, change, wrong_change)


def draw_noise(name: str, key: jax.Array) -> Noises:
    """One replicate of the noise."""
    key_parameters, key_records, _, key_noise = jax.random.split(key, 4)
    model = CASES[name]
    parameters = model.sample_prior(key_parameters)
    records = model.sample_records(key_records, parameters, NUM_RECORDS)
    both = model.noncentred.noise, WRONG_NOISES.get(name, model.noncentred.noise)
    noise, wrong_noise = (noise_of(key_noise, parameters, records).ravel() for noise_of in both)
    return Noises(point_of(name, parameters), noise, wrong_noise)


def point_of(name: str, parameters: dict) -> jax.Array:
    """The unconstrained parameters as a vector."""
    return ravel_pytree(unconstrained(name, parameters))[0]


def functions(name: str, parameters: dict, records: dict) -> jax.Array:
    """First and second moments of the unconstrained parameters, and their products with moments of the records."""
    point = point_of(name, parameters)
    values = ravel_pytree(jax.tree.map(lambda field: jnp.mean(field.astype(float), axis=0), records))[0]
    squares = ravel_pytree(jax.tree.map(lambda field: jnp.mean(field.astype(float) ** 2, axis=0), records))[0]
    features = jnp.arctan(jnp.concatenate([jnp.ones(1), values, squares]))  # bounded, as records may have heavy tails
    upper = jnp.triu_indices(point.size)
    return jnp.concatenate([jnp.outer(point, features).ravel(), jnp.outer(point, point)[upper]])


def update_without_prior(key: jax.Array, parameters: dict, records: dict) -> dict:
    return {"mean": records["y"].mean() + jax.random.normal(key) * jnp.sqrt(1.5 / NUM_RECORDS)}


def update_with_whole_degrees(key: jax.Array, parameters: dict, records: dict) -> dict:
    residuals = records["y"] - parameters["mean"]
    law = InverseGammaPrior(4.0 + NUM_RECORDS, 3.0 + jnp.sum(residuals**2) / 2)
    return parameters | {"variance": law.sample(key)}


def update_by_least_squares(key: jax.Array, parameters: dict, records: dict) -> dict:
    design = jnp.concatenate([jnp.ones((1, NUM_RECORDS)), records["x"].T])
    return {"coef": draw_normal(key, design @ design.T / 2.0, design @ records["y"] / 2.0)}


def update_without_the_half(key: jax.Array, parameters: dict, records: dict) -> dict:
    design = jnp.concatenate([jnp.ones((1, NUM_RECORDS)), records["x"].T])
    law = INVERSE_GAMMA_COEF.posterior(design, records["y"])
    coef, variance = replace(law, scale=3.0 + 2 * (law.scale - 3.0)).sample(key, 3)
    return {"coef": coef, "variance": variance}


def update_without_the_shift(key: jax.Array, parameters: dict, records: dict) -> dict:
    law = INVERSE_WISHART.posterior(records["x"].T)
    spread = records["x"] - records["x"].mean(axis=0, keepdims=True)
    mean, covariance = replace(law, scale=jnp.asarray(INVERSE_WISHART.scale) + spread.T @ spread).sample(key)
    return parameters | {"covariate_mean": mean, "covariate_cov": covariance}


def update_without_concentration(key: jax.Array, parameters: dict, records: dict) -> dict:
    return {"probabilities": draw_dirichlet(key, 1.0 + CASES["categorical"].summarize(records))}


def update_with_shifted_levels(key: jax.Array, parameters: dict, records: dict) -> dict:
    return CASES["naive Bayes"].update(key, parameters, records | {"features": records["features"][:, ::-1]})


def update_by_the_mean(key: jax.Array, parameters: dict, records: dict) -> dict:
    return {"rate": jax.random.gamma(key, 3.0 + NUM_RECORDS, dtype=float) / (2.0 + records["y"].mean())}


WRONG_UPDATES = {
    "normal": update_without_prior,
    "normal, variance": update_with_whole_degrees,
    "regression": update_by_least_squares,
    "regression, joint": update_without_the_half,
    "regression, covariates": update_without_the_shift,
    "categorical": update_without_concentration,
    "naive Bayes": update_with_shifted_levels,
    "exponential": update_by_the_mean,
}


def noise_at_the_lower_ends(key: jax.Array, parameters: dict, records: dict) -> jax.Array:
    edges = all_edges(cell_edges(parameters["probabilities"]))
    return edges[records["cell"]] + 1e-3 * jax.random.uniform(key, records["cell"].shape, float)


def noise_in_the_units_of_the_records(key: jax.Array, parameters: dict, records: dict) -> jax.Array:
    return (records["y"] - parameters["mean"]) / jnp.sqrt(1.0)


WRONG_NOISES = {"categorical": noise_at_the_lower_ends, "normal, variance": noise_in_the_units_of_the_records}
