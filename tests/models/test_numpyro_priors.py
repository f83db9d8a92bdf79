"""A distribution of NumPyro is taken as the prior of a shipped model, and is the prior that dpjax has of it."""

import pickle
from collections.abc import Callable
from typing import Any

import chex
import jax
import numpy as np
import numpyro.distributions as dist
import pytest

import dpjax
from dpjax import models

FIXED = {"covariate_mean": [0.0], "covariate_cov": [[1.0]]}
PAIRS: dict[str, tuple[Callable[..., dpjax.Model], dict[str, Any], dict[str, Any]]] = {
    "normal": (
        models.normal,
        {"mean_prior": dist.Normal(1, 2.0), "variance": dist.InverseGamma(3.0, 2.0)},
        {"mean_prior": models.NormalPrior(1.0, 2.0), "variance": models.InverseGammaPrior(3.0, 2.0)},
    ),
    "regression": (
        models.linear_regression,
        {"coef_prior": dist.Normal(0.5, 2.0).expand([2]).to_event(1), "noise_variance": 1.5} | FIXED,
        {"coef_prior": models.NormalPrior([0.5, 0.5], [2.0, 2.0]), "noise_variance": 1.5} | FIXED,
    ),
    "categorical": (
        models.categorical,
        {"concentration": dist.Dirichlet(np.array([1.0, 2.5, 2.0]))},
        {"concentration": np.array([1.0, 2.5, 2.0])},
    ),
    "naive Bayes": (
        models.naive_bayes,
        {
            "class_concentration": dist.Dirichlet(np.ones(2)),
            "feature_concentration": dist.Dirichlet(np.full(3, 1.5)).expand([1, 2]),
        },
        {"class_concentration": np.ones(2), "feature_concentration": np.full((1, 2, 3), 1.5)},
    ),
    "Dirichlet": (
        models.dirichlet,
        {"shape_prior": dist.Gamma(2.0, 1.5), "dim": 3},
        {"shape_prior": models.GammaPrior(2.0, 1.5), "dim": 3},
    ),
    "exponential": (
        models.exponential,
        {"rate_prior": dist.Exponential(2.0)},
        {"rate_prior": models.GammaPrior(1.0, 2.0)},
    ),
    "beta": (
        models.beta,
        {"a": dist.Gamma(2.0, 1.0), "b": 1.5},
        {"a": models.GammaPrior(2.0, 1.0), "b": 1.5},
    ),
}


@pytest.mark.x64
@pytest.mark.parametrize("name", PAIRS)
def test_it_is_the_same_model(name: str) -> None:
    build, given, expected = PAIRS[name]
    model, other = build(**given), build(**expected)
    draw = model.sample_prior(jax.random.key(1))
    chex.assert_trees_all_equal(draw, other.sample_prior(jax.random.key(1)))
    np.testing.assert_array_equal(model.log_prior(draw), other.log_prior(draw))
    assert jax.tree.structure(model) == jax.tree.structure(other)


def test_its_log_density_is_that_of_numpyro() -> None:
    prior = dist.Normal(1.0, 2.0)
    model = models.normal(prior, dist.InverseGamma(3.0, 2.0))
    draw = model.sample_prior(jax.random.key(2))
    expected = prior.log_prob(draw["mean"]) + dist.InverseGamma(3.0, 2.0).log_prob(draw["variance"])
    np.testing.assert_allclose(model.log_prior(draw), expected, rtol=1e-5)


def test_it_can_be_pickled() -> None:
    model = pickle.loads(pickle.dumps(models.exponential(dist.Gamma(2.0, 1.0))))
    assert jax.tree.structure(model) == jax.tree.structure(models.exponential(models.GammaPrior(2.0, 1.0)))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: models.normal(mean_prior=dist.Cauchy(0.0, 1.0), variance=1.0), "mean_prior: given a Cauchy distri"),
        (lambda: models.normal(dist.Gamma(1.0, 1.0), 1.0), "mean_prior: given GammaPrior; expected a NormalPrior"),
        (lambda: models.exponential(dist.HalfNormal(1.0)), "prior: given a HalfNormal distribution; expected one of"),
    ],
)
def test_other_families_are_refused_by_name(build: Callable[[], object], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        build()
