"""JSON text: every shipped release comes back equal, and what cannot be read raises an error."""

import json
import random
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dpjax
from dpjax import statistics
from dpjax._util.validation import is_refusal
from dpjax.mechanisms import (
    Additive,
    CellKeys,
    Censored,
    Coarsened,
    DiscreteGaussian,
    DiscreteLaplace,
    Exact,
    Gaussian,
    HaarWavelet,
    Heaped,
    Independent,
    KNormLinf,
    Laplace,
    Modulo,
    MultivariateGaussian,
    PoissonBinomial,
    PrimarySuppression,
    Privacy,
    RandomizedResponse,
    RandomRounding,
    ReportSums,
    Rounded,
    SmoothedHistogram,
    Staircase,
    SumOf,
    Truncated,
    Tulap,
)
from dpjax.release import LocalRelease, Microdata, Release, UnknownCount, from_json

PRIVACY = Privacy("pure", "replace-one", epsilon=1.5, sensitivity=3.0, norm=1)
MECHANISMS = [
    Laplace(1.3, privacy=PRIVACY),
    Laplace(jnp.array([0.1, 1 / 3])),
    Gaussian(2.0, privacy=Privacy("zcdp", "add-or-remove", rho=0.25)),
    DiscreteLaplace(1.3),
    DiscreteGaussian(jnp.array([1.0, 2.0])),
    Censored(Laplace(1.3, privacy=PRIVACY), lower=0),
    Exact(),
    Independent([Laplace(1.3), Censored(DiscreteLaplace(jnp.array([2.0])), lower=0)], [1, 1]),
    Censored(Gaussian(jnp.array([1.0, 2.0])), lower=jnp.array([0.0, -1.0]), upper=9.5),
    RandomRounding(3),
    Heaped((0.3, 0.2), (5, 10)),
    Staircase(2.0, [1.0, 2.0]),
    Tulap(1.5, privacy=PRIVACY),
    Modulo(DiscreteLaplace(2.0), 64),
    Coarsened.midpoints(6),
    ReportSums([0.75, 0.5], 0.25, 12),
    SumOf([DiscreteLaplace(2.0), DiscreteGaussian(0.5)], privacy=PRIVACY),
    MultivariateGaussian([[2.0, 0.5], [0.5, 1.0]]),
    KNormLinf(2.0),
    CellKeys([[1.0, 0.0], [0.3, 0.7]]),
    PrimarySuppression(3, least=1, code=-9),
    Rounded(Laplace(jnp.array([1.0, 2.0])), 3),
    Truncated(DiscreteLaplace(1.5), upper=20),
]
STATISTICS = [
    statistics.gram([-1.0], [2.5]),
    statistics.total("y", [0, 0], [1, 2]),
    statistics.total("y"),
    statistics.total("y", lower=0, dimension=2),
    statistics.mean("y", 7, [0, 0], [1, 2]),
    statistics.cells("a", 2),
    statistics.cells(["a", "b"], [2, 1]),
    statistics.histogram("y", [0, 0.1, 4]),
    statistics.class_features(2, 1, 1),
    statistics.grouped("cell", [0, 1, -1, 1]),
    statistics.grouped("cell", [0, 0], 2),
    statistics.stacked(statistics.grouped("a", [0, 0]), statistics.scaled(statistics.grouped("a", [-1, 0]), 0.5)),
    statistics.log_composition("share", 0.01, dimension=2),
    statistics.log_composition("share", 0.01),
    statistics.clipped(statistics.total("y", dimension=2), 1.5),
    statistics.linear(statistics.cells("a", 2), [[1, -1], [0.1, 1 / 3]]),
    statistics.stacked(statistics.total("y", 0, 1), statistics.scaled(statistics.total("z", 0, 1), 1 / 3)),
]


def square(record):
    return jnp.stack([record["y"], record["y"] ** 2])


