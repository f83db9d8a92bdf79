"""Estimates, standard errors, likelihoods and intervals against oracles that share no code with the library."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize, special, stats

import dpjax
from dpjax import models, statistics
from dpjax.likelihood import MaximumLikelihood
from dpjax.likelihood.newton import LEAST_GAP, Constraint, solve
from dpjax.likelihood.surface import Moments
from tests.likelihood.oracles import (
    Truth,
    find_maximum,
    normal_likelihood,
    regression_likelihood,
    responses,
    sums_of_squares,
    table_likelihood,
)

PRECISION = 0.015
"""Monte Carlo error of estimates in standard errors, and of standard errors: a third of what is asked of them below."""

OFF, OFF_ERRORS = 0.05, 0.05


def fit(model: dpjax.Model, release: dpjax.Release, **settings) -> MaximumLikelihood:
    return dpjax.maximum_likelihood(
        jax.random.key(1), model, release, progress=False, **({"precision": PRECISION} | settings)
    )


def off(found: MaximumLikelihood, truth: Truth) -> tuple[float, float]:
    """How far estimates on the unconstrained scale are from the truth, in standard errors; and these, relative."""
    climb = found.fitted.climb
    errors = np.sqrt(np.diag(truth.covariance))
    mine = np.sqrt(np.diag(climb.solution.covariance[0]))
    return np.max(np.abs(climb.vectors[0] - truth.maximum) / errors), np.max(np.abs(mine / errors - 1))


N, VALUE, SCALE = 30, np.array([24.0, 60.0]), np.array([3.0, 6.0])
PRIORS = models.NormalPrior(0.0, 2.0), models.InverseGammaPrior(2.0, 2.0)
RELEASE = dpjax.Release(VALUE, dpjax.Laplace(SCALE), sums_of_squares, N)
LIKELIHOOD = normal_likelihood(VALUE, SCALE, N)


@pytest.fixture(scope="module")
def truth() -> Truth:
    return find_maximum(LIKELIHOOD, np.array([0.8, 0.3]))


@pytest.fixture(scope="module")
def normal() -> MaximumLikelihood:
    return fit(models.normal(*PRIORS), RELEASE)


@pytest.mark.x32
def test_normal_mean_and_variance(normal: MaximumLikelihood, truth: Truth) -> None:
    distance, error = off(normal, truth)
    assert distance < OFF
    assert error < OFF_ERRORS
    assert normal.remarks == ()
    # On the natural scale, by the delta method.
    variance = np.exp(truth.maximum[1])
    expected = variance * np.sqrt(truth.covariance[1, 1])
    assert normal.estimate["variance"] == pytest.approx(variance, abs=OFF * expected)
    assert normal.standard_errors["variance"] == pytest.approx(expected, rel=OFF + OFF_ERRORS)
    np.testing.assert_allclose(np.sqrt(np.diag(normal.covariance)), [*map(float, normal.standard_errors.values())])


def test_the_summary_has_errors_and_the_method(normal: MaximumLikelihood) -> None:
    table = normal.summary()
    assert table.rows == normal.rows == ("mean", "variance")
    assert "imputation of records" in str(table)
    assert table["mean"]["mcse_estimate"] < PRECISION * table["mean"]["se"]


def test_without_louis_second_term_standard_errors_are_too_small(normal: MaximumLikelihood, truth: Truth) -> None:
    climb, surface = normal.fitted.climb, normal.fitted.surface
    found, _ = surface.evaluate(jax.random.key(2), surface.values, climb.vectors, climb.chains, 256)
    mean = Moments(*(leaf.mean(axis=1) for leaf in found))
    none = Constraint(np.zeros((1, 2)), np.zeros(1)), np.full(1, LEAST_GAP)
    errors = np.sqrt(np.diag(truth.covariance))
    right = solve(mean, *none).covariance[0]
    wrong = solve(mean._replace(square=mean.score[:, :, None] * mean.score[:, None]), *none).covariance[0]
    assert np.max(np.abs(np.sqrt(np.diag(right)) / errors - 1)) < 4 * OFF_ERRORS
    assert np.max(np.abs(np.sqrt(np.diag(wrong)) / errors - 1)) > 4 * OFF_ERRORS


def test_the_prior_does_not_enter(truth: Truth, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a strong prior the estimate is the same; if the prior is counted in, it is not."""
    strong = models.normal(models.NormalPrior(0.0, 0.3), PRIORS[1])
    distance, _ = off(fit(strong, RELEASE), truth)
    assert distance < OFF
    counted = strong._replace(
        log_likelihood=lambda parameters, summary: (
            strong.log_likelihood(parameters, summary) + strong.log_prior(parameters)
        )
    )
    distance, _ = off(fit(counted, RELEASE, precision=0.1), truth)
    assert distance > 4 * OFF


