"""Warnings where float32 cannot follow single records or the noise."""

import warnings

import jax
import pytest

from dpjax.mechanisms import Censored, DiscreteLaplace, Laplace
from dpjax.models import PoissonCount
from dpjax.release import LocalRelease, PrecisionWarning, Release, UnknownCount


def identity(record):
    return record["y"]


UNSAFE = {
    "large counts": lambda: Release([2**24 + 2], DiscreteLaplace(10.0), identity, 10),
    "many records": lambda: Release([5], Laplace(10.0), identity, 2**25),
    "small noise on a large sum": lambda: Release([4e5, 1.0], Laplace(0.2), identity, 10**6),
    "one small scale": lambda: Release([4e5, 1.0], Laplace([10.0, 0.2]), identity, 10**6),
    "many expected records": lambda: Release([5], Laplace(10.0), identity, UnknownCount(PoissonCount(3.2e7))),
    "small noise on large records": lambda: LocalRelease([1e8, 2e8], Laplace(1.0), "y"),
    "censored": lambda: Release([4e5], Censored(Laplace(0.2), lower=0), identity, 10**6),
}
SAFE = {
    "counts": lambda: Release([2**24], DiscreteLaplace(100.0), identity, 2**24),
    "a mean of many records": lambda: Release([0.5], Laplace(1e-5), identity, 10**6),
    "few expected records": lambda: Release([5], Laplace(10.0), identity, UnknownCount(PoissonCount(100.0))),
    "records": lambda: LocalRelease([1e2, -2e5], Laplace(1.0), "y"),
    "a sum": lambda: Release([4e5], Laplace(1.0), identity, 10**6),
}


@pytest.mark.parametrize("build", UNSAFE.values(), ids=UNSAFE)
def test_unsafe_numbers_warn_in_float32_at_the_call(build):
    with jax.enable_x64(False), pytest.warns(PrecisionWarning, match="jax_enable_x64") as caught:
        build()
    assert [warning.filename for warning in caught] == [__file__]


@pytest.mark.parametrize("build", SAFE.values(), ids=SAFE)
def test_safe_numbers_do_not(build):
    with jax.enable_x64(False), warnings.catch_warnings():
        warnings.simplefilter("error")
        build()


@pytest.mark.x64
@pytest.mark.parametrize("build", UNSAFE.values(), ids=UNSAFE)
def test_float64_is_safe(build):
    build()
