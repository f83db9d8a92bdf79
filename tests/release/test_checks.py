"""Bad releases and records: each error names the argument, what was given, what was expected and the remedy."""

import re
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dpjax import Microdata, releases, statistics
from dpjax._util.validation import plain
from dpjax.mechanisms import Censored, DiscreteGaussian, DiscreteLaplace, Gaussian, Laplace, RandomizedResponse
from dpjax.release import LocalRelease, Release, mechanism_from_published

TOTAL = statistics.total("y", [0, 0], [1, 1])
KEEP = RandomizedResponse(keep=0.9, num_categories=3)


@pytest.mark.parametrize("read", ["values", "sums", "units", "estimates", "weights", "fields"])
def test_numbers_that_are_objects_are_numbers(read):
    """Decimals of databases, and numbers beside None, were an array of object; None is as NaN."""
    numbers, gaps = [Decimal("1.5"), 2], [Decimal(12), None, Fraction(30)]
    found = {
        "values": lambda: LocalRelease(numbers, Laplace(1.0), "y").values,
        "sums": lambda: Release(numbers, Laplace(1.0), TOTAL, 5).value,
        "units": lambda: releases.suppressed_units(gaps, limit=10).values[::2] / jnp.array([8.0, 15.0]),
        "estimates": lambda: releases.estimates(numbers, [Decimal(1), 2.0]).values,
        "weights": lambda: 1.75 * LocalRelease([0.0, 0.0], Laplace(1.0), "y", weights=numbers).weights,
        "fields": lambda: (
            Microdata({"y": ([1.5, 2, None], Laplace(1.0))}, {"y": np.array([False, False, True])})
            .fields["y"]
            .values[:2]
        ),
    }[read]()
    np.testing.assert_allclose(np.asarray(found), [1.5, 2.0], rtol=1e-6)


def test_kinds_of_objects_stay_apart():
    """Truth values and whole numbers are categories, and no category is half of one; texts are no numbers."""
    assert plain([True, None]).tolist()[0] == 1.0
    assert plain(np.array([True, False], object)).dtype == bool
    assert plain(np.array([1, 2], object)).dtype.kind == "i"
    for value in (["1", None], [None], [10**400, None], [1j, None], [[1], [2, 3]], "1", None, {1.0}):
        assert plain(value) is value


def by_coordinate(record):
    return record["y"]


@dataclass
class NoSum:
    """A user's mechanism that forgot to sum over coordinates, in a class that is no key of a cache."""

    scale: float = 1.0

    def log_density(self, value, statistic):
        return -jnp.abs(value - statistic) / self.scale

    def sample(self, key, statistic):
        del key
        return statistic


class Hashed(NoSum):
    """The same, in a class that can be hashed."""

    __hash__ = object.__hash__


class Unhashable:
    """A user's statistic that no program can be compiled for."""

    __hash__ = None

    def __call__(self, record):
        return record["y"]


