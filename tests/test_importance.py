"""Importance sampling agrees with closed forms, and says when it cannot be trusted."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dpjax.importance import fit_pareto_shape, importance_sample, pareto_khat
from dpjax.mechanisms import Gaussian, RandomizedResponse
from dpjax.models import NormalPrior, categorical, normal
from dpjax.release import LocalRelease, Release
from tests.tools.conjugate import MODEL, Bounded, exact_posterior, release_of

RELEASE, EXACT = release_of(), exact_posterior()


@pytest.fixture(scope="module")
def sample():
    return importance_sample(jax.random.key(2), MODEL, RELEASE, 40_000)


@pytest.mark.keys
def test_agrees_with_the_exact_posterior(sample):
    row = sample.summary()["mean"]
    assert abs(row["mean"] - EXACT.mean) < 5 * row["se_mean"]
    assert abs(row["sd"] - EXACT.sd) < 5 * row["se_sd"]
    for level, score in (
        ("2.5%", -1.959964),
        ("25%", -0.6744898),
        ("50%", 0.0),
        ("75%", 0.6744898),
        ("97.5%", 1.959964),
    ):
        assert abs(row[level] - (EXACT.mean + score * EXACT.sd)) < 5 * row[f"se_{level}"]
    assert row["se_mean"] < 0.05 * EXACT.sd


def test_agrees_with_the_marginal_likelihood(sample):
    error = sample.log_marginal_likelihood_error
    assert 0 < error < 0.05
    assert abs(sample.log_marginal_likelihood - EXACT.log_marginal_likelihood) < 5 * error


def test_another_posterior_is_told_apart(sample):
    row = sample.summary()["mean"]
    assert abs(row["mean"] - EXACT.mean - 0.5 * EXACT.sd) > 5 * row["se_mean"]
    assert abs(row["sd"] - 1.2 * EXACT.sd) > 5 * row["se_sd"]


@pytest.mark.x64
def test_agrees_with_the_published_normal_mean():
    """A mean of n = 100 released with sd 1/3; exact conjugate posterior N(-2.03625, 0.34286²)."""
    release = Release(jnp.array([-209.790152549339]), Gaussian(100 / 3), lambda record: record["y"][None], n=100)
    model = normal(mean_prior=NormalPrior(0.0, 2.0), variance=1.0)
    row = importance_sample(jax.random.key(3), model, release, 20_000).summary()["mean"]
    assert abs(row["mean"] + 2.0362484474996503) < 5 * row["se_mean"]
    assert abs(row["sd"] - 0.3428584267330787) < 5 * row["se_sd"]
    quantiles = {
        "2.5%": -2.7082386156925495,
        "25%": -2.2675029420994663,
        "50%": -2.0362484474996503,
        "97.5%": -1.364258279306751,
    }
    for level, value in quantiles.items():
        assert abs(row[level] - value) < 5 * row[f"se_{level}"]


def test_quantiles_are_those_asked_for(sample):
    row, usual = sample.summary(quantiles=(0.25, 0.4))["mean"], sample.summary()["mean"]
    assert list(row) == ["mean", "sd", "se_mean", "se_sd", "25%", "se_25%", "40%", "se_40%"]
    assert row["25%"] == usual["25%"] < row["40%"] < usual["50%"]


def test_weights(sample):
    weights = np.exp(sample.log_weights)
    assert weights.sum() == pytest.approx(1)
    assert sample.effective_sample_size == pytest.approx(1 / np.sum(weights**2))
    assert sample.pareto_khat < 0.5
    assert sample.draws["mean"].shape == (40_000,)
    np.testing.assert_allclose(sample.draws["squared"], sample.draws["mean"] ** 2, rtol=1e-6)


def test_resampling_has_the_weighted_law(sample):
    draws = np.asarray(sample.resample(jax.random.key(4), 4_000)["mean"])
    assert abs(draws.mean() - EXACT.mean) < 5 * EXACT.sd * np.sqrt(1 / 4_000 + 1 / sample.effective_sample_size)
    assert draws.shape == (4_000,)


def test_draws_do_not_depend_on_the_batch(monkeypatch):
    whole = importance_sample(jax.random.key(2), MODEL, RELEASE, 500)
    monkeypatch.setattr("dpjax.models.simulation.BATCH_BYTES", 7 * 20 * 16)
    part = importance_sample(jax.random.key(2), MODEL, RELEASE, 500)
    np.testing.assert_allclose(part.draws["mean"], whole.draws["mean"], rtol=1e-5)
    np.testing.assert_allclose(part.log_weights, whole.log_weights, rtol=1e-4)


def test_a_local_release_of_two_records():
    """With a uniform prior on (p, 1 - p) and values 0, 0 kept with 0.8: p has density ∝ (0.2 + 0.6 p)², mean 0.6226."""
    release = LocalRelease(np.array([0, 0]), RandomizedResponse(keep=0.8, num_categories=2), field="cell")
    result = importance_sample(jax.random.key(5), categorical(concentration=np.ones(2)), release, 20_000)
    grid = (np.arange(100_000) + 0.5) / 100_000
    density = (0.2 + 0.6 * grid) ** 2
    row = result.summary()["probabilities[0]"]
    assert abs(row["mean"] - np.average(grid, weights=density)) < 5 * row["se_mean"]
    assert abs(result.log_marginal_likelihood - np.log(density.mean())) < 5 * result.log_marginal_likelihood_error


@pytest.mark.parametrize("shape", [-0.5, 0.0, 0.3, 0.7, 1.5])
@pytest.mark.parametrize("size", [100, 10_000])
def test_khat_agrees_with_arviz(shape, size):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        arviz = pytest.importorskip("arviz")
    if not hasattr(arviz, "psislw"):
        pytest.skip("needs the statistics of arviz 0.x")
    uniform = np.random.default_rng(6).uniform(size=size)
    # Inverse cdf of a generalised Pareto law.
    weights = np.expm1(-shape * np.log(uniform)) / shape if shape else -np.log(uniform)
    log_weights = np.log(weights)
    assert pareto_khat(log_weights) == pytest.approx(float(arviz.psislw(log_weights.copy())[1]), rel=1e-8, abs=1e-8)


def test_khat_of_extreme_weights():
    assert pareto_khat(np.zeros(100)) == -np.inf
    assert pareto_khat(np.array([0.0] * 60 + [-1.0] * 40)) == -np.inf
    assert pareto_khat(np.array([0.0, *[-2_000.0] * 99])) == np.inf
    assert pareto_khat(np.array([0.0, *[-np.inf] * 99])) == np.inf


def test_unequal_weights_are_reported():
    with pytest.warns(UserWarning, match=r"Pareto k-hat is .*, above 0.7.*effective sample size.*use dpjax.sample"):
        importance_sample(jax.random.key(2), MODEL, release_of(400.0), 300)


@jax.tree_util.register_static
class NoNumberAbove:
    """Noise whose density is no number at sums above 0."""

    def log_density(self, value, statistic):
        return jnp.sum(jnp.where(statistic > 0, jnp.nan, -jnp.square((value - statistic) / 20)))


@pytest.mark.filterwarnings("ignore:Pareto:UserWarning")
def test_draws_without_a_density_weigh_nothing():
    """They are told of, and would be among the best if their logarithm were taken for 0."""
    broken = Release(RELEASE.value, NoNumberAbove(), RELEASE.statistic, n=20)
    with pytest.warns(UserWarning, match=r"\d+ of 200 draws have a non-finite density") as told:
        sample = importance_sample(jax.random.key(2), MODEL, broken, 200)
    number = int(str(told[0].message).split()[0])
    assert 0 < number < 200
    assert np.sum(np.isneginf(sample.log_weights)) == number


def test_zero_weights_are_an_error():
    narrow = Release(jnp.array([1e4]), Bounded(0.1), RELEASE.statistic, n=20)
    with pytest.raises(ValueError, match="release: given a value of zero density in all of 100 draws"):
        importance_sample(jax.random.key(2), MODEL, narrow, 100)


@pytest.mark.parametrize(
    ("key", "num_samples", "error", "message"),
    [
        (jax.random.PRNGKey, 10, TypeError, "key: given"),
        (jax.random.key, 0, ValueError, "num_samples: given 0; expected a whole number >= 1"),
        (jax.random.key, 1e3, TypeError, "num_samples: given 1000.0 of type float"),
    ],
)
def test_bad_input(key, num_samples, error, message):
    with pytest.raises(error, match=message):
        importance_sample(key(0), MODEL, RELEASE, num_samples)


def test_model_and_release_exchanged():
    with pytest.raises(TypeError, match=r"release: given \w+.*Pass \(model, release\)"):
        importance_sample(jax.random.key(0), RELEASE, MODEL, 10)


def test_tied_weights_have_a_shape():
    """A discrete statistic repeats its weights, and the fit must not divide zero by zero."""
    for size in range(5, 400):
        assert np.isfinite(fit_pareto_shape(np.full(size, 0.3)))