def assert_same(release, other):
    assert jax.tree.structure(release) == jax.tree.structure(other)
    for leaf, copy in zip(jax.tree.leaves(release), jax.tree.leaves(other), strict=True):
        np.testing.assert_array_equal(leaf, copy)


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
def test_mechanisms_come_back(mechanism):
    value = [-3, 12] if isinstance(mechanism, Additive) else [3, 9]
    release = Release(value, mechanism, STATISTICS[0], mechanism.sums.num_records or 50)
    assert_same(release, Release.from_json(release.to_json()))


@pytest.mark.parametrize("statistic", STATISTICS, ids=repr)
def test_statistics_come_back(statistic):
    release = Release([1 / 3, 1e-17], Laplace(0.1), statistic, 50)
    assert_same(release, from_json(release.to_json(units="counts", source="a report")))
    assert_same(release, Release.from_json(release.to_json(), statistic=statistic))


def test_draws_from_a_smoothed_histogram_come_back():
    mechanism = SmoothedHistogram(0.2, 2, privacy=PRIVACY)
    release = Release([0.3, 1 / 3], mechanism, statistics.histogram("y", np.linspace(0, 1, 6)), 50)
    assert_same(release, from_json(release.to_json()))


def test_statistics_of_more_coordinates_come_back():
    release = Release(jnp.arange(9.0), Laplace(13.0), statistics.gram([-10] * 2, [10] * 2, response=(-10, 10)), 100)
    assert_same(release, from_json(release.to_json()))


@pytest.mark.parametrize(
    "release",
    [
        LocalRelease([0, 2, 1], RandomizedResponse(keep=0.9, num_categories=3, privacy=PRIVACY)),
        LocalRelease([[0, 1], [1, 1]], RandomizedResponse(matrix=[[0.9, 0.1], [0.2, 0.8]]), field="answers"),
        LocalRelease([0.1, 1 / 3], Laplace(0.3), field="y"),
        LocalRelease([0, 7, 3], PoissonBinomial(0.1, 7, -1.0, 1 / 3, privacy=PRIVACY), field="y"),
        LocalRelease([0, 7, 3], PoissonBinomial([0.1, 0.5, 0.25], 7), field="y"),
        LocalRelease([[0.1, 1 / 3, -2.0], [0.0, 1.0, 1e-9]], HaarWavelet(0.7, 1, privacy=PRIVACY), field="y"),
    ],
)
def test_local_releases_come_back(release):
    assert_same(release, LocalRelease.from_json(release.to_json(units="categories")))
    assert_same(release, from_json(release.to_json()))


@pytest.mark.parametrize("statistic", [square, statistics.scaled(square, 0.5)])
def test_a_function_is_recorded_by_name_and_given_again(statistic):
    release = Release([1.0, 2.0], Laplace(1.0), statistic, 50)
    text = release.to_json()
    assert "test_json.square" in text
    assert_same(release, Release.from_json(text, statistic=statistic))
    with pytest.raises(ValueError, match=r"^statistic: given the function .*square.*statistic=\.\.\.\)\.$"):
        Release.from_json(text)


def test_the_text_is_the_documented_schema():
    release = Release([1, 2], Laplace(0.5), statistics.cells("a", 2), 50)
    assert json.loads(release.to_json(units="persons", source="a report", year=2020)) == {
        "schema": "privatized-release",
        "version": 1,
        "kind": "release",
        "value": [1.0, 2.0],
        "n": 50,
        "mechanism": {"name": "laplace", "scale": 0.5},
        "statistic": {"name": "cells", "field": ["a"], "num_categories": [2]},
        "units": "persons",
        "metadata": {"source": "a report", "year": 2020},
    }


def changed(**entries):
    document = json.loads(Release([1, 2], Laplace(0.5), statistics.cells("a", 2), 50).to_json())
    return json.dumps({key: value for key, value in (document | entries).items() if value != "gone"})


