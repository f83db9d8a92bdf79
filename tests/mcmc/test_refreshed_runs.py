"""Runs with refreshes reach what sweeps alone hardly enter, and keep the promises of `sample`."""

import re
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpyro import distributions, plate, sample as site
from scipy import special, stats

import dpjax
from dpjax.data_augmentation.problem import augment, with_refresh
from dpjax.data_augmentation.refresh import PERIOD
from dpjax.diagnostics import ess_mean
from dpjax.mcmc.draws import fill_gaps

NUM_RECORDS, VALUE, SCALES = 100, (80.0, 310.0), (15.0, 60.0)


def normal_records(n=NUM_RECORDS):
    mu, sigma = site("mu", distributions.Normal(0.0, 2.0)), site("sigma", distributions.HalfNormal(2.0))
    with plate("records", n):
        site("y", distributions.Normal(mu, sigma))


def two_sums(record):
    return jnp.stack([record["y"], record["y"] ** 2])


TWO_SUMS = dpjax.Release(VALUE, dpjax.Laplace(np.array(SCALES)), two_sums, NUM_RECORDS)


NODES = (np.arange(40) + 0.5) / 40
MEANS = stats.norm.ppf(NODES)[:, None] / np.sqrt(NUM_RECORDS)
SCATTERS = stats.chi2(NUM_RECORDS - 1).ppf(NODES)[None, :]


def log_likelihood(mu, sigma):
    """log p(value | mu, sigma) by quadrature over the mean of the records and their scatter."""
    mean = mu + sigma * MEANS
    misfit = np.abs(VALUE[0] - NUM_RECORDS * mean) / SCALES[0]
    misfit = misfit + np.abs(VALUE[1] - NUM_RECORDS * mean**2 - sigma**2 * SCATTERS) / SCALES[1]
    return special.logsumexp(-misfit)


@pytest.fixture(scope="module")
def exact():
    """P(sigma < 0.1 | value)."""
    mus, sigmas = np.linspace(-0.5, 2.5, 61), (np.arange(160) + 0.5) / 40
    prior = -(mus[:, None] ** 2 + sigmas**2) / 8
    log_density = prior + np.array([[log_likelihood(mu, sigma) for sigma in sigmas] for mu in mus])
    density = np.exp(log_density - log_density.max()).sum(axis=0)
    return density[sigmas < 0.1].sum() / density.sum()


def deviation(posterior, exact):
    """How many standard errors the share of small draws is off."""
    small = (posterior.draws["sigma"] < 0.1).astype(float)
    return (small.mean() - exact) / np.sqrt(exact * (1 - exact) / float(ess_mean(small)))


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.slow)])
def test_a_scale_near_zero_is_reached(seed, exact):
    assert exact == pytest.approx(0.0071, abs=3e-4)
    model = dpjax.from_numpyro(normal_records, records=("y",))
    posterior = dpjax.sample(jax.random.key(seed), model, TWO_SUMS, num_samples=4_000, progress=False)
    assert ess_mean((posterior.draws["sigma"] < 0.1).astype(float)) > 400
    assert abs(deviation(posterior, exact)) < 4


@pytest.fixture(scope="module")
def rare(run, model, release):
    """A run of which most draws follow no sweep."""
    return run(model, release, num_warmup=320, num_samples=200, thin=1)


