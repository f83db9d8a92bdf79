"""A remedy leads to no other refusal: what it names is not refused for the same reason."""

import jax
import numpy as np
import pytest

import dpjax
from dpjax import statistics

KEY = jax.random.key(0)
NORMAL = dpjax.models.normal(dpjax.models.NormalPrior(0.0, 2.0), variance=1.0)
TOTAL = statistics.total("y", -3.0, 3.0)
EXACT = dpjax.Release([1.0], dpjax.Exact(), TOTAL, 3)
UNKNOWN = dpjax.Release([1.0], dpjax.Laplace(1.0), TOTAL, dpjax.UnknownCount(dpjax.models.UniformCount(1, 5)))


def fields(summed: dpjax.Release) -> dpjax.Microdata:
    return dpjax.Microdata({"y": (np.array([0.5, 1.0, -1.0]), dpjax.Gaussian(1.0))}, summed=summed)


CASES = {
    "an exact sum beside fields": (lambda: dpjax.gibbs(NORMAL, fields(EXACT)), "imputation", "counts"),
    "counts of fields beside an exact sum": (
        lambda: dpjax.gibbs(NORMAL, fields(EXACT), dpjax.counts()),
        "imputation",
        "imwg",
    ),
    "counts of an exact sum of real numbers": (
        lambda: dpjax.gibbs(NORMAL, EXACT, dpjax.counts()),
        "imputation",
        "imwg",
    ),
    "a sum of an unknown number beside fields": (lambda: fields(UNKNOWN), "release.n", "sample"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_remedy_is_not_refused_next(refused, case: str) -> None:
    call, argument, next_refused = CASES[case]
    refused(call, argument)
    with pytest.raises((TypeError, ValueError)) as caught:
        call()
    assert next_refused not in str(caught.value).partition("; expected")[2]


def test_counts_are_named_where_they_may_fit() -> None:
    with pytest.raises(ValueError, match=r"If records take few values use imputation=dpjax\.counts\(\)"):
        dpjax.gibbs(NORMAL, EXACT, dpjax.imwg())


COUNTS = statistics.cells("cell", 3)
GAPS = [12.0, np.nan, 31.0]
NAMED = {
    "a sum with gaps": (
        lambda: dpjax.Release(GAPS, dpjax.Laplace(1.0), COUNTS, 50),
        ("releases.suppressed", "releases.thresholded", "Censored"),
    ),
    "local values with gaps": (lambda: dpjax.LocalRelease(GAPS, dpjax.Laplace(1.0), "y"), ("Microdata", "Censored")),
    "no limit": (lambda: dpjax.releases.suppressed_units(GAPS, limit=0), ("Microdata",)),
    "counts below a limit": (lambda: dpjax.releases.suppressed_units(GAPS, limit=20), ("Microdata", "least=1")),
    "outer edges exchanged": (lambda: statistics.histogram("y", [np.inf, 0.0, 1.0]), ("Sort the edges",)),
}


@pytest.mark.parametrize("case", NAMED)
def test_what_takes_it_is_named(case: str) -> None:
    """Numbers that are wrong here, and right for something else, which a user need not know of."""
    call, names = NAMED[case]
    with pytest.raises((TypeError, ValueError)) as caught:
        call()
    assert [name for name in names if name not in str(caught.value).partition("; expected")[2]] == []