@pytest.mark.parametrize(
    ("text", "argument"),
    [
        ("no json", "text"),
        (None, "text"),
        ("[1, 2]", "schema"),
        ("{}", "schema"),
        (changed(schema="other"), "schema"),
        (changed(version=2), "version"),
        (changed(version="gone"), "version"),
        (changed(kind="histogram"), "kind"),
        (changed(kind=["release"]), "kind"),
        (changed(value="gone"), "text"),
        (changed(sigma=1.0), "text"),
        (changed(value=["1", "2"]), "value"),
        (changed(value=[1, 2, 3]), "value"),
        (changed(value=[float("nan"), 2]), "text"),
        (changed(n=0), "n"),
        (changed(n="50"), "n"),
        (changed(mechanism=None), "mechanism name"),
        (changed(mechanism={"name": ["laplace"], "scale": 1}), "mechanism name"),
        (changed(mechanism="laplace"), "mechanism name"),
        (changed(mechanism={"name": "ladder", "scale": 1}), "mechanism name"),
        (changed(mechanism={"name": "laplace", "sigma": 1}), "sigma"),
        (changed(mechanism={"name": "laplace", "scale": "1"}), "scale"),
        (changed(mechanism={"name": "laplace", "scale": -1}), "scale"),
        (changed(mechanism={"name": "laplace", "scale": 1, "privacy": {"epsilon": 1}}), "notion"),
        (changed(mechanism={"name": "censored", "mechanism": {"name": "normal"}, "lower": 0}), "mechanism name"),
        (changed(statistic={"name": "median", "field": "a"}), "statistic name"),
        (changed(statistic={"name": "cells", "field": "a"}), "num_categories"),
        (changed(statistic={"name": "cells", "field": "a", "num_categories": 1}), "num_categories"),
    ],
)
def test_what_cannot_be_read_is_refused(text, argument):
    with pytest.raises((ValueError, TypeError), match=rf"^{argument}: given .*; expected .*\. .+\.$"):
        from_json(text)


def test_kinds_are_not_mixed_up():
    local = LocalRelease([0.5], Laplace(1.0)).to_json()
    with pytest.raises(ValueError, match=r"^kind: given 'local-release'; expected 'release'"):
        Release.from_json(local)


def test_another_statistic_than_the_described_one_is_refused():
    with pytest.raises(ValueError, match=r"^statistic: given .*Leave statistic= out"):
        Release.from_json(changed(), statistic=statistics.cells("b", 2))


def test_what_has_no_neutral_form_is_refused():
    class Mine(Laplace):
        pass

    release = Release([1, 2], Mine(0.5), statistics.cells("a", 2), 50)
    with pytest.raises(TypeError, match=r"^mechanism: given Mine; expected one of"):
        release.to_json()
    plain = Release([1, 2], Laplace(0.5), statistics.cells("a", 2), 50)
    with pytest.raises(TypeError, match=r"^metadata: given \['note'\]"):
        plain.to_json(note=object())
    batch = jax.tree.map(lambda leaf: jnp.stack([jnp.asarray(leaf)] * 2), plain)
    with pytest.raises(ValueError, match=r"^value: given shape \[2, 2\]; expected one release"):
        batch.to_json()
    with pytest.raises(TypeError, match=r"^value: given a traced value"):
        jax.jit(lambda release: len(release.to_json()))(plain)


