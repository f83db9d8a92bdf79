"""Totals of groups: what one record adds, how far, by which names, and what is refused."""

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

import dpjax
from dpjax.statistics import group_totals

NAMES = ["high", "low", "mid"]
BY_LEVEL = group_totals("cases", "level", NAMES)
TOTALS = {"low": 3.0, "mid": 4.0, "high": 15.0}
IN_ORDER = [15.0, 3.0, 4.0]


def test_a_record_adds_its_number_to_its_group():
    """And to none if it is in none of them."""
    for level, expected in ((1, [0.0, 7.0, 0.0]), (3, [0.0] * 3), (-1, [0.0] * 3)):
        assert BY_LEVEL({"cases": jnp.array(7), "level": jnp.array(level)}).tolist() == expected
    clamped = group_totals("cases", "level", 2, lower=0.0, upper=5.0)
    assert clamped({"cases": jnp.array(7), "level": jnp.array(0)}).tolist() == [5.0, 0.0]


def test_how_far_one_record_moves_the_totals():
    """By all pairs of clamped numbers and groups."""
    for lower, upper, groups in ((-1.0, 5.0, 3), (2.0, 5.0, 3), (-4.0, 5.0, 1)):
        statistic = group_totals("cases", "level", groups, lower=lower, upper=upper)
        every = [
            np.asarray(statistic({"cases": jnp.array(number), "level": jnp.array(level)}))
            for number in (lower, 0.0, upper)
            for level in range(-1, groups)
        ]
        for norm in (1, 2):
            far = max(np.linalg.norm(one - other, norm) for one in every for other in every)
            np.testing.assert_allclose(statistic.radius(norm), max(np.linalg.norm(one, norm) for one in every))
            np.testing.assert_allclose(statistic.diameter(norm), far)
    with pytest.raises(ValueError, match=r"^lower, upper: given .*two finite bounds"):
        BY_LEVEL.radius(1)


@pytest.mark.parametrize("given", [TOTALS, pd.Series(TOTALS), pd.Series(TOTALS).rename_axis("level")])
def test_totals_are_matched_by_name(given):
    """In file order they were taken for those of other groups."""
    release = dpjax.Release(given, dpjax.Exact(), BY_LEVEL, n=6)
    assert release.value.tolist() == IN_ORDER
    assert release.level_names == {"level": tuple(NAMES)}
    assert dpjax.describe(release).startswith("The sums of `cases` by `level` (3 groups: high, low, mid), over")
    again = dpjax.from_json(release.to_json())
    assert again.statistic == BY_LEVEL
    assert again.value.tolist() == IN_ORDER


def test_many_names_are_shortened_and_bounds_are_said():
    words = group_totals("y", "state", [f"state {place}" for place in range(30)], lower=0, upper=9).words()
    assert (
        words == "the sums of `y`, clamped to 0 to 9, by `state` (30 groups: state 0, state 1, state 2, ..., state 29)"
    )


REFUSED = {
    "a missing name": (lambda: dpjax.Release({"low": 3, "mid": 4}, dpjax.Exact(), BY_LEVEL, 6), "value: .*'high'"),
    "another name": (lambda: dpjax.Release(TOTALS | {"none": 1}, dpjax.Exact(), BY_LEVEL, 6), "value: .*'none'"),
    "a name twice": (
        lambda: dpjax.Release(pd.Series([1, 2, 3, 4], ["low", "mid", "high", "low"]), dpjax.Exact(), BY_LEVEL, 6),
        "value: .*'low'",
    ),
    "text": (lambda: dpjax.Release(TOTALS | {"low": "3"}, dpjax.Exact(), BY_LEVEL, 6), "value: "),
    "no names": (
        lambda: dpjax.Release(TOTALS, dpjax.Exact(), group_totals("cases", "level", 3), 6),
        "statistic: .*group_totals with levels",
    ),
    "a Series without names": (
        lambda: dpjax.Release(pd.Series([3, 4, 15]), dpjax.Exact(), BY_LEVEL, 6),
        "statistic: .*to_numpy",
    ),
    "no statistic": (lambda: dpjax.Release(TOTALS, dpjax.Exact(), n=6), "statistic: "),
    "one name for two": (lambda: group_totals("y", "level", ["a", "a"]), "levels: "),
    "no groups": (lambda: group_totals("y", "level", []), "levels: "),
    "none": (lambda: group_totals("y", "level", None), "levels: "),
    "zero groups": (lambda: group_totals("y", "level", 0), "levels: "),
    "bounds in disorder": (lambda: group_totals("y", "level", 2, lower=1.0, upper=0.0), "upper: "),
    "an infinite bound": (lambda: group_totals("y", "level", 2, upper=np.inf), "upper: "),
    "a field by number": (lambda: group_totals("y", 2, 2), "field: "),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_is_refused(name):
    call, words = REFUSED[name]
    with pytest.raises((ValueError, TypeError), match=rf"^{words}"):
        call()
