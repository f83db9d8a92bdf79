"""Microdata: densities against tables and scipy, what is held and what is missing, and every bad input by its name."""

import copy
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import dpjax
from dpjax.release.microdata import Microdata
from tests.data_augmentation.records.test_microdata_posteriors import Groups

KEEP = dpjax.RandomizedResponse(keep=0.75, num_categories=2)
EXACT = dpjax.Exact()
NAN = float("nan")
FIELDS = {"label": ([0, 1, 1], KEEP), "income": ([0.5, NAN, 2.0], dpjax.Gaussian(0.5)), "y": ([1.0, NAN, 3.0], EXACT)}
SECOND = [False, True, False]
MISSING = {"label": np.array([False, False, True]), "income": np.array(SECOND), "y": np.array(SECOND)}
PEOPLE = Microdata(FIELDS, missing=MISSING)
RECORDS = {"label": jnp.array([0, 0, 1]), "income": jnp.array([0.0, 1.0, 2.0]), "y": jnp.array([1.0, 7.0, 3.0])}
TOTAL = dpjax.Release([2.0], dpjax.Laplace(1.0), dpjax.statistics.total("label", 0.0, 1.0), 3)


def expected() -> np.ndarray:
    """The log-densities of what is seen of each record."""
    return np.array([np.log(0.75) + stats.norm.logpdf(0.5, 0.0, 0.5), np.log(0.25), stats.norm.logpdf(0.0, 0.0, 0.5)])


def test_missing_values_add_nothing_and_exact_ones_exclude_others():
    np.testing.assert_allclose(PEOPLE.log_densities(RECORDS), expected(), rtol=1e-5)
    others = RECORDS | {"y": jnp.array([1.0, 7.0, 3.5])}
    assert np.isneginf(PEOPLE.log_densities(others)[2])
    np.testing.assert_allclose(PEOPLE.log_densities(others)[:2], expected()[:2], rtol=1e-5)


def test_exact_values_are_held_and_gaps_are_not():
    held = PEOPLE.hold({name: leaf + 10 for name, leaf in RECORDS.items()})
    assert held["y"].tolist() == [1.0, 17.0, 3.0]
    assert held["income"].tolist() == [10.0, 11.0, 12.0]


def test_densities_over_possible_values():
    densities = PEOPLE.log_densities_of_support({"label": jnp.arange(2)})
    np.testing.assert_allclose(densities, np.log([[0.75, 0.25], [0.25, 0.75], [1.0, 1.0]]), rtol=1e-5)


def test_the_spelling_by_local_release_is_the_same():
    other = dpjax.LocalRelease(FIELDS, missing={"label": [False, False, True], "income": SECOND, "y": SECOND})
    assert isinstance(other, Microdata)
    assert jax.tree.structure(other) == jax.tree.structure(PEOPLE)
    np.testing.assert_array_equal(other.observed, PEOPLE.observed)


def test_codes_with_gaps_may_come_as_floats():
    release = Microdata({"label": ([0.0, NAN, 1.0], KEEP)}, {"label": np.array(SECOND)})
    assert jnp.issubdtype(release.fields["label"].values.dtype, jnp.integer)
    assert release.missing["label"].tolist() == [False, True, False]


def test_what_is_assumed_of_nan_is_said_once_at_the_call():
    """Values below a limit of detection were taken to be missing at random without a word."""
    words = (
        r"^fields: values that are NaN, 1 of 'income', 1 of 'y', are taken to be missing at random: .*Censored noise\.$"
    )
    with pytest.warns(UserWarning, match=words) as found:
        people = Microdata(FIELDS, missing={"label": MISSING["label"]})
    assert [one.filename for one in found] == [__file__]
    dpjax.joint(people, TOTAL).sample(jax.random.key(0), RECORDS)  # the masks of which say so
    dpjax.from_json(people.to_json())
    with pytest.warns(UserWarning, match=r"^fields: values that are NaN, 1 of 'label', are"):
        Microdata({"label": (["no", None, "yes"], KEEP, ["no", "yes"])})


