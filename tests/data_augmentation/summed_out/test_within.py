"""Fields of real numbers that are known within intervals, against SciPy: likelihoods, posteriors and refusals."""

import json
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from scipy import stats

import dpjax
from dpjax import mechanisms, releases

NAN = float("nan")
LIMITS = np.array([1.0, 0.5, 2.0, 1.0, 0.25, 1.5])
MEASURED = np.array([1.7, NAN, 2.6, NAN, 0.9, NAN])
GRID = np.linspace(-4.0, 4.0, 801), np.linspace(0.05, 6.0, 801)


def lab(n, y=None):
    mean = numpyro.sample("mean", dist.Normal(0.0, 1.0))
    spread = numpyro.sample("spread", dist.HalfNormal(1.0))
    with numpyro.plate("samples", n):
        numpyro.sample("y", dist.LogNormal(mean, spread), obs=y)


@pytest.fixture(scope="module")
def concentrations() -> dpjax.LocalRelease:
    return releases.thresholded_units(MEASURED, dpjax.Exact(), LIMITS)


def test_concentrations_below_limits_of_detection_give_the_posterior_of_a_grid(concentrations):
    """Finds limits of one unit used for another, and a sampler that imputes: parameters move alone, by NUTS."""
    posterior = dpjax.sample(
        jax.random.key(0), dpjax.from_numpyro(lab, "y"), concentrations, collect=lambda state: state.latent.records
    )
    mean, spread = (
        grid[tuple(slice(None) if one == axis else None for one in (0, 1))] for axis, grid in enumerate(GRID)
    )
    log_density = stats.norm.logpdf(mean) + stats.halfnorm.logpdf(spread)
    for value, limit in zip(MEASURED, LIMITS, strict=True):
        log_density = log_density + (
            stats.norm.logcdf((np.log(limit) - mean) / spread)
            if np.isnan(value)
            else stats.norm.logpdf((np.log(value) - mean) / spread) - np.log(spread)
        )
    weights = np.exp(log_density - log_density.max())
    weights /= weights.sum()
    table = posterior.summary()
    assert posterior.plan.sums_out
    for name, axis in (("mean", 0), ("spread", 1)):
        share = weights.sum(1 - axis)
        expected = float(share @ GRID[axis])
        deviation = float(np.sqrt(share @ (GRID[axis] - expected) ** 2))
        draws = np.asarray(posterior.draws[name], float)
        assert abs(draws.mean() - expected) < 4.5 * table[name]["mcse_mean"]
        np.testing.assert_allclose(draws.std(), deviation, rtol=0.06)
    records = np.asarray(posterior.collected["y"], float)
    assert np.all(records[..., np.isnan(MEASURED)] <= LIMITS[np.isnan(MEASURED)])
    np.testing.assert_allclose(records[0, 0, ~np.isnan(MEASURED)], MEASURED[~np.isnan(MEASURED)], rtol=1e-6)


def test_one_rule_without_noise_says_so_everywhere(concentrations):
    """Finds words or files that take the rule for noise: describe, JSON, draws, and what was published."""
    text = dpjax.describe(concentrations)
    assert "none, but clamped below at" in text
    assert "Without noise nothing is promised" in text
    again = dpjax.LocalRelease.from_json(concentrations.to_json())
    assert again.channel == concentrations.channel
    assert json.loads(concentrations.to_json())["channel"]["mechanism"]["name"] == "exact"
    drawn = concentrations.sample(jax.random.key(1), {"y": jnp.asarray([1.7, 0.2, 2.6, 1.2, 0.1, 3.0], float)})
    np.testing.assert_allclose(drawn.values, [1.7, 0.5, 2.6, 1.2, 0.25, 3.0], rtol=1e-6)


def test_models_with_an_exact_update_give_way(concentrations):
    """Finds records that are imputed because the model could draw its parameters given them."""
    model = dpjax.models.normal(dpjax.models.NormalPrior(0.0, 5.0), variance=4.0)
    likelihood = dpjax.marginal_likelihood(model, concentrations)
    shown = ~np.isnan(MEASURED)
    expected = stats.norm.logpdf(MEASURED[shown], 0.3, 2.0).sum() + stats.norm.logcdf(LIMITS[~shown], 0.3, 2.0).sum()
    np.testing.assert_allclose(likelihood({"mean": jnp.asarray(0.3)}), expected, rtol=1e-5)
    from dpjax.data_augmentation.problem import augment

    assert augment(model, concentrations, allow_sums=True).plan.sums_out


