"""Maximum likelihood with the records summed out: against closed forms, and maxima found by SciPy on sums in NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pandas as pd
import pytest
from scipy import optimize, special, stats

import dpjax
from dpjax import models
from dpjax.data_augmentation.summed_out import sum_out
from dpjax.likelihood import MaximumLikelihood

KEY = jax.random.key(1)
VALUES = stats.norm.ppf((np.arange(25) + 0.5) / 25, 1.0, np.sqrt(5.0))
NORMAL = models.normal(models.NormalPrior(0.0, 2.0), models.InverseGammaPrior(2.0, 2.0))
KEPT = dpjax.RandomizedResponse(keep=0.75, num_categories=2)


def fit(model: dpjax.Model, release: dpjax.LocalRelease, **settings) -> MaximumLikelihood:
    return dpjax.maximum_likelihood(KEY, model, release, progress=False, **settings)


def tolerance() -> float:
    """In standard errors: rounding, and next to nothing else."""
    return 1e-3 if jnp.zeros(()).dtype == np.float32 else 1e-6


@pytest.fixture(scope="module")
def normal() -> MaximumLikelihood:
    return fit(NORMAL, dpjax.LocalRelease(VALUES, dpjax.Gaussian(1.0), field="y"))


def test_normal_estimates_have_their_closed_forms(normal: MaximumLikelihood) -> None:
    """The noise takes its part of the variance. Monte Carlo errors were 0.004; here there are none."""
    total = VALUES.var()
    assert normal.method == "records summed out"
    assert normal.remarks == ()
    expected = {"mean": (VALUES.mean(), np.sqrt(total / 25)), "variance": (total - 1, total * np.sqrt(2 / 25))}
    for name, (estimate, error) in expected.items():
        assert abs(normal.estimate[name] - estimate) < tolerance() * error
        assert normal.standard_errors[name] == pytest.approx(error, rel=tolerance())
        assert normal.mcse_estimate[name] == normal.mcse_standard_errors[name] == 0
    assert normal.log_likelihood == pytest.approx(stats.norm.logpdf(VALUES, 1.0, np.sqrt(total)).sum(), rel=1e-5)
    assert normal.log_likelihood_error == 0


def test_profile_intervals_have_their_closed_form(normal: MaximumLikelihood) -> None:
    """At a mean of m the profile falls by n / 2 log(1 + (m − estimate)² / variance)."""
    found, total = normal.confidence_interval(0.9, "profile"), VALUES.var()
    reach = np.sqrt(total * np.expm1(stats.chi2.ppf(0.9, 1) / 25))
    assert found.upper["mean"] == pytest.approx(VALUES.mean() + reach, abs=2e-3)
    assert found.lower["mean"] == pytest.approx(VALUES.mean() - reach, abs=2e-3)


def test_rows_have_the_names_of_levels() -> None:
    """They were numbers in every table and remark of a fit, beside the names of the same posterior's summary."""
    people = pd.DataFrame({"religion": ["none", "old", "new"] * 4})
    released = dpjax.LocalRelease(np.tile([9, 14, 20], 4), dpjax.DiscreteLaplace(1.0), field="y")
    found = fit(models.formula("y ~ religion", people, family="poisson"), released)
    rows = ("Intercept", "religion[none]", "religion[old]")
    assert found.rows == found.summary().rows == found.confidence_interval().summary().rows == rows


EXPOSURE = np.array([2.0, 0.5, 8.0, 3.0, 20.0])
RELEASED = np.array([7, -2, 31, 40, 66])
"""The fourth is far from what the others tell."""

NUMBERS = np.arange(300)


def cases(exposure=None, y=None):
    rate = numpyro.sample("rate", dist.Gamma(2.0, 1.0))
    with numpyro.plate("areas", len(exposure)):
        numpyro.sample("y", dist.Poisson(exposure * rate), obs=y)


def log_likelihood(rate: float) -> float:
    of_noise = stats.dlaplace.logpmf(RELEASED[:, None] - NUMBERS, 0.5)
    return float(special.logsumexp(stats.poisson.logpmf(NUMBERS, EXPOSURE[:, None] * rate) + of_noise, axis=1).sum())


COUNTS = dpjax.LocalRelease(RELEASED, dpjax.DiscreteLaplace(2.0), field="y")