@pytest.mark.x32
def test_log_likelihood_within_its_error(normal: MaximumLikelihood, truth: Truth) -> None:
    assert 0 < normal.log_likelihood_error < 0.1
    assert abs(normal.log_likelihood - truth.log_likelihood) < 5 * normal.log_likelihood_error
    assert "log-likelihood" in str(normal.summary())


@pytest.mark.x32
def test_profile_intervals(normal: MaximumLikelihood, truth: Truth) -> None:
    found = normal.confidence_interval(0.9, "profile")
    drop = stats.chi2.ppf(0.9, 1) / 2

    def excess(mean: float) -> float:
        best = optimize.minimize_scalar(
            lambda log_variance: -LIKELIHOOD(np.array([mean, log_variance])), bounds=(-2.0, 3.0), method="bounded"
        )
        return truth.log_likelihood + best.fun - drop

    error, centre = np.sqrt(truth.covariance[0, 0]), truth.maximum[0]
    lower, upper = (optimize.brentq(excess, *sorted((centre, centre + side * 4 * error))) for side in (-1, 1))
    assert abs(found.lower["mean"] - lower) < 5 * found.mcse_lower["mean"] + 0.02 * error
    assert abs(found.upper["mean"] - upper) < 5 * found.mcse_upper["mean"] + 0.02 * error
    # The Wald interval of the variance is another one: the likelihood is skew.
    wald = normal.confidence_interval(0.9)
    assert found.upper["variance"] > wald.upper["variance"] + 5 * found.mcse_upper["variance"]
    assert "90 % intervals, profile" in str(found)


@pytest.mark.x64
def test_bootstrap_intervals(normal: MaximumLikelihood, truth: Truth) -> None:
    """The spread of the estimates of the mean is about its standard error, which 100 refits tell within a fifth."""
    found = normal.confidence_interval(0.68, "bootstrap", num_refits=100)
    width = (found.upper["mean"] - found.lower["mean"]) / (2 * stats.norm.ppf(0.84))
    assert width == pytest.approx(np.sqrt(truth.covariance[0, 0]), rel=0.3)
    assert np.all(found.mcse_lower["mean"] > 0)


@pytest.mark.x32
def test_a_likelihood_ratio_test(normal: MaximumLikelihood, truth: Truth) -> None:
    restricted = fit(models.normal(PRIORS[0], 2.5), RELEASE, precision=0.05)
    found = dpjax.likelihood_ratio_test(normal, restricted)
    best = optimize.minimize_scalar(
        lambda mean: -LIKELIHOOD(np.array([mean, np.log(2.5)])), bounds=(0.0, 2.0), method="bounded"
    )
    exact = 2 * (truth.log_likelihood + best.fun)
    assert found.degrees == 1
    assert abs(found.statistic - exact) < 5 * found.mcse_statistic
    assert found.p_value == pytest.approx(stats.chi2.sf(found.statistic, 1))
    assert found.mcse_p_value > 0
    assert "degrees of freedom 1" in str(found)


COUNTED = np.array([10.0, 5.0, 13.0])


def table_release(value: np.ndarray) -> dpjax.Release:
    return dpjax.Release(value, dpjax.DiscreteLaplace(1.0), statistics.cells("cell", 3), 28)


TABLE = models.categorical(np.ones(3))


