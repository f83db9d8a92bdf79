"""Names of the categories of local releases and microdata: codes, words, JSON, and what is refused."""

import re
from types import SimpleNamespace

import jax
import numpy as np
import pandas
import pytest

import dpjax
from dpjax.models import categorical
from dpjax.models.checks import check_fit

NAMES = ["low", "middle", "high"]
ANSWER = dpjax.RandomizedResponse(keep=0.75, num_categories=3)
RELEASE = dpjax.LocalRelease(["high", "low", "high"], ANSWER, "school", levels=NAMES)


class Categories:
    """What is read of a categorical Series of pandas, without pandas: the order of its categories is its own."""

    def __init__(self, values, categories):
        self.values, self.cat = values, SimpleNamespace(categories=categories)

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.values, dtype)


def test_names_become_codes_in_the_order_of_the_levels():
    assert RELEASE.values.tolist() == [2, 0, 2]
    assert dpjax.LocalRelease([2, 0, 2], ANSWER, "school", levels=NAMES).level_names == RELEASE.level_names
    assert RELEASE.level_names == {"school": ("low", "middle", "high")}


@pytest.mark.parametrize("categories", [[30, 10, 20], ["30", "10", "20"]])
def test_a_categorical_series_has_names_of_its_own(categories):
    """Numbers are names here, too: read as codes they would be categories that the channel does not know."""
    values = [categories[place] for place in (0, 2, 1, 0)]
    release = dpjax.LocalRelease(Categories(values, categories), ANSWER)
    assert release.values.tolist() == [0, 2, 1, 0]
    assert release.level_names == {"cell": ("30", "10", "20")}


def test_names_are_described_written_and_kept_by_copies():
    assert "The field `school` (low, middle, high) of n = 3 records" in dpjax.describe(RELEASE)
    assert dpjax.from_json(RELEASE.to_json()).level_names == RELEASE.level_names
    assert RELEASE.with_mechanism(ANSWER).sample(jax.random.key(0), {"school": np.arange(3)}).levels == RELEASE.levels


def test_a_missing_name_is_a_missing_value():
    fields = {"school": (["high", None, "low"], ANSWER, NAMES), "y": ([1.0, 2.0, 3.0], dpjax.Exact())}
    people = dpjax.Microdata(fields, {"school": np.array([False, True, False])})
    assert people.missing["school"].tolist() == [False, True, False]
    assert people.observed[:, 0].tolist()[::2] == [2.0, 0.0]
    again = dpjax.from_json(people.to_json())
    assert again.level_names == people.level_names == {"school": tuple(NAMES)}
    assert "`school` (low, middle, high): randomized response" in dpjax.describe(again)


def test_a_missing_text_of_pandas_is_a_missing_value():
    """NA does not say whether it equals itself, which was a TypeError."""
    values = pandas.array(["high", None, "low"], "string")
    people = dpjax.Microdata({"school": (values, ANSWER, NAMES)}, {"school": np.array([False, True, False])})
    assert people.missing["school"].tolist() == [False, True, False]


def test_entries_of_parameters_have_the_names():
    labels = categorical(np.ones(3)).entry_labels(dpjax.LocalRelease([0], ANSWER, levels=NAMES).level_names)
    assert labels["probabilities"] == (tuple(NAMES),)


def test_a_model_with_other_names_is_refused():
    with pytest.raises(ValueError, match="levels \\['low', 'middle', 'high'\\] of 'school'"):
        check_fit(categorical(fields=["school"], levels=["high", "middle", "low"]), RELEASE)


@pytest.mark.parametrize(
    ("values", "levels", "error", "message"),
    [
        (["low"], None, TypeError, "names with levels"),
        (["tall"], NAMES, ValueError, "'tall'"),
        (["low", None], NAMES, ValueError, "finite numbers"),
        ([0, 1], NAMES[:2], ValueError, "3, the number of categories of the channel"),
        ([0, 1], [NAMES, NAMES], ValueError, "the names of the categories of one field"),
        ([0, 1], [], ValueError, r"levels: given \[\]; expected names for each variable, at least one"),
        ([0, 1], "abc", TypeError, "levels: given 'abc'"),
        ([0, 1], ["low", "low", "high"], ValueError, "names that differ"),
    ],
)
def test_bad_names_are_refused(values, levels, error, message):
    with pytest.raises(error, match=message):
        dpjax.LocalRelease(values, ANSWER, levels=levels)


def test_a_text_without_levels_is_read():
    """Catches texts of earlier checkouts, and of other writers, that are refused for want of an entry."""
    for release in (dpjax.LocalRelease([0, 1], ANSWER), dpjax.Microdata({"cell": ([0, 1], ANSWER)})):
        text = re.sub(r'"levels": null,|,\s*"levels": null(?=\s*})', "", release.to_json())
        assert "levels" not in text
        assert dpjax.from_json(text).level_names == {}


def test_levels_beside_a_dict_are_refused():
    with pytest.raises(ValueError, match="values, levels: given a dict of fields"):
        dpjax.LocalRelease({"school": ([0, 1], ANSWER)}, levels=NAMES)
