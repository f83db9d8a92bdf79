"""Channels with parameters of their own for each record: each value goes through the channel of its own record."""

import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import dpjax
from dpjax.data_augmentation.records import local
from dpjax.models.simulation import init_latent

SCALES = np.array([0.5, 3.0, 1.2])
VALUES = np.array([4.0, -2.0, 3.0])
TRUTH = np.array([1.0, 2.0, 3.0])
MATRICES = np.array([[[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]], [[0.5, 0.5, 0.0], [0.2, 0.8, 0.0]], [[0.2, 0.2, 0.6]] * 2])
REPORTS = np.array([2, 1, 0])
ORDER = np.array([2, 0, 1])


def of_reports() -> np.ndarray:
    """P(report | category) of each person [3, 2]."""
    return np.stack([MATRICES[person, :, report] for person, report in enumerate(REPORTS)])


def log_matrices() -> Any:
    with np.errstate(divide="ignore"):
        return jnp.log(jnp.asarray(MATRICES))


CASES = {
    "Gaussian": (dpjax.Gaussian(SCALES), stats.norm.logpdf(VALUES, TRUTH, SCALES)),
    "Laplace": (dpjax.Laplace(SCALES), stats.laplace.logpdf(VALUES, TRUTH, SCALES)),
    "discrete Laplace": (dpjax.DiscreteLaplace(SCALES), stats.dlaplace.logpmf(VALUES - TRUTH, 1 / SCALES)),
    "clamped": (
        dpjax.mechanisms.Censored(dpjax.Laplace(SCALES), lower=[4.0, -9.0, -9.0]),
        np.where(
            [True, False, False],
            stats.laplace.logcdf(4 - TRUTH, 0, SCALES),
            stats.laplace.logpdf(VALUES, TRUTH, SCALES),
        ),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_each_value_has_the_density_of_its_own_channel(case: str):
    """Catches channels that are refused, shared by all records, or taken in another order than the values."""
    channel, expected = CASES[case]
    release = dpjax.LocalRelease(VALUES, channel, "y")
    np.testing.assert_allclose(release.log_densities({"y": jnp.asarray(TRUTH)}), expected, rtol=2e-5)
    again = dpjax.from_json(release.to_json())
    np.testing.assert_allclose(again.log_densities({"y": jnp.asarray(TRUTH)}), expected, rtol=2e-5)
    moved = dpjax.LocalRelease(VALUES[ORDER], jax.tree.map(lambda leaf: leaf[ORDER], channel), "y")
    np.testing.assert_allclose(moved.log_densities({"y": jnp.asarray(TRUTH[ORDER])}), expected[ORDER], rtol=2e-5)


def test_each_report_has_the_probability_of_its_own_matrix():
    release = dpjax.LocalRelease(REPORTS, dpjax.mechanisms.LocalChannel(log_matrices()))
    for each in (release, dpjax.from_json(release.to_json())):
        np.testing.assert_allclose(
            jnp.exp(each.log_densities_of_support({"cell": jnp.arange(2)})), of_reports(), rtol=1e-5
        )
    assert (release.channel.num_categories, release.channel.sums.categories) == (3, 2)
    assert "which each record has of its own" in dpjax.describe(release)


def test_coordinates_of_records_have_scales_of_their_own():
    """Catches a scale for each coordinate that is taken for one of each record: here there are as many."""
    values, scales = np.arange(9.0).reshape(3, 3), 1 + np.arange(9.0).reshape(3, 3)
    truth = {"y": jnp.zeros((3, 3))}
    for given in (scales, scales[0]):
        release = dpjax.LocalRelease(values, dpjax.Gaussian(given), "y")
        expected = stats.norm.logpdf(values, 0, given).sum(axis=1)
        np.testing.assert_allclose(release.log_densities(truth), expected, rtol=1e-5)


def test_answers_with_chances_of_their_own():
    """Catches a promise by the first record's channel: it is that of the weakest one."""
    kept = np.array([0.75, 0.9, 0.6])
    release = dpjax.LocalRelease([0, 1, 1], dpjax.RandomizedResponse(kept, 2))
    expected = np.where(np.array([0, 1, 1])[:, None] == np.arange(2), kept[:, None], 1 - kept[:, None])
    np.testing.assert_allclose(jnp.exp(release.log_densities_of_support({"cell": jnp.arange(2)})), expected, rtol=1e-5)
    assert release.channel.promise.local(1).epsilon == pytest.approx(np.log(9))
    drawn = dpjax.LocalRelease(np.zeros(3, int), dpjax.RandomizedResponse(np.array([1.0, 1e-6, 1.0]), 2))
    assert drawn.sample(jax.random.key(1), {"cell": jnp.array([1, 1, 1])}).values.tolist() == [1, 0, 1]


def test_a_range_of_scales_is_described():
    release = dpjax.LocalRelease(np.zeros(9), dpjax.Gaussian(np.arange(1.0, 10.0)), "y")
    assert "Gaussian of standard deviation 1 to 9." in dpjax.describe(release)


def test_parts_and_gaps_keep_their_channels():
    """Catches parts of a field, or people with gaps, that shift the channels of the others."""
    seen = np.array([True, False, True])
    parts = [(VALUES, dpjax.Gaussian(SCALES), seen), (VALUES, dpjax.Laplace(SCALES[::-1]), ~seen)]
    expected = np.where(
        seen, stats.norm.logpdf(VALUES, TRUTH, SCALES), stats.laplace.logpdf(VALUES, TRUTH, SCALES[::-1])
    )
    records = {"y": jnp.asarray(TRUTH)}
    people = dpjax.Microdata({"y": parts})
    for release in (people, dpjax.from_json(people.to_json())):
        np.testing.assert_allclose(release.log_densities(records), expected, rtol=1e-5)
    power = jnp.array(0.5)
    np.testing.assert_allclose(people.tempered(power).log_densities(records), expected / 2, rtol=1e-5)
    gaps = dpjax.releases.estimates([4.0, np.nan, 3.0], [0.5, np.nan, 1.2])
    alone = np.where(seen, stats.norm.logpdf(VALUES, TRUTH, SCALES), 0)
    np.testing.assert_allclose(gaps.log_densities(records), alone, rtol=1e-5)


def test_categories_are_drawn_by_the_channel_of_their_own_record():
    """Catches an exact draw that takes the channel of another record."""
    model = dpjax.models.categorical(concentration=[1.0, 1.0])
    release = dpjax.LocalRelease(REPORTS, dpjax.mechanisms.LocalChannel(log_matrices()))
    parameters = {"probabilities": jnp.array([0.3, 0.7])}
    latent = init_latent(release, {"cell": jnp.zeros(3, int)})
    step = local.build_kernel(model, release)
    keys = jax.random.split(jax.random.key(3), 20_000)
    drawn = jax.jit(jax.vmap(lambda key: step(key, latent, parameters)[0].records["cell"]))(keys)
    weights = of_reports() * [0.3, 0.7]
    expected = weights[:, 1] / weights.sum(axis=1)
    np.testing.assert_allclose(np.mean(drawn, axis=0), expected, atol=4.5 * np.sqrt(0.25 / len(keys)))


def test_normal_records_are_drawn_by_the_noise_of_their_own():
    model = dpjax.models.normal(dpjax.models.NormalPrior(0.0, 5.0), variance=4.0)
    release = dpjax.releases.estimates(VALUES, SCALES)
    latent = init_latent(release, {"y": jnp.zeros(3)})
    step = local.build_kernel(model, release)
    keys = jax.random.split(jax.random.key(4), 20_000)
    drawn = jax.jit(jax.vmap(lambda key: step(key, latent, {"mean": jnp.array(1.0)})[0].records["y"]))(keys)
    precision = 1 / 4 + 1 / SCALES**2
    mean, deviation = (1 / 4 + VALUES / SCALES**2) / precision, precision**-0.5
    np.testing.assert_allclose(np.mean(drawn, axis=0), mean, atol=4.5 * deviation.max() / np.sqrt(len(keys)))
    np.testing.assert_allclose(np.std(drawn, axis=0), deviation, rtol=0.03)


def test_windows_of_counts_span_the_noise_of_their_own():
    """Catches windows that span the noise of the first record for all of them."""
    release = dpjax.LocalRelease([4, 90, 7], dpjax.DiscreteLaplace([0.5, 300.0, 2.0]), "count")
    doublings = local.count_doublings(release)
    low, high, middle = doublings.tolist()
    assert low == 0 <= middle <= 1 < 6 <= high <= 9
    windows = local.draw_windows(jax.random.key(5), release, {"count": jnp.array([3, 80, 9])}, doublings)
    noise = np.array([4, 90, 7]) - np.asarray(windows.candidates)
    expected = stats.dlaplace.logpmf(noise, 1 / np.array([0.5, 300.0, 2.0]))
    np.testing.assert_allclose(windows.log_channel, expected, rtol=1e-4)


def test_estimates_give_the_posterior_of_fay_and_herriot():
    """Catches weights that are not those of the estimates' own standard errors."""
    rng = np.random.default_rng(6)
    errors = np.repeat([0.2, 4.0], 6)
    values = 1.0 + rng.normal(size=12) * np.sqrt(1 + errors**2)
    model = dpjax.models.normal(dpjax.models.NormalPrior(0.0, 5.0), variance=1.0)
    posterior = dpjax.sample(
        jax.random.key(7), model, dpjax.releases.estimates(values, errors), num_samples=2_000, progress=False
    )
    weights = 1 / (1 + errors**2)
    precision = 1 / 25 + weights.sum()
    row = posterior.summary()["mean"]
    assert abs(row["mean"] - np.sum(weights * values) / precision) < 4.5 * row["mcse_mean"]
    assert row["sd"] == pytest.approx(precision**-0.5, rel=0.08)


BAD = {
    "too few": (lambda: dpjax.LocalRelease(VALUES, dpjax.Gaussian([1.0, 2.0]), "y"), "channel.scale: given shape [2]"),
    "coordinates": (
        lambda: dpjax.LocalRelease(np.zeros((3, 2)), dpjax.Gaussian(np.ones((4, 2))), "y"),
        "channel.scale: given shape [4, 2]; expected shape [] or [2] or [3, 2]",
    ),
    "matrices": (
        lambda: dpjax.LocalRelease([0, 1], dpjax.mechanisms.LocalChannel(log_matrices())),
        "channel.log_probabilities: given shape [3, 2, 3]; expected shape [2, 3] or [2, 2, 3]",
    ),
    "a report of another": (
        lambda: dpjax.LocalRelease([0, 2, 0], dpjax.mechanisms.LocalChannel(log_matrices())),
        "values: given the report 2 of record 1",
    ),
    "no standard error": (lambda: dpjax.releases.estimates([1.0, 2.0], [0.1, np.nan]), "standard_errors: given"),
    "shapes": (lambda: dpjax.releases.estimates([1.0, 2.0], [0.1, 0.2, 0.3]), "standard_errors: given shape [3]"),
    "no estimate": (lambda: dpjax.releases.estimates([np.nan], [0.1]), "values: given"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_channels_are_named(case: str):
    build, message = BAD[case]
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        build()


def test_mixtures_refuse_them():
    component = dpjax.mixture.NormalInverseGamma(0.0, 0.25, 3.0, 4.0)
    with pytest.raises(ValueError, match="the same channel for all records"):
        dpjax.mixture.sample(
            jax.random.key(1), VALUES, channel=dpjax.Gaussian(SCALES), component=component, concentration=1.0
        )
