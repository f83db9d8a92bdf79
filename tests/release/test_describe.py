"""A release in words, and the promises in it: against enumerated ratios, and refused where nothing is known."""

import itertools
from math import log, tanh

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dpjax
from dpjax import statistics
from dpjax.mechanisms.privacy import Neighbours
from dpjax.mechanisms.promises import Promise
from dpjax.release.describe import Unpromised, compose, local_promise, promise, weakest

VALUES = np.arange(-40.0, 41.0)


def log_ratio(release: dpjax.Release, first: dict, second: dict) -> float:
    """The largest log ratio, over released values, between two data sets."""
    totals = [
        release.total({name: jnp.asarray(field) for name, field in records.items()}) for records in (first, second)
    ]
    grid = jnp.asarray(list(itertools.product(VALUES, repeat=len(totals[0]))))
    densities = [jax.vmap(release.mechanism.log_density, (0, None))(grid, total) for total in totals]
    return float(jnp.max(jnp.abs(densities[0] - densities[1])))


@pytest.mark.x64
@pytest.mark.parametrize("mechanism", [dpjax.Laplace(3.0), dpjax.DiscreteLaplace(2.0)])
@pytest.mark.parametrize("neighbours", ["replace-one", "add-or-remove"])
def test_epsilon_is_the_largest_log_ratio_between_neighbours(mechanism, neighbours: Neighbours):
    release = dpjax.Release([1.0, 3.0], mechanism, statistics.cells("cell", 2), n=4)
    other = {"cell": [1, 0, 1, 1]} if neighbours == "replace-one" else {"cell": [0, 1, 1]}
    found = log_ratio(release, {"cell": [0, 0, 1, 1]}, other)
    assert promise(release, neighbours).epsilon == pytest.approx(found, rel=1e-5)


def test_rho_is_that_of_the_scale_and_the_sensitivity():
    release = dpjax.Release([1.0, 3.0], dpjax.DiscreteGaussian(5.0), statistics.cells("cell", 2), n=4)
    kept = promise(release, "replace-one")
    assert kept.epsilon is None
    assert kept.rho == pytest.approx(2 / (2 * 25.0))


def test_draws_from_a_histogram_promise_what_they_were_calibrated_to():
    histogram = statistics.histogram("y", np.linspace(0, 1, 6))
    weight = dpjax.mechanisms.smoothing_weight(epsilon=1.5, num_draws=3, num_bins=5, n=40)
    release = dpjax.Release([0.2, 0.4, 0.9], dpjax.SmoothedHistogram(weight, num_draws=3), histogram, n=40)
    assert promise(release, "replace-one").epsilon == pytest.approx(1.5)
    with pytest.raises(Unpromised, match="public number"):
        promise(release, "add-or-remove")


@pytest.mark.parametrize(
    ("channel", "epsilon"),
    [
        (dpjax.RandomizedResponse(keep=0.75, num_categories=4), log(9.0)),
        (dpjax.RandomizedResponse(keep=0.1, num_categories=2), log(9.0)),
        (dpjax.RandomizedResponse(matrix=[[0.5, 0.5, 0.0], [0.2, 0.8, 0.0], [0.4, 0.6, 0.0]]), log(2.5)),
    ],
)
def test_a_response_promises_its_largest_log_ratio(channel, epsilon):
    release = dpjax.LocalRelease(jnp.array([1, 0]), channel, field="cell")
    assert local_promise(release).epsilon == pytest.approx(epsilon, rel=1e-6)


def test_a_wavelet_promises_what_it_was_calibrated_to():
    channel = dpjax.HaarWavelet(dpjax.mechanisms.haar_scale(epsilon=2.0, resolution=1), resolution=1)
    assert local_promise(dpjax.LocalRelease(jnp.zeros((2, 3)), channel, field="y")).epsilon == pytest.approx(2.0)


def test_releases_of_the_same_records_add_up():
    counts = dpjax.Release([1.0, 3.0], dpjax.Laplace(4.0), statistics.cells("cell", 2), n=4)
    sums = dpjax.Release([2.0], dpjax.Gaussian(2.0), statistics.total("y", 0.0, 1.0), n=4)
    assert promise(dpjax.joint(counts, counts), "replace-one").epsilon == pytest.approx(1.0)
    both = promise(dpjax.joint(counts, sums), "replace-one")
    assert both.epsilon is None
    assert both.rho == pytest.approx(0.5 * tanh(0.25) + 1 / 8)


