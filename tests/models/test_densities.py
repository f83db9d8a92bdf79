"""Densities of records and priors against SciPy, constants included."""

import jax
import numpy as np
import pytest
from scipy import stats

from dpjax import models
from tests.models.cases import CASES, COEF_PRIOR, COVARIANCE, COVARIATES, FEATURES, INVERSE_GAMMA_COEF, draw

pytestmark = pytest.mark.x64


def regression_log_density(parameters: dict, records: dict) -> np.ndarray:
    x, y = np.asarray(records["x"]), np.asarray(records["y"])
    mean = parameters.get("covariate_mean", COVARIATES["covariate_mean"])
    covariance = parameters.get("covariate_cov", COVARIANCE)
    coef = np.asarray(parameters["coef"])
    scale = np.sqrt(parameters.get("variance", 2.0))
    response = stats.norm.logpdf(y, coef[0] + x @ coef[1:], scale)
    return response + stats.multivariate_normal.logpdf(x, np.asarray(mean), np.asarray(covariance))


def naive_bayes_log_density(parameters: dict, records: dict) -> list:
    classes, features = np.log(parameters["class_probabilities"]), np.log(parameters["feature_probabilities"])
    return [
        classes[i] + sum(features[k, i, level] for k, level in enumerate(row))
        for i, row in zip(np.asarray(records["class"]), np.asarray(records["features"]), strict=True)
    ]


RECORD_LAWS = {
    "normal": lambda p, r: stats.norm.logpdf(r["y"], p["mean"], np.sqrt(p.get("variance", 1.5))),
    "regression": regression_log_density,
    "categorical": lambda p, r: np.log(np.asarray(p["probabilities"]))[np.asarray(r["cell"])],
    "naive Bayes": naive_bayes_log_density,
    "dirichlet": lambda p, r: [stats.dirichlet.logpdf(row, np.asarray(p["shape"])) for row in np.asarray(r["share"])],
    "exponential": lambda p, r: stats.expon.logpdf(r["y"], scale=1 / p.get("rate", 2.0)),
    "beta": lambda p, r: stats.beta.logpdf(r["y"], p.get("a", 2.0), p.get("b", 3.0 if "a" in p else 0.5)),
}


@pytest.mark.parametrize("name", CASES)
def test_record_density(name: str) -> None:
    parameters, records = draw(name, seed=1)
    expected = RECORD_LAWS[name.split(",")[0]](parameters, records)
    np.testing.assert_allclose(jax.jit(CASES[name].log_density)(parameters, records), expected, rtol=1e-9, atol=1e-10)


def feature_log_prior(values: np.ndarray) -> float:
    rows = zip(values.reshape(-1, 2), FEATURES.reshape(-1, 2), strict=True)
    return sum(stats.beta.logpdf(first, a, b) for (first, _), (a, b) in rows)


def joint_log_prior(coef: np.ndarray, variance: float) -> float:
    prior = INVERSE_GAMMA_COEF
    covariance = variance * np.linalg.inv(np.asarray(prior.precision))
    law = stats.multivariate_normal(np.asarray(prior.mean), covariance)
    return law.logpdf(coef) + stats.invgamma.logpdf(variance, 4.0, scale=3.0)


def covariate_log_prior(mean: np.ndarray, covariance: np.ndarray) -> float:
    log_mean = stats.multivariate_normal.logpdf(mean, [0.5, -1.0], covariance / 2.0)
    return log_mean + stats.invwishart.logpdf(covariance, 7.0, np.asarray(COVARIANCE))


def coef_log_prior(coef: np.ndarray) -> float:
    return stats.norm.logpdf(coef, COEF_PRIOR.mean, COEF_PRIOR.scale).sum()