def test_a_sample_keeps_gaps_and_exact_values():
    again = jax.jit(Microdata.sample)(dpjax.joint(PEOPLE, TOTAL), jax.random.key(1), RECORDS)
    np.testing.assert_array_equal(np.isnan(again.observed), np.isnan(PEOPLE.observed))
    assert again.fields["y"].values.tolist() == RECORDS["y"].tolist()
    assert again.summed.value[0] != TOTAL.value[0]
    # The columns are those of income, label and y.
    assert np.nanmin(np.abs(again.observed[:, 0] - PEOPLE.observed[:, 0])) > 0


OTHERS = dpjax.releases.with_observed(TOTAL, {"label": [0, 1], "y": [NAN, 2.0]})


def test_known_people_are_not_in_the_sum():
    assert (OTHERS.n, OTHERS.num_others) == (5, 2)
    assert OTHERS.missing["y"].tolist() == [True, True, True, True, False]
    records = {"label": jnp.array([1, 1, 1, 0, 1]), "y": jnp.array([5.0, 5.0, 5.0, 5.0, 2.0])}
    total, density = OTHERS.total_and_density(records)
    assert total.tolist() == [3.0]
    np.testing.assert_allclose(density, stats.laplace.logpdf(1.0), rtol=1e-5)
    assert "the last 2 are not in the sum" in dpjax.describe(OTHERS)


@pytest.mark.parametrize(
    "release", [PEOPLE, dpjax.joint(PEOPLE, TOTAL), OTHERS], ids=["fields", "and a sum", "and other people"]
)
def test_it_survives_json_pickling_and_copies(release):
    for other in (
        dpjax.from_json(release.to_json(units="none", source="a test")),
        pickle.loads(pickle.dumps(release)),
        copy.deepcopy(release),
    ):
        assert jax.tree.structure(other) == jax.tree.structure(release)
        assert all(map(np.array_equal, jax.tree.leaves(other), jax.tree.leaves(release)))


def test_the_density_of_a_sum_is_added_once():
    both = dpjax.joint(PEOPLE, TOTAL, TOTAL)
    total, density = both.total_and_density(RECORDS)
    assert total.tolist() == [1.0, 1.0]
    np.testing.assert_allclose(density, expected().sum() + 2 * stats.laplace.logpdf(1.0), rtol=1e-5)


def test_local_releases_join_field_by_field():
    labels = dpjax.LocalRelease([0, 1, 1], KEEP, field="label")
    both = dpjax.joint(labels, Microdata({"y": FIELDS["y"]}, {"y": MISSING["y"]}), TOTAL)
    assert list(both.fields) == ["label", "y"]
    assert both.missing["y"].tolist() == [False, True, False]
    assert both.summed is TOTAL


def test_the_description_names_gaps_and_what_is_not_hidden():
    people = Microdata({"label": ([0, 1, 1], KEEP), "y": FIELDS["y"]}, {"y": MISSING["y"]})
    text = dpjax.describe(dpjax.joint(people, TOTAL))
    assert "2 fields of n = 3 records." in text
    assert "`y`: none, these are exact; missing in 1 record." in text
    assert "ε = 1.099" in text
    assert "not covered" in text
    assert "The sum of `label`" in text


