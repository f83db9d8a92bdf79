"""Moments of a record's contribution: closed forms, quadrature, and records that are each of their own law."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

import dpjax
from dpjax.clt.accuracy import check_errors, measure_errors
from dpjax.clt.inputs import find_source
from dpjax.clt.moments import Source, build_moments, make_points
from dpjax.numerics.quadrature import make_rule
from dpjax.statistics import gram, histogram, scaled, stacked, total

SCORES = Source((False, False), "scores")


REGRESSION = dpjax.models.linear_regression(
    covariate_mean=[0.5, -0.3],
    covariate_cov=[[1.0, 0.8], [0.8, 2.0]],
    coef_prior=dpjax.models.NormalPrior(0.0, 2.0),
    noise_variance=0.5,
)


COEFFICIENTS = {"coef": jnp.array([0.3, 1.0, -2.0])}


GRAM = gram(lower=(-1, -2), upper=(1.5, 1), response=(-2, 3))


NORMAL = dpjax.models.normal(dpjax.models.NormalPrior(0.0, 3.0), 4.0)


def release_of(statistic, d: int, n: int = 10) -> dpjax.Release:
    return dpjax.Release(np.linspace(0.0, 5.0, d), dpjax.Laplace(1.0), statistic, n)


def moments_of(model: dpjax.Model, parameters: dict[str, jax.Array], statistic) -> tuple:
    """As the model has them, in one program."""
    return jax.jit(lambda given: model.statistic_moments(given, statistic))(parameters)


@pytest.mark.parametrize(
    "statistic",
    [
        GRAM,
        gram(lower=(-1, -2), upper=(1.5, 1)),
        stacked(scaled(total("x", [-1, -2], [1, 1]), 3.0), total("y"), total("y", lower=0.0)),
    ],
)
def test_means_of_clamped_statistics_are_those_of_many_records(statistic):
    mean, covariance = moments_of(REGRESSION, COEFFICIENTS, statistic)
    assert covariance is None
    records = REGRESSION.sample_records(jax.random.key(1), COEFFICIENTS, 200_000)
    contributions = np.asarray(jax.vmap(statistic)(records), float)
    error = np.std(contributions, axis=0) / np.sqrt(len(contributions))
    assert np.max(np.abs(np.mean(contributions, axis=0) - mean) / error) < 4.5


@pytest.mark.x64
def test_means_of_statistics_that_are_hardly_clamped_are_those_of_gauss_hermite():
    wide = gram(lower=(-40, -40), upper=(40, 40), response=(-40, 40))
    mean, _ = moments_of(REGRESSION, COEFFICIENTS, wide)
    release = release_of(wide, 9)
    offset, _ = build_moments(REGRESSION, release, SCORES, make_rule(jax.random.key(0), 3, 27))(COEFFICIENTS)
    np.testing.assert_allclose(offset + release.value / release.n, mean, atol=1e-13)


@pytest.mark.x64
def test_a_product_of_clamped_columns_is_that_of_fine_quadrature():
    mean, _ = moments_of(REGRESSION, COEFFICIENTS, GRAM)
    release = release_of(GRAM, 9)
    rule = make_rule(jax.random.key(0), 3, 60**3)
    offset, _ = build_moments(REGRESSION, release, SCORES, rule)(COEFFICIENTS)
    np.testing.assert_allclose(offset + release.value / release.n, mean, atol=2e-3)


def test_a_histogram_of_normal_records_has_its_probabilities():
    statistic = histogram("y", [-1.0, 0.0, 1.0, 9.0])
    mean, covariance = moments_of(NORMAL, {"mean": jnp.array(0.5)}, statistic)
    expected = np.diff([0.0, 0.40129367, 0.59870633, 1.0])
    np.testing.assert_allclose(mean, expected, rtol=1e-5)
    np.testing.assert_allclose(covariance, np.diag(expected) - np.outer(expected, expected), atol=1e-6)


@pytest.mark.parametrize("statistic", [lambda record: record["y"][None] ** 3, total("z")])
def test_moments_of_other_statistics_are_not_known(statistic):
    assert NORMAL.statistic_moments({"mean": jnp.array(0.5)}, statistic) is None


def logistic(n: int, x: np.ndarray) -> None:
    """A yes or no, and a Normal number about it, with known covariates."""
    slope = numpyro.sample("slope", dist.Normal(0.0, 1.0))
    with numpyro.plate("records", n):
        numpyro.sample("y", dist.Bernoulli(logits=slope * x))


def shifted(n: int, x: np.ndarray) -> None:
    slope = numpyro.sample("slope", dist.Normal(0.0, 1.0))
    with numpyro.plate("records", n):
        numpyro.sample("y", dist.Normal(slope * x, 1.0))


def products(record: dict[str, jax.Array]) -> jax.Array:
    value = record["y"].astype(float)
    return jnp.stack([value, record["x"] * value])


@pytest.mark.x32
@pytest.mark.parametrize(
    ("program", "law"),
    [
        (logistic, lambda slope, x: (1 / (1 + np.exp(-slope * x)), np.exp(slope * x) / (1 + np.exp(slope * x)) ** 2)),
        (shifted, lambda slope, x: (slope * x, np.ones_like(x))),
    ],
)
def test_records_of_laws_of_their_own_add_unequal_moments(program, law):
    x = np.linspace(-2.0, 1.0, 7)
    with jax.numpy_dtype_promotion("standard"):  # as NumPyro has it
        check_unequal_moments(program, law, x)


def check_unequal_moments(program, law, x: np.ndarray) -> None:
    model = dpjax.from_numpyro(program, ["y", "x"], n=7, x=x)
    release = dpjax.Release([1.0, 2.0], dpjax.Gaussian(3.0), products, 7)
    source = find_source(model, release)
    rule = make_points(jax.random.key(0), model, source, 32)
    offset, covariance = build_moments(model, release, source, rule)({"slope": jnp.array(0.7)})
    mean, variance = law(0.7, x)
    design = np.stack([np.ones_like(x), x])
    np.testing.assert_allclose(7 * offset + release.value, design @ mean, rtol=1e-4)
    np.testing.assert_allclose(7 * covariance, (design * variance) @ design.T, rtol=1e-4, atol=1e-5)


def test_the_error_of_quadrature_grows_with_the_number_of_records():
    model = NORMAL._replace(statistic_moments=None)
    draws = {"mean": jnp.linspace(-1.0, 1.0, 5)}
    rules = [make_rule(jax.random.key(0), 1, size) for size in (12, 24)]
    found = []
    for n in (100, 10_000):
        release = dpjax.Release([0.3 * n], dpjax.Gaussian(1.0), total("y", -1.0, 1.0), n)
        found.append(measure_errors(model, release, SCORES, *rules, jnp.zeros(1), draws))
    assert found[1].mean == pytest.approx(10 * found[0].mean, rel=0.05)
    assert found[1].variance == pytest.approx(found[0].variance, rel=0.05)
    with pytest.raises(ValueError, match=r"num_points: given 12 points, by which the mean .* Pass more points"):
        check_errors(found[1], 12, "Total")


def poisson(n: int, x: np.ndarray | None = None) -> None:
    """Counts, of equal rates or in proportion to known covariates."""
    rate = numpyro.sample("rate", dist.Gamma(4.0, 2e-4))
    with numpyro.plate("records", n):
        numpyro.sample("y", dist.Poisson(rate if x is None else rate * x))


COUNTS = Source((False, False), "counts")


COVARIATES = [None, np.linspace(0.8, 1.2, 5)]


def count_model(x: np.ndarray | None) -> dpjax.Model:
    return dpjax.from_numpyro(poisson, ["y"] if x is None else ["y", "x"], n=5, x=x)


@pytest.mark.parametrize("x", COVARIATES, ids=["alike", "of known covariates"])
def test_counts_beyond_the_points_are_an_error_and_no_likelihood(x):
    """All weights vanish at either rule: the two agreed, the density was highest there, and draws were the prior's."""
    model = count_model(x)
    release = dpjax.Release([60_000.0], dpjax.Gaussian(300.0), total("y", 0.0, 1e5), 5)
    rules = [make_points(jax.random.key(0), model, COUNTS, 64, refinement) for refinement in (1, 2)]
    far, near = ({"rate": jnp.array([rate, rate])} for rate in (12_000.0, 20.0))
    errors = measure_errors(model, release, COUNTS, *rules, jnp.zeros(1), far)
    assert errors == (np.inf, np.inf)
    with pytest.raises(ValueError, match=r"num_points: given 64 points.* Pass more points\. .* use dpjax.sample"):
        check_errors(errors, 64, "Total")
    assert max(measure_errors(model, release, COUNTS, *rules, jnp.zeros(1), near)) < 1e-3


@pytest.mark.parametrize("x", COVARIATES, ids=["alike", "of known covariates"])
def test_counts_beyond_the_points_add_what_the_last_point_does(x):
    model = count_model(x)
    release = dpjax.Release([100.0], dpjax.Gaussian(3.0), total("y", 0.0, 30.0), 5)
    rule = make_points(jax.random.key(0), model, COUNTS, 64)
    evaluate = jax.jit(build_moments(model, release, COUNTS, rule))
    for rate in (62.0, 3_000.0):  # in part beyond the points, and all
        offset, covariance = evaluate({"rate": jnp.array(rate)})
        np.testing.assert_allclose(offset, 30.0 - 20.0, rtol=2e-2)
        np.testing.assert_allclose(covariance, 0.0, atol=2.0)