LOG_PRIORS = {
    "normal": lambda p: stats.norm.logpdf(p["mean"], 0.5, 2.0),
    "normal, variance": lambda p: (
        stats.norm.logpdf(p["mean"], 0.5, 2.0) + stats.invgamma.logpdf(p["variance"], 4, scale=3)
    ),
    "regression": lambda p: coef_log_prior(p["coef"]),
    "regression, variance": lambda p: coef_log_prior(p["coef"]) + stats.invgamma.logpdf(p["variance"], 4, scale=3),
    "regression, joint": lambda p: joint_log_prior(p["coef"], p["variance"]),
    "regression, covariates": lambda p: (
        coef_log_prior(p["coef"]) + covariate_log_prior(p["covariate_mean"], p["covariate_cov"])
    ),
    "categorical": lambda p: stats.dirichlet.logpdf(p["probabilities"], [2.0, 1.0, 0.5, 3.0]),
    "naive Bayes": lambda p: (
        stats.dirichlet.logpdf(p["class_probabilities"], [2.0, 1.0, 3.0])
        + feature_log_prior(p["feature_probabilities"])
    ),
    "dirichlet": lambda p: stats.gamma.logpdf(p["shape"], [2.0, 3.0, 4.0]).sum(),
    "exponential": lambda p: stats.gamma.logpdf(p["rate"], 3.0, scale=1 / 2.0),
    "exponential, known": lambda p: 0.0,
    "beta": lambda p: stats.gamma.logpdf(p["a"], 4, scale=0.5) + stats.gamma.logpdf(p["b"], 3, scale=1.0),
    "beta, one known": lambda p: stats.gamma.logpdf(p["a"], 4, scale=0.5),
    "beta, known": lambda p: 0.0,
}


@pytest.mark.parametrize("name", CASES)
def test_log_prior(name: str) -> None:
    parameters, _ = draw(name, seed=2)
    expected = LOG_PRIORS[name](jax.tree.map(np.asarray, parameters))
    np.testing.assert_allclose(jax.jit(CASES[name].log_prior)(parameters), expected, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("name", ["categorical", "naive Bayes"])
def test_support_lists_every_record_once(name: str) -> None:
    parameters, _ = draw(name, seed=3)
    log_probabilities = CASES[name].log_density(parameters, CASES[name].support())
    np.testing.assert_allclose(np.exp(log_probabilities).sum(), 1.0, atol=1e-12)


def test_support_is_left_out_where_it_is_too_large_to_list() -> None:
    concentration = np.ones((16, 2, 2))
    assert models.naive_bayes([1.0] * 2, concentration).support is None
    model = models.naive_bayes([1.0] * 2, concentration[:15])
    records = model.support()
    assert records["features"].shape == (2**16, 15)
    assert len(np.unique(np.c_[records["class"], records["features"]], axis=0)) == 2**16
    log_probabilities = jax.jit(model.log_density)(model.sample_prior(jax.random.key(4)), records)
    np.testing.assert_allclose(np.exp(log_probabilities).sum(), 1.0, atol=1e-12)


def test_records_outside_their_range_have_density_zero() -> None:
    outside = {"y": np.array([-0.5, 1.5])}
    assert np.isneginf(CASES["exponential"].log_density({"rate": np.array(2.0)}, outside)[0])
    assert np.all(np.isneginf(CASES["beta, known"].log_density({}, outside)))


def test_densities_reach_the_ends_of_a_beta_law() -> None:
    ends = {"y": np.array([0.0, 1.0])}
    np.testing.assert_allclose(models.beta(1.0, 1.0).log_density({}, ends), [0.0, 0.0], atol=1e-12)


def test_gamma_and_normal_priors_sum_over_entries() -> None:
    value = np.array([0.5, 1.5, 2.5])
    expected = stats.gamma.logpdf(value, 2.0, scale=1 / 3.0).sum()
    np.testing.assert_allclose(models.GammaPrior(2.0, 3.0).log_density(value), expected, atol=1e-10)
    expected = stats.norm.logpdf(value, [0.0, 1.0, 2.0], 2.0).sum()
    np.testing.assert_allclose(models.NormalPrior([0, 1, 2], 2).log_density(value), expected, atol=1e-10)
