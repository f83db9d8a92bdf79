"""Models that take any number of records are those that were inspected, at the number of the release."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
from numpyro import distributions as dist

import dpjax
from dpjax.data_augmentation.problem import augment

MANY = 100
KEY = jax.random.key(1)
COVARIATE = np.arange(MANY) >= 60


def with_total(n):
    """A derived quantity of as many records as there are."""
    mean = numpyro.sample("mean", dist.Normal(0.0, 5.0))
    numpyro.deterministic("expected", n * mean)
    with numpyro.plate("records", n):
        numpyro.sample("y", dist.Normal(mean, 1.0))


def with_prior_by_size(n):
    mean = numpyro.sample("mean", dist.Normal(0.0, 5.0 if n < 50 else 0.5))
    with numpyro.plate("records", n):
        numpyro.sample("y", dist.Normal(mean, 1.0))


def with_records_by_size(n):
    mean = numpyro.sample("mean", dist.Normal(0.0, 5.0))
    with numpyro.plate("records", n):
        numpyro.sample("y", dist.Normal(mean, 1.0 if n < 50 else 2.0))


def with_late_covariate(n):
    """A covariate that is the same in the first records."""
    slope = numpyro.sample("slope", dist.Normal(0.0, 1.0).expand([2]).to_event(1))
    with numpyro.plate("records", n):
        numpyro.sample("y", dist.Normal(slope[0] + slope[1] * COVARIATE[:n], 1.0))


def of_any_number(n):
    mean = numpyro.sample("mean", dist.Normal(0.0, 5.0))
    numpyro.deterministic("twice", 2 * mean)
    with numpyro.plate("records", n):
        numpyro.sample("y", dist.Normal(mean, 1.0))


def release_of(n):
    return dpjax.Release([60.0], dpjax.Gaussian(5.0), dpjax.statistics.total("y", -50.0, 50.0), n)


DIFFERENT = {
    with_total: "the values of expected are not those of 5 records",
    with_prior_by_size: "the prior's densities are not those of 5 records",
    with_records_by_size: "the densities of records are not those of 5 records",
    with_late_covariate: "the densities of records are not those of 5 records",
}


@pytest.mark.x64
@pytest.mark.parametrize("function", DIFFERENT, ids=lambda function: function.__name__)
def test_a_model_that_is_another_one_at_the_number_of_the_release_is_refused(function):
    model, release = dpjax.from_numpyro(function, ["y"]), release_of(MANY)
    message = f"release: given n = {MANY}, where {DIFFERENT[function]}.*Pass n={MANY} to dpjax.from_numpyro"
    calls = (dpjax.sample, dpjax.sample_clt, dpjax.sample_smc, partial(dpjax.importance_sample, num_samples=100))
    for call in calls:
        with pytest.raises(ValueError, match=message):
            call(KEY, model, release)
    augment(dpjax.from_numpyro(function, ["y"], n=MANY), release)


@pytest.mark.x64
def test_a_model_of_any_number_is_taken_at_each():
    model = dpjax.from_numpyro(of_any_number, ["y"])
    for n in (1, 5, MANY):
        augment(model, release_of(n))
    augment(model, release_of(dpjax.UnknownCount(dpjax.models.PoissonCount(80.0))))
    # Counts stand for more records than there is memory for.
    model.check_number(10**9)


@pytest.mark.x64
def test_derived_quantities_are_those_of_the_number_that_was_passed():
    model = dpjax.from_numpyro(with_total, ["y"], n=MANY)
    settings = {"num_chains": 1, "num_warmup": 20, "num_samples": 20, "progress": False}
    draws = dpjax.sample(KEY, model, release_of(MANY), **settings).draws
    np.testing.assert_allclose(draws["expected"], MANY * draws["mean"], rtol=1e-6)


@pytest.mark.x64
def test_covariates_of_the_number_that_was_passed_are_read():
    """Both coefficients of a covariate that the first records lack, against the conjugate posterior."""
    model = dpjax.from_numpyro(with_late_covariate, ["y"], n=MANY)
    posterior = dpjax.sample_clt(KEY, model, release_of(MANY), num_chains=2, num_samples=500, progress=False)
    weights = jnp.array([MANY, np.sum(COVARIATE)], float)
    expected = weights * 60.0 / (weights @ weights + MANY + 25.0)
    sd = np.sqrt(1 - weights**2 / (weights @ weights + MANY + 25.0))
    drawn = posterior.draws["slope"]
    error = np.asarray(sd) / np.sqrt(dpjax.diagnostics.ess_bulk(drawn))
    assert np.all(np.abs(drawn.mean(axis=(0, 1)) - expected) < 4 * error)


def test_within_another_program_nothing_is_compared():
    model = dpjax.from_numpyro(of_any_number, ["y"])

    @jax.jit
    def density(value):
        model.check_number(MANY)
        return value

    assert density(1.0) == 1.0