@pytest.mark.parametrize(
    ("build", "argument", "remedy"),
    [
        (lambda: Release([], Laplace(1.0), by_coordinate, 5), "value", "released numbers"),
        (lambda: Release([1.0, np.nan], Laplace(1.0), TOTAL, 5), "value", "dpjax.releases.thresholded"),
        (lambda: Release([1.0, np.inf], Laplace(1.0), TOTAL, 5), "value", "released numbers"),
        (lambda: Release([[1.0, 2.0]], Laplace(1.0), TOTAL, 5), "value", "released numbers"),
        (lambda: Release([[1.0], [1.0, 2.0]], Laplace(1.0), TOTAL, 5), "value", "same length"),
        (lambda: Release("1.0", Laplace(1.0), TOTAL, 5), "value", "released numbers"),
        (lambda: Release(None, Laplace(1.0), TOTAL, 5), "value", "released numbers"),
        (lambda: Release([1.0, 2.0, 3.0], Laplace(1.0), TOTAL, 5), "value", "2 coordinates"),
        (lambda: Release([1.5, 2.0], DiscreteLaplace(1.0), TOTAL, 5), "value", "multiply a mean by n"),
        (lambda: Release([1.5, 2.0], Censored(DiscreteGaussian(1.0), lower=0), TOTAL, 5), "value", "rescaling"),
        (lambda: Release([1.0, 2.0], Laplace(jnp.ones(3)), TOTAL, 5), "mechanism.scale", "one for each"),
        (lambda: Release([1.0, 2.0], Gaussian(jnp.ones(1)), TOTAL, 5), "mechanism.scale", "one for each"),
        (
            lambda: Release([1.0, 2.0], Censored(Laplace(1.0), lower=np.zeros(3)), TOTAL, 5),
            "mechanism.lower",
            "one for each",
        ),
        (lambda: Release([1.0, 2.0], Laplace, TOTAL, 5), "mechanism", "dpjax.Laplace"),
        (lambda: Release([1.0, 2.0], 1.3, TOTAL, 5), "mechanism", "dpjax.Laplace"),
        (lambda: Release([1.0, 2.0], NoSum(), TOTAL, 5), "mechanism", "hashable"),
        (lambda: Release([1.0, 2.0], Hashed(), TOTAL, 5), "mechanism", "Sum the log-density"),
        (lambda: Release([1.0, 2.0], KEEP, TOTAL, 5), "mechanism", "LocalRelease"),
        (lambda: Release([1.0, 2.0], Laplace(1.0), 5, 5), "statistic", "record -> "),
        (lambda: Release([1.0, 2.0], Laplace(1.0), Unhashable(), 5), "statistic", "frozen dataclass"),
        (lambda: Release([1.0, 2.0], Laplace(1.0), TOTAL, 0), "n", "public number"),
        (lambda: Release([1.0, 2.0], Laplace(1.0), TOTAL, -3), "n", "public number"),
        (lambda: Release([1.0, 2.0], Laplace(1.0), TOTAL, 5.0), "n", "public number"),
        (lambda: Release([1.0, 2.0], Laplace(1.0), TOTAL, True), "n", "public number"),
        (lambda: LocalRelease([], Laplace(1.0)), "values", "per record"),
        (lambda: LocalRelease(1.0, Laplace(1.0)), "values", "per record"),
        (lambda: LocalRelease([np.nan], Laplace(1.0)), "values", "pass dpjax.Microdata"),
        (lambda: LocalRelease([0.0, 1.0], KEEP), "values", "as integers"),
        (lambda: LocalRelease([0, 3], KEEP), "values", "0, ..., k - 1"),
        (lambda: LocalRelease([0, -1], KEEP), "values", "0, ..., k - 1"),
        (lambda: LocalRelease([0.5], DiscreteLaplace(1.0)), "values", "Laplace or Gaussian"),
        (lambda: LocalRelease([0.5, 1.0], Laplace(jnp.ones(3))), "channel.scale", "one for each record"),
        (lambda: LocalRelease([0, 1], RandomizedResponse), "channel", "dpjax.Laplace"),
        (lambda: LocalRelease([0, 1], KEEP, field=3), "field", "string"),
        (lambda: mechanism_from_published("laplace", 1.0), "convention", "published"),
        (lambda: mechanism_from_published("laplace_scale", -1.0), "published", "published"),
        (lambda: mechanism_from_published("geometric_alpha", 1.5), "published", "e^"),
        (lambda: mechanism_from_published("laplace_epsilon", 1.0), "sensitivity", "epsilon and rho only"),
        (
            lambda: mechanism_from_published("gaussian_variance", 1.0, sensitivity=1.0),
            "sensitivity",
            "epsilon and rho only",
        ),
    ],
)
def test_bad_releases_are_named(build, argument, remedy):
    pattern = rf"^{re.escape(argument)}: given .*; expected .*\. .*{re.escape(remedy)}.*\.$"
    with pytest.raises((ValueError, TypeError), match=pattern):
        build()


def release_of(statistic, value=(1.0, 2.0)):
    return Release(jnp.array(value), Laplace(1.0), statistic, 5)


@pytest.mark.parametrize(
    ("release", "records", "argument", "given"),
    [
        (release_of(TOTAL), {"z": jnp.ones((5, 2))}, "record['y']", "fields ['z']"),
        (release_of(TOTAL), {"y": jnp.ones((5, 3))}, "record['y']", "shape [3]"),
        (release_of(by_coordinate), {"z": jnp.ones((5, 2))}, "statistic", "no field 'y'"),
        (release_of(by_coordinate), {"y": jnp.ones((5, 3))}, "statistic", "[3]"),
        (release_of(by_coordinate), {"y": jnp.ones(5)}, "statistic", "[]"),
        (release_of(by_coordinate), {"y": jnp.ones((5, 2), complex)}, "statistic", "a result complex"),
        (release_of(lambda record: record["y"] @ jnp.ones(3)), {"y": jnp.ones((5, 2))}, "statistic", "TypeError"),
        (release_of(lambda record: (record["y"],)), {"y": jnp.ones((5, 2))}, "statistic", "a result tuple"),
        (LocalRelease([0, 1], KEEP), {"y": jnp.ones(2)}, "field", "fields ['y']"),
        (LocalRelease([0, 1], KEEP), {"cell": jnp.ones(2)}, "record['cell']", "float"),
        (LocalRelease([0, 1], KEEP), {"cell": jnp.ones((2, 3), int)}, "record['cell']", "[3]"),
        (LocalRelease(jnp.ones((2, 3)), Laplace(1.0), "y"), {"y": jnp.ones(2)}, "record['y']", "[]"),
    ],
)
def test_records_that_do_not_fit_are_named(release, records, argument, given):
    pattern = rf"^{re.escape(argument)}: given .*{re.escape(given)}.*; expected .*\. .+\."
    with pytest.raises((ValueError, TypeError), match=pattern):
        release.check_records(records)


@pytest.mark.parametrize("release", [release_of(TOTAL), LocalRelease(jnp.ones((5, 2)), Laplace(1.0), "y")])
def test_samples_need_as_many_records(release):
    with pytest.raises(ValueError, match=r"^records\['y'\]: given 4 records; expected n = 5\. "):
        release.sample(jax.random.key(0), {"y": jnp.ones((4, 2))})