BAD = {
    "no dict": (lambda: Microdata([1.0]), TypeError, "fields"),
    "no fields": (lambda: Microdata({}), TypeError, "fields"),
    "a name that is no text": (lambda: Microdata({3: ([0, 1], KEEP)}), TypeError, "fields"),
    "values without a channel": (lambda: Microdata({"y": [1.0, 2.0, 3.0]}), TypeError, r"fields\['y'\]"),
    "no channel": (lambda: Microdata({"y": ([1.0], 3.0)}), TypeError, r"channel of fields\['y'\]"),
    "text": (lambda: Microdata({"y": (["a"], EXACT)}), TypeError, r"values of fields\['y'\]"),
    "an impossible code": (lambda: Microdata({"label": ([0, 2], KEEP)}), ValueError, r"values of fields\['label'\]"),
    "infinite": (lambda: Microdata({"y": ([1.0, np.inf], EXACT)}), ValueError, r"values of fields\['y'\]"),
    "half a row": (lambda: Microdata({"y": ([[1.0, NAN]], EXACT)}), ValueError, r"values of fields\['y'\]"),
    "other numbers": (
        lambda: Microdata({"label": ([0, 1], KEEP), "y": ([1.0], EXACT)}),
        ValueError,
        r"values of fields\['y'\]",
    ),
    "no dict of masks": (lambda: Microdata(FIELDS, missing=[True]), TypeError, "missing"),
    "a mask of no field": (lambda: Microdata(FIELDS, missing={"z": [True] * 3}), ValueError, r"missing\['z'\]"),
    "a mask of numbers": (lambda: Microdata(FIELDS, missing={"y": [0, 1, 0]}), TypeError, r"missing\['y'\]"),
    "a short mask": (lambda: Microdata(FIELDS, missing={"y": [True]}), ValueError, r"missing\['y'\]"),
    "no sum": (lambda: Microdata(FIELDS, summed=3.0), TypeError, "summed"),
    "a sum of others": (
        lambda: Microdata(FIELDS, summed=dpjax.Release([2.0], dpjax.Laplace(1.0), TOTAL.statistic, 4)),
        ValueError,
        "summed",
    ),
    "others without a sum": (lambda: Microdata(FIELDS, num_others=1), ValueError, "num_others"),
    "others of a local release": (lambda: dpjax.releases.with_observed(PEOPLE, {}), TypeError, "release"),
    "no others": (lambda: dpjax.releases.with_observed(TOTAL, {}), TypeError, "records"),
    "a number of others": (
        lambda: dpjax.releases.with_observed(TOTAL, {"y": 1.0}),
        ValueError,
        r"records\['y'\]",
    ),
    "a channel beside": (lambda: dpjax.LocalRelease(FIELDS, KEEP), ValueError, "values, channel"),
    "a field beside": (lambda: dpjax.LocalRelease(FIELDS, field="y"), ValueError, "values, field"),
    "a mask of one field": (lambda: dpjax.LocalRelease([0, 1], KEEP, missing={}), ValueError, "missing"),
    "one exact field": (lambda: dpjax.LocalRelease([0, 1], EXACT), ValueError, "channel"),
    "a field twice": (lambda: dpjax.joint(PEOPLE, PEOPLE), ValueError, r"releases\[1\]"),
    "fractions for whole numbers": (
        lambda: Microdata({"label": ([0.5, 1.0], EXACT)}).check_records(RECORDS),
        ValueError,
        r"values of fields\['label'\]",
    ),
    "no such field": (lambda: Microdata({"z": ([0.5], EXACT)}).check_records(RECORDS), ValueError, "field"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused_by_name(name):
    call, error, argument = BAD[name]
    with pytest.raises(error, match=rf"^{argument}: given .*; expected .*\. .+\.$"):
        call()


MODEL = dpjax.models.categorical([1.0, 1.0])


@pytest.mark.parametrize(
    "call",
    [
        lambda key, release: dpjax.sample_smc(key, MODEL, release),
        lambda key, release: dpjax.sample_clt(key, MODEL, release),
        lambda key, release: dpjax.maximum_likelihood(key, MODEL, release, method="imputation"),
        lambda key, release: dpjax.coupling.coupled_gibbs(MODEL, release),
    ],
    ids=["smc", "clt", "likelihood", "coupling"],
)
def test_what_takes_no_exact_fields_names_the_release(call):
    release = Microdata({"cell": ([0, 1], EXACT)})
    with pytest.raises((TypeError, ValueError), match=r"^release: given .*; expected .*\. .+\.$"):
        call(jax.random.key(0), release)


def test_codes_without_a_list_of_values_are_refused_beside_exact_fields():
    """Catches a walk over codes that the model's density does not exclude."""

    class Unlisted(Groups):
        @property
        def discrete_support(self):
            return None

    gaps = {"label": [True, False, False], "y": SECOND}
    release = Microdata({"label": ([0, 1, 1], EXACT), "y": FIELDS["y"]}, missing=gaps)
    with pytest.raises(ValueError, match=r"^model: given .*'label'.*; expected .*\. .+\.$"):
        dpjax.sample(jax.random.key(0), Unlisted(), release)


def test_a_gap_is_filled_with_what_its_unit_can_report():
    """The first reported count was filled in, and refused as a report of a unit with fewer persons."""
    for values, sizes in (([250.0, NAN, 70.0], [300, 80, 90]), ([250.0, 70.0, NAN], [300, 80, 60])):
        channel = dpjax.mechanisms.ReportSums(0.75, 0.25, n=np.array(sizes))
        schools = Microdata({"y": (values, channel)}, missing={"y": np.isnan(values)})
        np.testing.assert_array_equal(schools.observed[:, 0], values)