def test_no_epsilon_is_promised_where_one_promise_has_none():
    """A promise of ρ alone once counted as ε = 0 among those to different people."""
    promises = [Promise(0.5, 0.1), Promise(None, 0.3), Promise(0.25, 0.2)]
    assert compose(promises) == (None, pytest.approx(0.6))
    assert weakest(promises) == (None, 0.3)
    assert weakest(promises[::2]) == (0.5, 0.2)


def test_nothing_is_known_of_a_function_of_ones_own_beside_others():
    counts = dpjax.Release([1.0, 3.0], dpjax.Laplace(4.0), statistics.cells("cell", 2), n=4)
    own = dpjax.Release([2.0], dpjax.Gaussian(2.0), lambda record: record["y"][None], n=4)
    with pytest.raises(Unpromised, match="a function of your own"):
        promise(dpjax.joint(counts, own), "replace-one")


class Doubled(dpjax.Laplace):
    """A mechanism that calls itself Laplace and is not: what Laplace noise promises must not be said of it."""


@pytest.mark.parametrize(
    ("mechanism", "statistic", "reason"),
    [
        (Doubled(1.0), statistics.total("y", 0.0, 1.0), "Doubled"),
        (dpjax.Laplace(1.0), statistics.total("y"), "without bound"),
        (dpjax.Laplace(1.0), lambda record: record["y"][None], "of your own"),
        (dpjax.Exact(), statistics.total("y", 0.0, 1.0), "as they are"),
        (
            dpjax.Independent((dpjax.Laplace(1.0), dpjax.Laplace(1.0)), (1, 1)),
            statistics.total("y", [0.0, 0.0], [1.0, 1.0]),
            "Which of the mechanisms",
        ),
    ],
)
def test_nothing_is_claimed_that_is_not_known(mechanism, statistic, reason):
    size = 2 if isinstance(mechanism, dpjax.Independent) else 1
    release = dpjax.Release([1.0] * size, mechanism, statistic, n=5)
    with pytest.raises(Unpromised, match=reason):
        promise(release, "replace-one")
    assert "no promise is known" in dpjax.describe(release)


def test_numbers_of_units_are_no_values_of_persons() -> None:
    """Counts of areas with noise were described as values of persons, to whom nothing was promised."""
    units = dpjax.releases.thresholded_units([25, np.nan, 31], dpjax.DiscreteLaplace(2.0), threshold=20)
    lines = dpjax.describe(units).splitlines()
    assert lines[2].startswith("To each record, whatever two values are compared: no promise is known.")
    assert lines[3].startswith("To each person, if records are units such as areas")
    assert lines[3].endswith("by 1: ε = 0.5, and so ρ = 0.1225.")
    exact = dpjax.describe(dpjax.releases.suppressed_units([25, np.nan, 31], limit=10))
    assert "To each person" not in exact


@pytest.mark.parametrize(
    ("statistic", "is_whole"),
    [
        (statistics.total("y", 0.0, 1.0), False),
        (statistics.cells("cell", 2), True),
        (statistics.count(), True),
        (statistics.scaled(statistics.count(), 2.0), True),
        (statistics.scaled(statistics.count(), 0.5), False),
        (statistics.linear(statistics.cells("cell", 2), [[1, 1]]), True),
        (statistics.linear(statistics.cells("cell", 2), [[1, 0.5]]), False),
    ],
)
def test_integer_noise_promises_nothing_of_sums_that_are_not_whole(statistic, is_whole):
    """The fraction of a sum would pass through the noise unchanged: the true ε is infinite."""
    for noise in (dpjax.DiscreteLaplace(2.0), dpjax.Censored(dpjax.DiscreteGaussian(2.0), lower=0.0)):
        text = dpjax.describe(dpjax.Release([1.0] * statistic.dimension, noise, statistic, n=5))
        assert ("on whole-valued sums alone" in text) != is_whole
    assert "whole" not in dpjax.describe(dpjax.Release([1.0] * statistic.dimension, dpjax.Laplace(2.0), statistic, n=5))


