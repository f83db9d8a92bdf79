"""Pseudo-likelihoods of weighted records, by hand; and what cannot be done with weights."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from scipy import stats

import dpjax
from dpjax import models
from dpjax.models import formula
from dpjax.release.weights import weighted_people
from tests.adapters.numpyro.conftest import _ranks_and_types_may_differ

__all__ = ["_ranks_and_types_may_differ"]

IS_SINGLE = jnp.zeros(()).dtype == np.float32
CLOSE = {"rtol": 3e-5} if IS_SINGLE else {"rtol": 1e-11}
N = 96
RNG = np.random.default_rng(7)
GROUP = np.arange(N) % 3
ANSWERS = RNG.integers(0, 2, N)
WEIGHTS = RNG.gamma(2.0, 1.0, N)
NORMAL = models.normal(models.NormalPrior(0.0, 5.0), variance=4.0)
DATA = {"area": np.array(["a", "b", "c"])[GROUP], "w": WEIGHTS}


def test_equal_records_are_one_row_of_the_sum_of_their_weights():
    """Notices weights that grouping drops, or gives to other rows: by randomized answers in three areas."""
    model = formula("y ~ 0 + area", DATA, family="bernoulli")
    release = dpjax.LocalRelease(ANSWERS, dpjax.RandomizedResponse(0.8, 2), "y", weights=WEIGHTS)
    likelihood = dpjax.marginal_likelihood(model, release)
    area = np.array([0.3, -1.0, 0.5])
    yes = 0.2 + 0.6 / (1 + np.exp(-area[GROUP]))
    terms = np.log(np.where(ANSWERS == 1, yes, 1 - yes))
    expected = np.sum(WEIGHTS / WEIGHTS.mean() * terms)
    assert len(likelihood.weights) <= 6
    np.testing.assert_allclose(likelihood({"area": jnp.array(area)}), expected, **CLOSE)
    likelihood.check_is_of(model, release)
    with pytest.raises(ValueError, match="likelihood: given one of another model or release"):
        likelihood.check_is_of(model, dpjax.LocalRelease(ANSWERS, dpjax.RandomizedResponse(0.8, 2), "y"))


def test_weights_of_a_formula_are_those_of_its_records():
    """Notices a formula whose weights do nothing, beside numbers known within intervals, too."""
    sample = {"x": GROUP[:6] * 1.0, "w": WEIGHTS[:6]}
    model = formula("y ~ x", sample, response_mean=0.0, response_sd=3.0, weights="w")
    y = np.array([1.0, 2.0, 0.5, 3.0, 0.5, 1.5])
    limits = dpjax.releases.thresholded_units(np.where(y == 0.5, np.nan, y), dpjax.Exact(), 1.0, field="y")
    parameters = {"Intercept": jnp.array(0.4), "x": jnp.array(0.7), "sigma": jnp.array(1.3)}
    law = stats.norm(0.4 + 0.7 * sample["x"], 1.3)
    terms = np.where(y == 0.5, law.logcdf(1.0), law.logpdf(y))
    found = dpjax.marginal_likelihood(model, limits)(parameters)
    np.testing.assert_allclose(found, np.sum(WEIGHTS[:6] / WEIGHTS[:6].mean() * terms), **CLOSE)
    assert "survey weights" in model.describe()


def test_noise_that_is_not_known_is_weighted():
    """Notices weights that a mechanism with unknown numbers loses."""
    noise = dpjax.Gaussian(dpjax.unknown("tau", dist.HalfNormal(2.0)))
    y, weights = np.array([1.2, 3.4, -0.5]), np.array([0.5, 2.0, 0.5])
    likelihood = dpjax.marginal_likelihood(NORMAL, dpjax.LocalRelease(y, noise, "y", weights=weights))
    expected = np.sum(weights * stats.norm.logpdf(y, 1.0, np.sqrt(4 + 0.49)))
    np.testing.assert_allclose(likelihood({"mean": jnp.array(1.0), "tau": jnp.array(0.7)}), expected, **CLOSE)


def test_largest_pseudo_likelihood_is_at_the_weighted_mean():
    """Notices an estimate that leaves weights out, or says nothing of its intervals."""
    y, weights = np.array([1.0, 4.0, 2.5, -1.0]), np.array([0.5, 2.0, 1.0, 0.5])
    release = dpjax.LocalRelease(y, dpjax.Gaussian(1.0), "y", weights=weights)
    with pytest.warns(UserWarning, match="Records are weighted: intervals and tests of a pseudo-likelihood"):
        fitted = dpjax.maximum_likelihood(jax.random.key(0), NORMAL, release, progress=False)
    np.testing.assert_allclose(fitted.estimate["mean"], np.sum(weights * y) / 4, rtol=1e-4)


def two_hidden():
    mean = numpyro.sample("mean", dist.Normal(0.0, 5.0))
    with numpyro.plate("records", 3):
        x = numpyro.sample("x", dist.Gamma(2.0, 1.0))
        numpyro.sample("y", dist.Normal(mean + x, 1.0))


def test_weighted_records_are_never_imputed():
    """Notices weights that a sampler ignores: each way to impute such records is refused before compilation."""
    key = jax.random.key(0)
    release = dpjax.LocalRelease([1.0, 2.0, 3.0], dpjax.Laplace(1.0), "y", weights=[0.5, 1.0, 1.5])
    for imputation in (dpjax.imwg(), dpjax.soma(2)):
        with pytest.raises(ValueError, match=r"imputation: given one that draws .* survey weights"):
            dpjax.sample(key, NORMAL, release, imputation=imputation)
    with pytest.raises(ValueError, match="collect: given states with records, of records with survey weights"):
        dpjax.sample(key, NORMAL, release, collect=lambda state: state.latent.records)
    with pytest.raises(ValueError, match="survey weights"):
        dpjax.gibbs(NORMAL, release, dpjax.imwg())
    hidden = dpjax.from_numpyro(two_hidden, ["x", "y"])
    weigh = partial(dpjax.importance_sample, num_samples=10)
    for run in (dpjax.sample, dpjax.sample_smc, weigh, dpjax.maximum_likelihood):
        message = "release: given the hidden fields 'x', 'y', of records with survey weights"
        with pytest.raises(ValueError, match=message):
            run(key, hidden, release)
    pair = {"one": NORMAL, "other": NORMAL}
    with pytest.raises(ValueError, match=r"models\['one'\]: given evidence, of records with survey weights"):
        dpjax.compare(key, pair, release)


def test_a_model_with_weights_needs_values_of_single_records():
    """Notices weights of a formula that a noisy sum, or weights of the release, pass over in silence."""
    model = formula("y ~ area", DATA, response_mean=0.0, response_sd=1.0, weights="w")
    total = dpjax.Release([7.0], dpjax.Laplace(1.0), dpjax.statistics.total("y", 0.0, 5.0), n=N)
    with pytest.raises(ValueError, match="release: given survey weights of a model beside a sum"):
        dpjax.sample(jax.random.key(0), model, total)
    twice = dpjax.LocalRelease(np.zeros(N), dpjax.Gaussian(1.0), "y", weights=WEIGHTS)
    with pytest.raises(ValueError, match="weights: given those of the model and of the release"):
        dpjax.sample(jax.random.key(0), model, twice)
    with pytest.raises(ValueError, match="weights: given the column 'v', which data does not have"):
        formula("y ~ area", DATA, response_mean=0.0, response_sd=1.0, weights="v")
    assert weighted_people(NORMAL, twice) is twice