def test_reports_of_refreshed_runs_are_whole(rare):
    assert rare.plan.refresh
    rates = r"refreshes: on, \d+ sweeps? and \d+ refresh(es)? in 16 steps, 0\.\d+ of them accepted$"
    assert re.search(rates, rare.describe())
    assert "may have been missed" not in rare.describe()
    refused = replace(rare, info=rare.info | {"refresh_acceptance_rate": np.zeros((4, 200))})
    assert refused.describe().endswith("none of them accepted: other modes may have been missed")
    none = replace(rare, refresh=rare.refresh._replace(refreshes=np.int32(0), made=np.int32(600)))
    assert "refreshes: on, none made, as none of 600 was accepted in the warm-up: other modes" in none.describe()
    for name in ("acceptance_rate", "refresh_acceptance_rate", "num_sweeps", "num_refreshes"):
        assert rare.info[name].shape == (4, 200)
        assert np.all(np.isfinite(rare.info[name]))
    assert 0 < rare.info["refresh_acceptance_rate"].mean() < 1
    whole = PERIOD * (200 // PERIOD)
    for name, rate in (("num_sweeps", rare.refresh.sweeps), ("num_refreshes", rare.refresh.refreshes)):
        made = rare.info[name][:, :whole].reshape(4, -1, PERIOD).sum(axis=2)
        np.testing.assert_array_equal(made, int(rate))
    sweeps, rate = rare.info["num_sweeps"], rare.info["acceptance_rate"]
    accepted = (rate * sweeps).sum(axis=1) / sweeps.sum(axis=1)
    np.testing.assert_allclose(rare.info["acceptance_rate_per_record"].mean(axis=1), accepted, rtol=1e-5)


def test_draws_without_a_sweep_have_the_rate_of_the_latest():
    made = np.array([[0, 0, 1, 0, 2], [1, 0, 0, 0, 0]])
    rates = np.array([[0.0, 0.0, 0.5, 0.0, 0.25], [0.75, 0.0, 0.0, 0.0, 0.0]])
    info = {"acceptance_rate": rates, "num_sweeps": made, "num_refreshes": made[::-1], "refresh_acceptance_rate": rates}
    filled = fill_gaps(info)
    np.testing.assert_array_equal(filled["acceptance_rate"], [[0.5, 0.5, 0.5, 0.5, 0.25], [0.75] * 5])
    np.testing.assert_array_equal(filled["num_sweeps"], made)
    plain = {"acceptance_rate": rates}
    assert fill_gaps(plain) is plain


def test_thinned_draws_are_those_of_the_run(run, model, release, rare):
    thinned = run(model, release, num_warmup=320, num_samples=50, thin=4)
    np.testing.assert_array_equal(thinned.draws["mean"], rare.draws["mean"][:, 3::4])
    np.testing.assert_array_equal(thinned.info["num_sweeps"], rare.info["num_sweeps"].reshape(4, 50, 4).sum(axis=2))


def test_without_refreshes_there_are_no_reports_of_them(run, model, release):
    plain = run(model, release, refresh=False, num_warmup=0, num_samples=5)
    assert plain.refresh is None
    assert not [name for name in plain.info if "refresh" in name or name == "num_sweeps"]
    assert "refresh" not in plain.describe()


TABLE = dpjax.models.categorical([1.0, 2.0])
CELLS = dpjax.Release([4.0, 9.0], dpjax.DiscreteLaplace(1.5), dpjax.statistics.cells("cell", 2), 11)
SOME, MANY = (dpjax.LocalRelease(np.zeros(n), dpjax.Laplace(1.0), "y") for n in (20, 60))


@pytest.mark.x32
@pytest.mark.parametrize("refresh", [True, False])
def test_an_unknown_number_is_refreshed_exactly(refresh):
    """Against quadrature over the mean and enumeration of the number, with and without refreshes."""
    value, scale, numbers = np.array([40.0, 14.0]), np.array([6.0, 4.0]), np.arange(5, 31)
    model = dpjax.models.normal(dpjax.models.NormalPrior(0.0, 3.0), variance=1.0)
    unknown = dpjax.UnknownCount(dpjax.models.UniformCount(5, 30))
    release = dpjax.Release(value, dpjax.Laplace(scale), statistics_of_number, unknown)
    means, nodes = np.linspace(-12, 15, 1_001), stats.norm.ppf((np.arange(400) + 0.5) / 400)
    totals = [number * means[:, None] + np.sqrt(number) * nodes for number in numbers]
    misfit = np.array([np.exp(-np.abs(value[0] - total) / scale[0]).mean(axis=1) for total in totals])
    density = misfit * np.exp(-np.abs(value[1] - numbers) / scale[1])[:, None] * np.exp(-(means**2) / 18)
    density /= density.sum()
    posterior = dpjax.sample(jax.random.key(3), model, release, num_samples=4_000, refresh=refresh, progress=False)
    assert (posterior.refresh is not None) == refresh
    drawn = {name: np.asarray(leaf, float) for name, leaf in posterior.draws.items()}
    for draws, exact in (
        (drawn["mean"], density.sum(axis=0) @ means),
        (drawn["mean"] ** 2, density.sum(axis=0) @ means**2),
        ((drawn["mean"] > 5.0).astype(float), density.sum(axis=0)[means > 5.0].sum()),
        (drawn["num_records"], density.sum(axis=1) @ numbers),
    ):
        assert abs(draws.mean() - exact) < 4 * draws.std() / np.sqrt(float(ess_mean(draws)))


def statistics_of_number(record):
    return jnp.stack([record["y"], jnp.ones(())])


def is_refreshed(model, release, choice=None):
    """Whether there are refreshes."""
    return with_refresh(augment(model, release, allow_counts=True), choice).plan.refresh


def test_refreshes_are_on_where_they_may_be_accepted(model, release):
    assert is_refreshed(model, release)
    assert not is_refreshed(model, release, False)
    assert is_refreshed(model, SOME)
    assert not is_refreshed(model, MANY)
    assert is_refreshed(model, MANY, True)


def test_where_refreshes_are_impossible_they_are_off_and_refused_by_name(model, release):
    for one, given, obstacle in (
        (TABLE, CELLS, "which integrates the parameters out"),
        (without_parameters(model), release, "a model without parameters"),
    ):
        assert not is_refreshed(one, given)
        with pytest.raises(ValueError, match=rf"refresh: given True with .*{obstacle}.*Leave refresh out"):
            is_refreshed(one, given, True)
    with pytest.raises(TypeError, match="refresh: given 'on'"):
        is_refreshed(model, release, "on")


def without_parameters(model):
    return model._replace(
        sample_prior=lambda key: {},
        log_prior=lambda parameters: jnp.zeros(()),
        sample_records=lambda key, parameters, n: {"y": jax.random.normal(key, (n,))},
        log_density=lambda parameters, records: jax.scipy.stats.norm.logpdf(records["y"]),
        update=None,
        noncentred=None,
        derived=None,
    )