@pytest.mark.parametrize("noise", [dpjax.Gaussian, dpjax.DiscreteGaussian, dpjax.Laplace])
def test_a_count_tells_nothing_of_a_record_that_is_replaced(noise):
    """Its sensitivity is 0, of which ρ was refused."""
    release = dpjax.Release([5.0], noise(2.0), statistics.count(), n=5)
    assert promise(release, "replace-one") == (0, 0)
    assert "is replaced: ε = 0, since the sums do not tell one record" in dpjax.describe(release)


def test_noise_on_single_values_promises_nothing_without_their_range():
    text = dpjax.describe(dpjax.LocalRelease(jnp.array([1.0, 2.0]), dpjax.Laplace(1.0), field="y"))
    assert "no promise is known" in text
    kept_all = dpjax.RandomizedResponse(keep=1.0, num_categories=2)
    assert "give them away" in dpjax.describe(dpjax.LocalRelease(jnp.array([1, 0]), kept_all, field="cell"))


def test_what_was_stated_is_repeated():
    privacy = dpjax.Privacy("zcdp", "add-or-remove", rho=0.02)
    noise = dpjax.Censored(dpjax.Gaussian(5.0, privacy=privacy), lower=0.0)
    exact = dpjax.Release([1.0, 3.0], dpjax.Exact(), statistics.cells("other", 2), n=dpjax.UnknownCount(_prior()))
    counts = dpjax.Release([1.0, 3.0], noise, statistics.cells("cell", 2), n=dpjax.UnknownCount(_prior()))
    text = dpjax.describe(dpjax.joint(counts, exact))
    assert "then clamped below at 0 (2 numbers); none, these are exact (2 numbers)" in text
    assert "ρ = 0.02, and so ε = 1.071 at δ = 1e-06; exact sums are not covered" in text
    assert "Stated with the release: zcdp privacy, ρ = 0.02, add-or-remove neighbours." in text
    assert "n is public" not in text


def _prior() -> dpjax.models.UniformCount:
    return dpjax.models.UniformCount(1, 9)


@pytest.mark.parametrize(
    ("statistic", "words"),
    [
        (statistics.gram([-1.0], [1.0], response=(0.0, 2.0)), "the products of (1, x, y), x clamped to -1 to 1"),
        (statistics.histogram("y", [0.0, 1.0, 2.0]), "The counts of `y` in 2 bins from 0 to 2"),
        (statistics.cells(["a", "b"], [2, 3]), "a table of `a` (2) × `b` (3)"),
        (statistics.grouped("cell", [0, 0, 1]), "2 groups of `cell`, categories 0, 1; category 2"),
        (statistics.grouped("cell", [0, 0, 0], 2), "2 groups of `cell`, categories 0, 1, 2; no category"),
        (statistics.grouped("cell", list(range(40))), "the counts of 40 groups of `cell`"),
        (
            statistics.loss_derivatives(statistics.Logistic("age", "smokes"), [0.1, 0.2]),
            "of the loss Logistic of `smokes` given `age`, at 2 published coefficients",
        ),
        (statistics.grouped("cell", [-1, 0, -1]), "the count of category 1 of `cell`"),
        (statistics.grouped("cell", [-1, 0, 0]), "the count of categories 1, 2 of `cell`"),
        (statistics.grouped("cell", [-1, *[0] * 6]), "the count of 6 categories from 1 to 6 of `cell`"),
        (statistics.class_features(2, 1, 2), "1 `features` of 2 levels in each of 2 categories of `class`"),
        (
            statistics.log_composition("share", lower=0.1, dimension=3),
            "the shares `share`, at least 0.1",
        ),
        (statistics.mean("y", 10, 0.0, 5.0), "the sum of `y`, clamped to 0 to 5, times 0.1"),
        (statistics.total("y", lower=0.0), "clamped to 0 to ∞"),
    ],
)
def test_statistics_in_words(statistic, words):
    release = dpjax.Release(jnp.ones(statistic.dimension or 1), dpjax.Laplace(1.0), statistic, n=10)
    assert words.lower() in dpjax.describe(release).lower()


def test_other_things_are_refused():
    with pytest.raises(TypeError, match="release: given 3"):
        dpjax.describe(3)
