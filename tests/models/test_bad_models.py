"""Bad input to models and priors is refused when they are made, by a message that names the argument."""

from collections.abc import Callable
from dataclasses import fields

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dpjax import models
from dpjax.models import GammaPrior, InverseGammaPrior, NormalInverseGammaPrior, NormalInverseWishartPrior, NormalPrior

EYE = np.eye(2)
FLOAT = jnp.zeros(()).dtype
COEF = NormalPrior(0.0, 2.0)
NIG = NormalInverseGammaPrior(0.0, 1.0, 2.0, 2.0)
NIW = NormalInverseWishartPrior([0.0, 1.0], 1.0, 4.0, EYE)


def regression(**changes: object) -> Callable:
    arguments = {"covariate_mean": [0.0, 1.0], "covariate_cov": EYE, "coef_prior": COEF, "noise_variance": 1.0}
    return lambda: models.linear_regression(**(arguments | changes))


BAD: dict[str, tuple[Callable, type[Exception], str]] = {
    "scale of zero": (lambda: NormalPrior(0.0, 0.0), ValueError, "scale: given 0.0"),
    "scale missing": (lambda: NormalPrior(0.0, np.nan), ValueError, "scale: given nan"),
    "mean infinite": (lambda: NormalPrior(np.inf, 1.0), ValueError, "mean: given inf"),
    "mean of text": (lambda: NormalPrior(["a"], 1.0), TypeError, "mean: given an array of"),
    "negative rate": (lambda: GammaPrior(1.0, -1.0), ValueError, "rate: given -1.0"),
    "negative shape": (lambda: InverseGammaPrior(-1.0, 1.0), ValueError, "shape: given -1.0"),
    "indefinite precision": (
        lambda: NormalInverseGammaPrior(0.0, [[1.0, 2.0], [2.0, 1.0]], 1.0, 1.0),
        ValueError,
        "precision: given float64[2, 2]",
    ),
    "vector precision": (lambda: NormalInverseGammaPrior(0.0, [1.0, 2.0], 1.0, 1.0), ValueError, "a square matrix"),
    "few degrees": (lambda: NormalInverseWishartPrior([0.0, 1.0], 1.0, 1.0, EYE), ValueError, "degrees: given 1.0"),
    "asymmetric scale": (
        lambda: NormalInverseWishartPrior([0.0, 1.0], 1.0, 4.0, [[1.0, 0.5], [0.0, 1.0]]),
        ValueError,
        "symmetric positive definite",
    ),
    "normal: variance as prior": (lambda: models.normal(1.0, 1.0), TypeError, "mean_prior: given 1.0"),
    "normal: wrong prior": (
        lambda: models.normal(COEF, GammaPrior(1.0, 1.0)),
        TypeError,
        "variance: given GammaPrior; expected a number or InverseGammaPrior(...)",
    ),
    "normal: negative variance": (lambda: models.normal(COEF, -1.0), ValueError, "variance: given -1.0"),
    "normal: no variance": (lambda: models.normal(COEF, None), TypeError, "variance: given None"),
    "normal: vector variance": (lambda: models.normal(COEF, [1.0, 2.0]), ValueError, "variance: given an array of"),
    "normal: vector mean": (lambda: models.normal(NormalPrior([0.0, 1.0], 1.0), 1.0), ValueError, "mean_prior.mean"),
    "normal: vector prior": (
        lambda: models.normal(COEF, InverseGammaPrior([1.0, 2.0], 1.0)),
        ValueError,
        "variance.shape: given an array of shape [2]; expected one number",
    ),
    "regression: nothing on covariates": (
        regression(covariate_mean=None, covariate_cov=None),
        ValueError,
        "given none of them; expected covariate_mean and covariate_cov, or covariate_prior alone",
    ),
    "regression: half of the covariates": (regression(covariate_cov=None), ValueError, "given covariate_mean;"),
    "regression: all on covariates": (regression(covariate_prior=NIW), ValueError, "covariate_cov, covariate_prior;"),
    "regression: wrong covariate prior": (
        regression(covariate_mean=None, covariate_cov=None, covariate_prior=COEF),
        TypeError,
        "covariate_prior: given NormalPrior",
    ),
    "regression: single mean": (
        regression(covariate_mean=0.0),
        ValueError,
        "covariate_mean: given an array of shape []",
    ),
    "regression: missing mean": (regression(covariate_mean=[0.0, np.nan]), ValueError, "covariate_mean: given float64"),
    "regression: small covariance": (regression(covariate_cov=[[1.0]]), ValueError, "covariate_cov: given an array of"),
    "regression: indefinite": (regression(covariate_cov=-EYE), ValueError, "covariate_cov: given float64[2, 2]"),
    "regression: no coefficients": (regression(coef_prior=None), TypeError, "coef_prior: given None"),
    "regression: short coefficients": (
        regression(coef_prior=NormalPrior([0.0, 1.0], 1.0)),
        ValueError,
        "coef_prior.mean: given an array of shape [2]; expected numbers of shape [3]",
    ),
    "regression: two priors": (
        regression(noise_variance=NIG),
        ValueError,
        "coef_prior: given NormalPrior; expected not",
    ),
    "regression: short joint prior": (
        regression(coef_prior=None, noise_variance=NormalInverseGammaPrior(0.0, EYE, 2.0, 2.0)),
        ValueError,
        "noise_variance.precision: given an array of shape [2, 2]; expected numbers of shape [3, 3]",
    ),
    "regression: text as variance": (regression(noise_variance="one"), TypeError, "noise_variance: given 'one'"),
    "regression: variance of zero": (regression(noise_variance=0.0), ValueError, "noise_variance: given 0.0"),
    "categorical: one cell": (
        lambda: models.categorical([1.0]),
        ValueError,
        "concentration: given an array of shape [1]",
    ),
    "categorical: a ragged table": (
        lambda: models.categorical([[1.0], [1.0, 1.0]]),
        ValueError,
        "concentration: given rows",
    ),
    "categorical: zero": (lambda: models.categorical([1.0, 0.0]), ValueError, f"concentration: given {FLOAT}[2]"),
    "categorical: wrong table": (lambda: models.categorical([1.0] * 5, (2, 2)), ValueError, "shape: given (2, 2)"),
    "categorical: one variable": (lambda: models.categorical([1.0] * 4, (4,)), ValueError, "shape: given (4,)"),
    "categorical: fractions": (lambda: models.categorical([1.0] * 4, (2.0, 2)), TypeError, "shape: given 2.0"),
    "categorical: a number": (lambda: models.categorical([1.0] * 4, 4), TypeError, "shape: given 4"),
    "naive Bayes: one class": (
        lambda: models.naive_bayes([1.0], np.ones((2, 1, 2))),
        ValueError,
        "class_concentration",
    ),
    "naive Bayes: flat": (lambda: models.naive_bayes([1.0, 1.0], np.ones((2, 2))), ValueError, "feature_concentration"),
    "naive Bayes: axes": (
        lambda: models.naive_bayes([1.0, 1.0], np.ones((2, 3, 2))),
        ValueError,
        "feature_concentration: given an array of shape [2, 3, 2]; expected a positive array [K, 2, J]",
    ),
    "naive Bayes: zero": (
        lambda: models.naive_bayes([1.0, 1.0], np.zeros((1, 2, 2))),
        ValueError,
        "feature_concentration: given float64[1, 2, 2]",
    ),
    "dirichlet: number": (lambda: models.dirichlet(1.0, 3), TypeError, "shape_prior: given 1.0"),
    "dirichlet: one share": (lambda: models.dirichlet(GammaPrior(1.0, 1.0), 1), ValueError, "dim: given 1"),
    "dirichlet: fraction": (lambda: models.dirichlet(GammaPrior(1.0, 1.0), 2.5), TypeError, "dim: given 2.5"),
    "dirichlet: size": (lambda: models.dirichlet(GammaPrior([1.0, 2.0], 1.0), 3), ValueError, "shape_prior.shape"),
    "exponential: zero": (lambda: models.exponential(0.0), ValueError, "rate_prior: given 0.0"),
    "exponential: wrong prior": (lambda: models.exponential(COEF), TypeError, "rate_prior: given NormalPrior"),
    "beta: negative": (lambda: models.beta(1.0, -1.0), ValueError, "b: given -1.0"),
    "beta: wrong prior": (lambda: models.beta(InverseGammaPrior(1.0, 1.0), 1.0), TypeError, "a: given InverseGamma"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_named(case: str) -> None:
    make, error, words = BAD[case]
    with pytest.raises(error) as raised:
        make()
    message = str(raised.value)
    assert words in message
    assert "expected" in message
    assert message.endswith(".")


@pytest.mark.parametrize("prior", [COEF, GammaPrior(1.0, 2.0), InverseGammaPrior(1.0, 2.0), NIG, NIW])
def test_priors_survive_tree_transformations(prior: object) -> None:
    stacked = jax.tree.map(lambda leaf: jnp.stack([jnp.asarray(leaf, float)] * 3), prior)
    means = jax.jit(jax.vmap(lambda one: jax.tree.map(jnp.mean, one)))(stacked)
    assert isinstance(means, type(prior))
    assert [leaf.shape for leaf in jax.tree.leaves(means)] == [(3,)] * len(fields(prior))
    jax.tree.map(lambda leaf: object(), prior)


def test_models_may_be_made_of_traced_numbers() -> None:
    def log_density(variance: jax.Array) -> jax.Array:
        model = models.linear_regression(
            covariate_mean=variance * jnp.ones(2),
            covariate_cov=variance * jnp.eye(2),
            coef_prior=NormalPrior(0.0, variance),
            noise_variance=variance,
        )
        return model.log_density({"coef": jnp.zeros(3)}, {"x": jnp.zeros((1, 2)), "y": jnp.zeros(1)})[0]

    variances = jnp.array([0.5, 1.0, 2.0])
    expected = -np.log(2 * np.pi) * 1.5 - 1.5 * np.log(variances) - variances
    np.testing.assert_allclose(jax.jit(jax.vmap(log_density))(variances), expected, rtol=1e-5)