TABLE = statistics.cells(["a", "b"], levels=[["x", "y"], ["u", "v"]])
ANSWERS = RandomizedResponse(keep=0.75, num_categories=2, privacy=PRIVACY)
EVERY_KIND = [
    Release([1 / 3, 1e-17], Laplace(0.1), STATISTICS[-1], 50),
    Release([3.0], Laplace(1.0), statistics.count(), UnknownCount(dpjax.models.UniformCount(1, 5))),
    dpjax.joint(
        Release([7, 2, 3, 9], Censored(DiscreteLaplace(2.0), 0), TABLE, 20),
        Release([3, 5], SumOf([DiscreteLaplace(2.0), DiscreteGaussian(0.5)]), statistics.cells("a", 2), 20),
    ),
    dpjax.releases.median(0.5, candidates=[0.0, 0.5, 1.0], field="y", n=9, epsilon=1.0),
    LocalRelease(["x", "y", "x"], ANSWERS, "a", levels=["x", "y"]),
    dpjax.releases.hadamard_response([0, 1, 1], field="a", num_categories=2, keep=0.75),
    Microdata(
        {"y": ([0.3, np.nan, 1.1], Exact()), "a": [([0, 1, 1], ANSWERS, [True, True, False])]},
        missing={"y": [False, True, False]},
        summed=Release([1.0], Laplace(1.0), statistics.total("y", 0, 1), 2),
        num_others=1,
    ),
]
INSTEAD = [None, True, 0, -1, 2.5, 1e300, 5e-324, 10**400, "", "x", [], {}, [[]], [1, [2]], [1, 2, 3], ["a", "a"]]
INSTEAD += [[10**400], {"name": "exact"}, {"name": None}, {"name": "laplace", "scale": 1}, {"name": "count"}, "gone"]


def places(entry: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths to all entries of a document."""
    for key, value in entry.items() if isinstance(entry, dict) else enumerate(entry) if isinstance(entry, list) else ():
        yield (*above, key)
        yield from places(value, (*above, key))


def mutant(text: str, place: tuple[Any, ...], instead: Any) -> str:
    """The text with one entry replaced, or left out."""
    document = json.loads(text)
    inside = document
    for key in place[:-1]:
        inside = inside[key]
    inside[place[-1]] = instead
    if instead == "gone":
        del inside[place[-1]]
    return json.dumps(document)


def check_mutants(number: int) -> None:
    """Raise unless so many mutants are read, or refused by name."""
    texts = [release.to_json(units="persons", source="a report") for release in EVERY_KIND]
    listed = [(text, place, instead) for text in texts for place in places(json.loads(text)) for instead in INSTEAD]
    raw = {}
    for text, place, instead in random.Random(0).sample(listed, number):
        try:
            from_json(mutant(text, place, instead)).to_json()
        except Exception as error:
            if not (is_refusal(error) and isinstance(error, (TypeError, ValueError))):
                raw[place, str(instead)] = repr(error)
    assert raw == {}


@pytest.mark.filterwarnings("ignore::dpjax.release.PrecisionWarning")
def test_mutants_are_read_or_refused_by_name():
    """What no list of mistakes thinks of: any entry of any kind of release left out, or of another type or size."""
    check_mutants(40)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::dpjax.release.PrecisionWarning")
def test_many_mutants_are_read_or_refused_by_name():
    """The same of a thousand, as each of the few faults that there were was in one mutant of sixty."""
    check_mutants(1000)


@pytest.mark.parametrize("release", EVERY_KIND, ids=lambda release: type(release).__name__)
def test_a_text_may_lack_units_and_metadata(release):
    """They say nothing about the density; every other entry of the head is refused where it is gone."""
    document = json.loads(release.to_json())
    short = {key: value for key, value in document.items() if key not in ("units", "metadata")}
    assert_same(release, from_json(json.dumps(short)))


HADAMARD = EVERY_KIND[5].to_json()


@pytest.mark.parametrize(
    ("text", "argument"),
    [
        (mutant(HADAMARD, ("channel", "log_probabilities", 0), [-1.0]), "log_probabilities"),
        (mutant(HADAMARD, ("channel", "log_probabilities", 0), [10**400, 1]), "log_probabilities"),
        (mutant(EVERY_KIND[0].to_json(), ("value",), [10**400, 1]), "value"),
        (mutant(EVERY_KIND[0].to_json(), ("statistic", "statistics", 0, "upper"), [True]), "upper"),
        (mutant(EVERY_KIND[4].to_json(), ("levels",), [[]]), "levels"),
    ],
)
def test_numbers_that_make_no_array_are_refused(text, argument):
    """Rows of unequal length, numbers beyond floats, truth values among bounds and levels without names."""
    with pytest.raises((ValueError, TypeError), match=rf"^{argument}: given"):
        from_json(text)