@pytest.mark.x64
def test_a_table_by_enumeration() -> None:
    found = fit(TABLE, table_release(COUNTED))
    assert found.method == "imputation of counts"
    likelihood = table_likelihood(COUNTED, 1.0, 28)
    truth = find_maximum(likelihood, np.zeros(2))
    probabilities = special.softmax(np.append(truth.maximum, 0.0))
    slopes = (np.diag(probabilities) - np.outer(probabilities, probabilities))[:, :2]
    errors = np.sqrt(np.diag(slopes @ truth.covariance @ slopes.T))
    assert np.max(np.abs(found.estimate["probabilities"] - probabilities) / errors) < OFF
    np.testing.assert_allclose(found.standard_errors["probabilities"], errors, rtol=OFF_ERRORS)


@pytest.mark.slow
def test_log_likelihood_of_a_table() -> None:
    found = fit(TABLE, table_release(COUNTED), precision=0.05)
    truth = find_maximum(table_likelihood(COUNTED, 1.0, 28), np.zeros(2))
    assert abs(found.log_likelihood - truth.log_likelihood) < 5 * found.log_likelihood_error


@pytest.mark.x64
def test_a_cell_without_records_is_told() -> None:
    with pytest.warns(UserWarning, match=r"hardly falls .* as probabilities\[1\] changes"):
        found = fit(TABLE, table_release(np.array([20.0, -2.0, 9.0])), precision=0.05)
    assert found.estimate["probabilities"][1] < 0.01
    assert found.estimate["probabilities"][0] == pytest.approx(0.697, abs=0.01)
    assert "boundary" in str(found)


@pytest.mark.x64
def test_a_regression_by_plain_simulation() -> None:
    value, scale, n = np.array([20.0, 30.0]), 4.0, 30
    truth = find_maximum(regression_likelihood(value, scale, n), np.array([0.6, 1.0]), step=0.1)
    model = models.linear_regression(
        covariate_mean=[0.0], covariate_cov=[[1.0]], coef_prior=models.NormalPrior(0.0, 2.0), noise_variance=1.0
    )
    found = fit(model, dpjax.Release(value, dpjax.Laplace(scale), responses, n))
    distance, error = off(found, truth)
    assert distance < OFF
    assert error < OFF_ERRORS


def constant(record: dict) -> jax.Array:
    return jnp.ones(1, record["y"].dtype) + 0 * record["y"][None]


@pytest.mark.x64
def test_a_flat_likelihood_is_told() -> None:
    release = dpjax.Release([10.0], dpjax.Laplace(1.0), constant, 10)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = fit(models.normal(PRIORS[0], 1.0), release, precision=0.05, num_steps=512)
    assert any("next to nothing of mean" in remark for remark in found.remarks)
    assert len(told) >= len(found.remarks) > 0


@pytest.mark.x32
def test_imputed_local_values_in_closed_form() -> None:
    """Normal records seen through Normal noise: the mean of the values, and their variance over n."""
    values = stats.norm.ppf((np.arange(25) + 0.5) / 25, 1.0, np.sqrt(5.0))
    release = dpjax.LocalRelease(values, dpjax.Gaussian(1.0), field="y")
    found = fit(models.normal(PRIORS[0], 4.0), release, method="imputation")
    assert found.estimate["mean"] == pytest.approx(1.0, abs=OFF)
    assert found.standard_errors["mean"] == pytest.approx(np.sqrt(5.0 / 25), rel=OFF_ERRORS)
    exact = stats.norm.logpdf(values, 1.0, np.sqrt(5.0)).sum()
    assert abs(found.log_likelihood - exact) < 5 * found.log_likelihood_error + 1e-3


@pytest.mark.x32
def test_a_start_of_ones_own_leads_to_the_same_estimate(truth: Truth) -> None:
    distance, _ = off(fit(models.normal(*PRIORS), RELEASE, initial={"mean": -3.0, "variance": 0.2}), truth)
    assert distance < OFF


def test_equal_keys_give_equal_estimates() -> None:
    model = models.normal(PRIORS[0], 2.5)
    one, other = (fit(model, RELEASE, precision=0.2) for _ in range(2))
    np.testing.assert_array_equal(one.covariance, other.covariance)
