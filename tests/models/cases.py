"""One or two models of each kind, with priors that are neither flat nor symmetric."""

from collections.abc import Callable
from functools import cache

import jax
import numpy as np

from dpjax import models
from dpjax.base import Model

COVARIANCE = [[1.0, 0.6], [0.6, 2.0]]
COVARIATES = {"covariate_mean": [0.9, -1.2], "covariate_cov": COVARIANCE}
COEF_PRIOR = models.NormalPrior([0.0, 1.0, -1.0], [2.0, 1.0, 0.5])
INVERSE_GAMMA = models.InverseGammaPrior(4.0, 3.0)
INVERSE_WISHART = models.NormalInverseWishartPrior([0.5, -1.0], 2.0, 7.0, COVARIANCE)
INVERSE_GAMMA_COEF = models.NormalInverseGammaPrior(
    [0.0, 1.0, -1.0], [[1.0, 0.2, 0.0], [0.2, 0.5, 0.1], [0.0, 0.1, 2.0]], 4.0, 3.0
)
FEATURES = 1.5 + np.arange(2 * 3 * 2).reshape(2, 3, 2) / 4

CASES: dict[str, Model] = {
    "normal": models.normal(models.NormalPrior(0.5, 2.0), variance=1.5),
    "normal, variance": models.normal(models.NormalPrior(0.5, 2.0), variance=INVERSE_GAMMA),
    "regression": models.linear_regression(**COVARIATES, coef_prior=COEF_PRIOR, noise_variance=2.0),
    "regression, variance": models.linear_regression(**COVARIATES, coef_prior=COEF_PRIOR, noise_variance=INVERSE_GAMMA),
    "regression, joint": models.linear_regression(**COVARIATES, noise_variance=INVERSE_GAMMA_COEF),
    "regression, covariates": models.linear_regression(
        covariate_prior=INVERSE_WISHART, coef_prior=COEF_PRIOR, noise_variance=2.0
    ),
    "categorical": models.categorical([2.0, 1.0, 0.5, 3.0], shape=(2, 2)),
    "naive Bayes": models.naive_bayes([2.0, 1.0, 3.0], FEATURES),
    "dirichlet": models.dirichlet(models.GammaPrior([2.0, 3.0, 4.0], 1.0), dim=3),
    "exponential": models.exponential(models.GammaPrior(3.0, 2.0)),
    "exponential, known": models.exponential(2.0),
    "beta": models.beta(a=models.GammaPrior(4.0, 2.0), b=models.GammaPrior(3.0, 1.0)),
    "beta, one known": models.beta(a=models.GammaPrior(4.0, 2.0), b=3.0),
    "beta, known": models.beta(a=2.0, b=0.5),
}
LEARNED = [name for name in CASES if not name.endswith(", known")]
UPDATED = [name for name in LEARNED if CASES[name].has("update")]
NONCENTRED = [name for name in CASES if CASES[name].has("noncentred")]
FREE_NOISE = [name for name in NONCENTRED if CASES[name].noncentred.log_density is None]
"""Models whose noise is free of the parameters."""


@cache
def drawer(name: str, n: int) -> Callable[[jax.Array], tuple[dict, dict]]:
    """The compiled joint draw of a case."""

    def draw_both(key: jax.Array) -> tuple[dict, dict]:
        key_parameters, key_records = jax.random.split(key)
        parameters = CASES[name].sample_prior(key_parameters)
        return parameters, CASES[name].sample_records(key_records, parameters, n)

    return jax.jit(draw_both)


def draw(name: str, seed: int, n: int = 50) -> tuple[dict, dict]:
    """Parameters from the prior and n records of a case."""
    return drawer(name, n)(jax.random.key(seed))


def unconstrained(name: str, parameters: dict) -> dict:
    """The parameters on their unconstrained scale."""
    return CASES[name].unconstrain(parameters)
