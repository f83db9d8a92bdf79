"""Totals of groups beside models of formulas: which total is whose, by the names of levels."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from scipy import stats

import dpjax
from dpjax.models import formula
from dpjax.statistics import group_totals

NAN = float("nan")
LEVEL = np.array(["low", "mid", "high", "low", "mid", "high"])
X, SIZE = np.arange(6.0), np.array([2.0, 3.0, 10.0, 1.0, 5.0, 2.5])
DATA = pd.DataFrame({"level": LEVEL, "x": X, "size": SIZE})
DATA["ordered"] = pd.Categorical(LEVEL, ["low", "mid", "high"])
TOTALS = {"low": 3, "mid": 4, "high": 15}
"""In the order of the file."""

LOCAL = dpjax.releases.suppressed_units([NAN, NAN, 12, NAN, NAN, NAN], limit=5, field="y")
AT = {"Intercept": jnp.asarray(-0.5), "x": jnp.asarray(0.1)}
TOLERANCE = 1e-5 if jnp.zeros(()).dtype == jnp.float32 else 1e-9


@pytest.fixture(scope="module")
def model() -> dpjax.Model:
    return formula("y ~ x + offset(log(size))", DATA, family="poisson", fields=("level", "ordered"))


def likelihood(model: dpjax.Model, value: Any, statistic: Any) -> float:
    totals = dpjax.Release(value, dpjax.Exact(), statistic, n=6)
    return float(dpjax.marginal_likelihood(model, dpjax.joint(LOCAL, totals))(AT))


def expected(totals: dict[str, int]) -> float:
    """By enumeration of the counts of both units of each level."""
    laws = stats.poisson.pmf(np.arange(40), (SIZE * np.exp(-0.5 + 0.1 * X))[:, None])
    laws *= np.where(np.arange(6)[:, None] == 2, np.arange(40) == 12, np.arange(40) < 5)
    return sum(float(np.log(np.convolve(*laws[name == LEVEL])[total])) for name, total in totals.items())


def test_totals_by_name_are_those_of_their_groups(model):
    """Of text the codes are in alphabetical order: totals in the order of the file were taken for the others'."""
    assert model.level_names == {"level": ("high", "low", "mid"), "ordered": ("low", "mid", "high")}
    assert "level: 0 high, 1 low, 2 mid" in model.describe()
    found = likelihood(model, TOTALS, group_totals("y", "level", model.level_names["level"]))
    np.testing.assert_allclose(found, expected(TOTALS), rtol=TOLERANCE)
    ordered = group_totals("y", "ordered", ["low", "mid", "high"])
    np.testing.assert_allclose(likelihood(model, list(TOTALS.values()), ordered), found, rtol=TOLERANCE)


def by_text(record):
    """Compares numbers of levels with texts, which are never equal."""
    return jnp.stack([jnp.where(record["level"] == name, record["y"], 0) for name in TOTALS]).astype(float)


REFUSED = {
    "another order": (
        group_totals("y", "level", list(TOTALS)),
        r"levels \['low', 'mid', 'high'\] of 'level'; expected",
    ),
    "no names": (group_totals("y", "level", 3), "totals by 'level' without names, of which the model has"),
    "texts": (by_text, "totals to which no 'y' of any record adds anything; .*group_totals"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_totals_of_other_groups_are_refused(model, name):
    """The last of them was a raw IndexError."""
    statistic, words = REFUSED[name]
    with pytest.raises(ValueError, match=f"^release: given {words}"):
        likelihood(model, list(TOTALS.values()), statistic)


def test_groups_beyond_the_totals_are_refused():
    """Their records would be in no total, without a word."""
    numbered = formula("y ~ x", DATA.assign(code=np.arange(6) // 2 + 1), family="poisson", fields=("code",))
    with pytest.raises(ValueError, match=r"^release: given a record of group 3 of 'code'; expected groups 0 to 2"):
        likelihood(numbered, list(TOTALS.values()), group_totals("y", "code", 3))