def check_counts(found: MaximumLikelihood) -> None:
    best = optimize.minimize_scalar(lambda rate: -log_likelihood(rate), (2.0, 4.0), options={"xtol": 1e-9})
    step = 1e-3
    second = (log_likelihood(best.x + step) + log_likelihood(best.x - step) + 2 * best.fun) / step**2
    error = 1 / np.sqrt(-second)
    assert abs(found.estimate["rate"] - best.x) < max(tolerance(), 1e-4) * error
    assert found.standard_errors["rate"] == pytest.approx(error, rel=1e-3)
    assert found.log_likelihood == pytest.approx(-best.fun, rel=1e-5)


def test_counts_in_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the first windows leave out what matters: they are fitted to the estimate, and the climb goes on."""
    model = dpjax.from_numpyro(cases, ["y"], exposure=EXPOSURE)
    found = fit(model, COUNTS)
    assert found.remarks == ()
    check_counts(found)
    monkeypatch.setattr("dpjax.data_augmentation.summed_out.windows.DECAY", 3.0)
    narrow = dpjax.marginal_likelihood(model, COUNTS)
    assert float(narrow.left_out({"rate": jnp.asarray(3.0)})) > 1e-3
    check_counts(fit(model, COUNTS, initial={"rate": 2.0}))


@pytest.mark.x64
def test_windows_that_stay_too_narrow_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpjax.data_augmentation.summed_out.windows.DECAY", 3.0)
    monkeypatch.setattr("dpjax.likelihood.summed.sum_out", lambda model, release, near: sum_out(model, release))
    with pytest.warns(UserWarning, match="may leave out a share of .* of the likelihood"):
        fit(dpjax.from_numpyro(cases, ["y"], exposure=EXPOSURE), COUNTS, initial={"rate": 2.0})


@pytest.mark.x32
def test_randomized_response_has_its_closed_form_and_the_bootstrap_its_spread() -> None:
    answered, model = np.repeat([1, 0], [180, 220]), models.categorical(np.ones(2))
    found = fit(model, dpjax.LocalRelease(answered, KEPT))
    error = np.sqrt(0.45 * 0.55 / 400) / 0.5
    assert abs(found.estimate["probabilities"][1] - 0.4) < tolerance() * error
    np.testing.assert_allclose(found.standard_errors["probabilities"], error, rtol=1e-4)
    ends = found.confidence_interval(0.68, "bootstrap", num_refits=100)
    half = (ends.upper["probabilities"] - ends.lower["probabilities"]) / (2 * stats.norm.ppf(0.84))
    np.testing.assert_allclose(half, error, rtol=0.3)
    # As microdata, of which maximum likelihood takes what can be summed out; and where answers tell nothing.
    people = dpjax.Microdata({"cell": (answered, KEPT)})
    np.testing.assert_allclose(fit(model, people).estimate["probabilities"][1], 0.4, rtol=1e-4)
    coin = dpjax.RandomizedResponse(keep=0.5, num_categories=2)
    with pytest.warns(UserWarning, match="next to nothing of probabilities"):
        fit(model, dpjax.LocalRelease(answered, coin))


def ridge(exposure=None, y=None):
    rate = numpyro.sample("rate", dist.Gamma(2.0, 1.0))
    scale = numpyro.sample("scale", dist.LogNormal(0.0, 1.0))
    with numpyro.plate("areas", len(exposure)):
        numpyro.sample("y", dist.Poisson(exposure * rate * scale), obs=y)


@pytest.mark.x64
def test_a_ridge_is_told_and_does_not_move_what_is_known() -> None:
    with pytest.warns(UserWarning, match="next to nothing of"):
        found = fit(dpjax.from_numpyro(ridge, ["y"], exposure=EXPOSURE), COUNTS)
    best = optimize.minimize_scalar(lambda rate: -log_likelihood(rate), (2.0, 4.0))
    assert found.estimate["rate"] * found.estimate["scale"] == pytest.approx(best.x, rel=1e-3)


@pytest.mark.filterwarnings("ignore")
def test_imputation_stays_a_choice() -> None:
    release = dpjax.LocalRelease(VALUES, dpjax.Gaussian(1.0), field="y")
    settings = {"num_chains": 8, "num_steps": 64}
    for choice in ({"method": "imputation"}, {"imputation": dpjax.imwg()}):
        assert fit(NORMAL, release, **settings, **choice).method == "imputation of records"
    people = dpjax.Microdata({"y": (VALUES, dpjax.Gaussian(1.0))})
    with pytest.raises(ValueError, match="release: given Microdata whose records are not summed out"):
        fit(NORMAL, people, method="imputation")
