"""Exact updates by successive conditioning: parameters from the prior, records, then an update must change no law.

Twenty thousand independent replicates draw θ from the prior and x from the records' law, and update θ to θ'. A correct
update leaves the joint law of (θ, x) as it was, so for every function g the differences g(θ', x) - g(θ, x) have mean 0.
"""

from collections.abc import Callable
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from scipy import stats

from dpjax.models import InverseGammaPrior
from dpjax.models.linear_algebra import draw_normal
from dpjax.models.simplex import draw_dirichlet
from tests.models.cases import CASES, INVERSE_GAMMA_COEF, INVERSE_WISHART, UPDATED, unconstrained

NUM_REPLICATES = 20_000
NUM_RECORDS = 6
GATE = 5.0  # standard errors; some 200 functions pass together with probability 0.9999


def functions(name: str, parameters: dict, records: dict) -> jax.Array:
    """First and second moments of the unconstrained parameters, and their products with moments of the records."""
    point = ravel_pytree(unconstrained(name, parameters))[0]
    values = ravel_pytree(jax.tree.map(lambda field: jnp.mean(field.astype(float), axis=0), records))[0]
    squares = ravel_pytree(jax.tree.map(lambda field: jnp.mean(field.astype(float) ** 2, axis=0), records))[0]
    features = jnp.arctan(jnp.concatenate([jnp.ones(1), values, squares]))  # bounded, as records may have heavy tails
    upper = jnp.triu_indices(point.size)
    return jnp.concatenate([jnp.outer(point, features).ravel(), jnp.outer(point, point)[upper]])


def replicate(name: str, update: Callable, key: jax.Array) -> tuple[dict, jax.Array]:
    """The updated parameters and the differences that the update makes, for independent replicates."""

    def one(key: jax.Array) -> tuple[dict, jax.Array]:
        key_parameters, key_records, key_update = jax.random.split(key, 3)
        parameters = CASES[name].sample_prior(key_parameters)
        records = CASES[name].sample_records(key_records, parameters, NUM_RECORDS)
        updated = update(key_update, parameters, records)
        return updated, functions(name, updated, records) - functions(name, parameters, records)

    return jax.jit(jax.vmap(one))(jax.random.split(key, NUM_REPLICATES))


def largest_score(differences: jax.Array) -> float:
    """The largest mean difference in its standard errors."""
    values = np.asarray(differences, np.float64)
    return np.max(np.abs(values.mean(axis=0)) / (values.std(axis=0) / np.sqrt(len(values))))


@pytest.mark.parametrize("name", UPDATED)
def test_update_leaves_the_joint_law(name: str) -> None:
    updated, differences = replicate(name, CASES[name].update, jax.random.key(11))
    assert largest_score(differences) < GATE
    fresh = jax.vmap(CASES[name].sample_prior)(jax.random.split(jax.random.key(12), NUM_REPLICATES))
    flat, wanted = (jax.vmap(lambda point: ravel_pytree(point)[0])(part) for part in (updated, fresh))
    assert min(stats.ks_2samp(a, b).pvalue for a, b in zip(flat.T, wanted.T, strict=True)) > 1e-4


def update_without_prior(key: jax.Array, parameters: dict, records: dict) -> dict:
    return {"mean": records["y"].mean() + jax.random.normal(key) * jnp.sqrt(1.5 / NUM_RECORDS)}


def update_with_whole_degrees(key: jax.Array, parameters: dict, records: dict) -> dict:
    residuals = records["y"] - parameters["mean"]
    law = InverseGammaPrior(4.0 + NUM_RECORDS, 3.0 + jnp.sum(residuals**2) / 2)
    return parameters | {"variance": law.sample(key)}


def update_with_squared_noise(key: jax.Array, parameters: dict, records: dict) -> dict:
    design = jnp.concatenate([jnp.ones((1, NUM_RECORDS)), records["x"].T])
    prior = CASES["regression"]
    del prior
    precision, mean = jnp.array([2.0, 1.0, 0.5]) ** -2, jnp.array([0.0, 1.0, -1.0])
    linear = precision * mean + design @ records["y"] / 4.0
    return {"coef": draw_normal(key, jnp.diag(precision) + design @ design.T / 4.0, linear)}


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


WRONG = {
    "normal": update_without_prior,
    "normal, variance": update_with_whole_degrees,
    "regression": update_with_squared_noise,
    "regression, joint": update_without_the_half,
    "regression, covariates": update_without_the_shift,
    "categorical": update_without_concentration,
    "naive Bayes": update_with_shifted_levels,
    "exponential": update_by_the_mean,
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_update_is_found(name: str) -> None:
    _, differences = replicate(name, WRONG[name], jax.random.key(11))
    assert largest_score(differences) > 2 * GATE


@pytest.mark.parametrize("name", ["exponential, known", "beta, known"])
def test_models_without_parameters_have_an_empty_update(name: str) -> None:
    records = CASES[name].sample_records(jax.random.key(13), {}, 5)
    assert CASES[name].update(jax.random.key(14), {}, records) == {}
