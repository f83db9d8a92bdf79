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
