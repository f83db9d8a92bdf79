"""Groups for comparing and criticising models: against sums and leave-one-out posteriors by a grid in NumPy."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
from numpyro import distributions as dist
from scipy import special, stats

import dpjax
from dpjax.posterior.pointwise import pointwise_log_likelihood

SCALE, N = 2.0, 30
EXPOSURE = np.linspace(0.2, 3.0, N)
PUBLISHED = np.array([1, 3, 4, 6, 8, 3, 9, 7, 12, 12, 9, 16, 10, 19, 15, 15, 14, 18, 14, 26])
PUBLISHED = np.concatenate([PUBLISHED, [21, 23, 21, 24, 18, 27, 30, 24, 28, 35]])
NAMES = [f"area {place}" for place in range(N)]
RATES = np.linspace(2.0, 24.0, 2_001)
KEY = jax.random.key(1)


def cases(exposure=None, y=None):
    rate = numpyro.sample("rate", dist.Gamma(2.0, 0.2))
    with numpyro.plate("areas", len(exposure)):
        numpyro.sample("y", dist.Poisson(exposure * rate), obs=y)


def densities(exposure: np.ndarray) -> np.ndarray:
    """log p(published count | rate) [rate, unit], a sum over the counts that there can have been."""
    counts = np.arange(200)
    noise = np.log(np.tanh(0.5 / SCALE)) - np.abs(PUBLISHED[:, None] - counts) / SCALE
    poisson = stats.poisson.logpmf(counts, RATES[:, None, None] * exposure[:, None])
    return special.logsumexp(poisson + noise, axis=-1)


def posterior_of(exposure: np.ndarray) -> dpjax.Posterior:
    """A posterior whose draws are evenly spaced quantiles of the exact one, in random order."""
    log_density = stats.gamma.logpdf(RATES, 2.0, scale=5.0) + densities(exposure).sum(axis=1)
    ends = np.cumsum(np.exp(log_density - special.logsumexp(log_density)))
    levels = np.random.default_rng(1).permutation((np.arange(1_000) + 0.5) / 1_000)
    rates = np.interp(levels, ends, RATES).reshape(4, 250).astype(jnp.zeros(()).dtype)
    model = dpjax.from_numpyro(cases, records="y", exposure=jnp.asarray(exposure, float))
    release = dpjax.LocalRelease(PUBLISHED, dpjax.DiscreteLaplace(SCALE), field="y")
    plan = dpjax.data_augmentation.SweepPlan(dpjax.imwg(), False, None)
    info = {"acceptance_rate": np.ones((4, 250))}
    return dpjax.Posterior({"rate": rates}, info, None, False, model, release, None, None, plan)


@pytest.fixture(scope="module")
def arviz():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("arviz")


@pytest.fixture(scope="module")
def right() -> dpjax.Posterior:
    return posterior_of(EXPOSURE)


@pytest.fixture(scope="module")
def data(arviz, right):
    return right.to_arviz(KEY, groups="all", units=NAMES)


def test_each_unit_has_its_likelihood_of_the_parameters_alone(right: dpjax.Posterior) -> None:
    """By a sum in NumPy; that of all units together, or of imputed counts, is no product over units."""
    found = pointwise_log_likelihood(right)
    assert found.shape == (4, 250, N)
    expected = [np.interp(right.draws["rate"].ravel(), RATES, column) for column in densities(EXPOSURE).T]
    np.testing.assert_allclose(found.reshape(-1, N), np.transpose(expected), atol=2e-4)


def test_units_that_agree_have_the_likelihood_of_their_row() -> None:
    """Equal records are one row of the sums, and are as many observations as there are."""
    model = dpjax.models.categorical(jnp.ones(2))
    release = dpjax.LocalRelease(np.tile([0, 1, 1], 20), dpjax.RandomizedResponse(keep=0.75, num_categories=2))
    shares = np.linspace(0.2, 0.6, 6).reshape(2, 3).astype(jnp.zeros(()).dtype)
    plan = dpjax.data_augmentation.SweepPlan(dpjax.imwg(), False, None)
    draws = {"probabilities": np.stack([1 - shares, shares], axis=-1)}
    info = {"acceptance_rate": np.ones((2, 3))}
    found = pointwise_log_likelihood(dpjax.Posterior(draws, info, None, False, model, release, None, None, plan))
    said = 0.25 + 0.5 * shares[..., None]
    np.testing.assert_allclose(np.exp(found), np.where(np.tile([0, 1, 1], 20), said, 1 - said), rtol=1e-5)


def test_leaving_one_out_is_as_if_the_unit_had_not_been_there(arviz, data) -> None:
    """The predictive density of ten units given the others, each by a posterior of its own."""
    each, prior = densities(EXPOSURE), stats.gamma.logpdf(RATES, 2.0, scale=5.0)[:, None]
    without = prior + each.sum(axis=1, keepdims=True) - each
    exact = special.logsumexp(without + each, axis=0) - special.logsumexp(without, axis=0)
    found = np.asarray(arviz.loo(data, pointwise=True).loo_i)
    np.testing.assert_allclose(found[::3], exact[::3], atol=0.1)
    assert abs(found.sum() - exact.sum()) < 0.1


def test_the_right_model_is_ahead_of_a_wrong_one(arviz, data) -> None:
    """By more than four standard errors, as `arviz.compare` has it; the wrong one knows nothing of the exposure."""
    wrong = posterior_of(np.full(N, EXPOSURE.mean())).to_arviz(groups="log_likelihood")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = arviz.compare({"wrong": wrong, "right": data})
    assert list(table.index) == ["right", "wrong"]
    assert table.loc["wrong", "elpd_diff"] > 4 * table.loc["wrong", "dse"]


@pytest.mark.filterwarnings("ignore")
def test_pictures_of_predictions_have_what_they_need(arviz, data) -> None:
    """Names of units, covariates, and predictions of the posterior and the prior beside what was released."""
    assert list(data["constant_data"]["unit"].values) == NAMES
    np.testing.assert_allclose(data["constant_data"]["exposure"], EXPOSURE, rtol=1e-6)
    assert data["prior"]["rate"].shape == (1, 1_000)
    assert abs(float(data["prior"]["rate"].mean()) - 10.0) < 4 * np.sqrt(50 / 1_000)
    predicted = np.asarray(data["posterior_predictive"]["released"])
    expected = EXPOSURE * float(data["posterior"]["rate"].mean())
    error = np.sqrt((expected + 2 * np.exp(-0.5) / (1 - np.exp(-0.5)) ** 2) / 1_000)
    assert np.all(np.abs(predicted.mean(axis=(0, 1)) - expected) < 5 * error)
    assert data["prior_predictive"]["released"].shape == (1, 1_000, N)
    arviz.waic(data)
    arviz.plot_ppc(data)
    arviz.plot_loo_pit(data, y="released")


def test_groups_are_made_if_they_are_asked_for(arviz, right: dpjax.Posterior) -> None:
    """What takes a key says so, and what there is not says what there is in its place."""
    assert "log_likelihood" not in right.to_arviz()
    with pytest.raises(TypeError, match=r"^key: given None; .* posterior_predictive is drawn"):
        right.to_arviz(groups=["posterior_predictive"])
    with pytest.raises(ValueError, match=r"^groups: given 'loo'; expected one of"):
        right.to_arviz(groups="loo")
    with pytest.raises(ValueError, match=r"^units: given 2 names"):
        right.to_arviz(units=["a", "b"])


def test_a_sum_is_one_observation(arviz, posterior) -> None:
    """ArviZ said that it found no log likelihood, and not why there is none."""
    with pytest.raises(ValueError, match=r"^release: given a sum over all records.*dpjax\.compare"):
        posterior.to_arviz(groups="log_likelihood")
    data = posterior.to_arviz(KEY, groups="all")
    assert set(data["posterior_predictive"]) == {"released"}
    with pytest.raises(ValueError, match=r"^groups: given 'constant_data' of a model without"):
        posterior.to_arviz(groups="constant_data")


def test_covariates_of_a_formula_have_the_names_of_terms() -> None:
    """Groups are shown by their names, and offsets are beside them."""
    areas = {"state": list("BBA"), "poverty": [0.1, 0.3, 0.2], "people": [9, 7, 8]}
    text = "y ~ poverty + (1 | state) + offset(log(people))"
    columns = dpjax.models.formula(text, areas, family="poisson").known_columns
    assert columns["state"].tolist() == ["B", "B", "A"]
    np.testing.assert_allclose(columns["poverty"], areas["poverty"], rtol=1e-6)
    np.testing.assert_allclose(columns["offset"], np.log(areas["people"]), rtol=1e-6)