def test_counts_behind_such_rules_are_summed_over():
    """Finds whole numbers treated as real ones: a count of 5 is rounded to 0 or 10, and one below 3 is 0, 1 or 2."""

    def visits(n, y=None):
        rate = numpyro.sample("rate", dist.Gamma(2.0, 1.0))
        with numpyro.plate("weeks", n):
            numpyro.sample("y", dist.Poisson(rate), obs=y)

    model = dpjax.from_numpyro(visits, "y")
    below = releases.thresholded_units([7, NAN], dpjax.Exact(), 3)
    tens = dpjax.LocalRelease([10, 0], mechanisms.Rounded(dpjax.Exact(), 10.0), "y")
    law = stats.poisson(4.0)
    rounded = np.round(np.arange(40) / 10) * 10
    for release, expected in (
        (below, law.logpmf(7) + law.logcdf(2)),
        (tens, sum(np.log(law.pmf(np.arange(40))[rounded == value].sum()) for value in (10, 0))),
    ):
        found = dpjax.marginal_likelihood(model, release)({"rate": jnp.asarray(4.0)})
        np.testing.assert_allclose(found, expected, rtol=1e-5)


def covariate(n, x=None, y=None):
    slope = numpyro.sample("slope", dist.Normal(0.0, 1.0))
    with numpyro.plate("records", n):
        x = numpyro.sample("x", dist.Normal(0.0, 1.0), obs=x)
        numpyro.sample("y", dist.Normal(slope * x, 1.0), obs=y)


def model_of(law: Any) -> dpjax.Model:
    def program(n, y=None):
        p = numpyro.sample("p", dist.Uniform(0.2, 3.0))
        with numpyro.plate("records", n):
            numpyro.sample("y", law(p), obs=y)

    return dpjax.from_numpyro(program, "y", n=5)


BELOW = mechanisms.Censored(dpjax.Exact(), lower=0.5)
NUMBERS = [0.5, 1.2, 0.7]
REFUSED = {
    "no cdf": (
        lambda: dpjax.sample(
            jax.random.key(0), model_of(lambda p: dist.VonMises(p, 1.0)), dpjax.LocalRelease(NUMBERS, BELOW, "y")
        ),
        r"'y' of VonMises, which has no cdf",
    ),
    "others depend on it": (
        lambda: dpjax.sample(
            jax.random.key(0),
            dpjax.from_numpyro(covariate, ["x", "y"]),
            dpjax.LocalRelease({"x": (NUMBERS, BELOW), "y": (NUMBERS, dpjax.Exact())}),
        ),
        r"the field 'x', known within intervals, on which the distribution of another field depends",
    ),
    "imputed": (
        lambda: dpjax.sample(
            jax.random.key(0),
            model_of(lambda p: dist.Normal(p, 1.0)),
            dpjax.LocalRelease(NUMBERS, BELOW, "y"),
            imputation=dpjax.imwg(),
        ),
        r"imputation: given one that imputes the field 'y', known within intervals",
    ),
    "a sum": (
        lambda: dpjax.Release([0.5], BELOW, dpjax.statistics.total("y"), n=3),
        r"mechanism: given Censored of sums without noise",
    ),
    "drawn anew": (lambda: mechanisms.Truncated(dpjax.Exact(), lower=0.0), r"mechanism: given Exact"),
    "modulo": (lambda: mechanisms.Modulo(dpjax.Exact(), 8.0), r"mechanism: given Exact"),
    "limits of others": (
        lambda: releases.thresholded_units([1.0, NAN], dpjax.Exact(), [0.5, 0.5, 0.5]),
        r"threshold: given shape \[3\]",
    ),
    "below its own limit": (
        lambda: releases.thresholded_units([1.0, 0.7], dpjax.Exact(), [0.5, 0.9]),
        r"values: given 0.7; expected numbers of at least 0.9",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_has_no_closed_form_is_refused_by_name(case):
    """Finds refusals that say nothing of the cause, or records that are imputed where hardly any proposal can be."""
    call, words = REFUSED[case]
    with pytest.raises((TypeError, ValueError), match=words):
        call()


def test_a_number_that_the_model_excludes_is_named():
    """Finds an error of all records that leaves the user to look for the one that has no probability: by its place."""
    rounded = dpjax.LocalRelease([0.3, 0.4, -7.0, 0.2], mechanisms.Rounded(dpjax.Exact(), 0.1), "y")
    model = dpjax.from_numpyro(lab, "y")
    for run in (
        lambda: dpjax.sample(jax.random.key(0), model, rounded, progress=False),
        lambda: dpjax.sample_smc(jax.random.key(0), model, rounded, num_particles=10, num_islands=2, progress=False),
        lambda: dpjax.importance_sample(jax.random.key(0), model, rounded, 100, progress=False),
        lambda: dpjax.maximum_likelihood(jax.random.key(0), model, rounded, progress=False),
    ):
        with pytest.raises(
            ValueError, match=r"density .*, as what was released of record 2 is impossible at all of 64"
        ):
            run()
