"""Warnings where float32 cannot follow single records or the noise."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dpjax
from dpjax.mechanisms import (
    Censored,
    DiscreteLaplace,
    HaarWavelet,
    KNormLinf,
    Laplace,
    MultivariateGaussian,
    VectorLaplace,
)
from dpjax.models import PoissonCount
from dpjax.release import LocalRelease, PrecisionWarning, Release, UnknownCount


def identity(record):
    return record["y"]


NARROW = np.array([[2.0, 1.9], [1.9, 2.0]])
"""Each number has noise of 1.4, and their difference of 0.3."""

NOISY_VARIANCE = dpjax.mechanisms.NoisyVariance(Laplace(0.2), 100, 100)


def two_sums(record):
    return jnp.stack([record["y"], record["y"] ** 2])


two_sums.dimension = 2


def quotient(above, below):
    mean, count = dpjax.statistics.total("y", 0.0, 1.0), dpjax.statistics.count()
    return dpjax.releases.quotient(
        [0.5], mean, count, numerator_noise=Laplace(above), denominator_noise=Laplace(below), n=10**6
    )


def variance(scale, upper):
    return dpjax.releases.variance(2.0, Laplace(scale), field="y", lower=0.0, upper=upper, n=100)


UNSAFE = {
    "large counts": lambda: Release([2**24 + 2], DiscreteLaplace(10.0), identity, 10),
    "many records": lambda: Release([5], Laplace(10.0), identity, 2**25),
    "small noise on a large sum": lambda: Release([4e5, 1.0], Laplace(0.2), identity, 10**6),
    "one small scale": lambda: Release([4e5, 1.0], Laplace([10.0, 0.2]), identity, 10**6),
    "many expected records": lambda: Release([5], Laplace(10.0), identity, UnknownCount(PoissonCount(3.2e7))),
    "small noise on large records": lambda: LocalRelease([1e8, 2e8], Laplace(1.0), "y"),
    "a vector": lambda: Release([4e5, 1.0], VectorLaplace(0.2), identity, 10**6),
    "a vector of a record": lambda: LocalRelease([[1e8, 2.0]], VectorLaplace(1.0), "y"),
    "a maximum norm": lambda: Release([4e5, 1.0], KNormLinf(0.2), identity, 10**6),
    "correlated noise": lambda: Release([4e5, 1.0], MultivariateGaussian(NARROW), identity, 10**6),
    "coefficients": lambda: LocalRelease([[1.0, 4e5, 1.0]], HaarWavelet(0.2, 1), "y"),
    # Noise of 0.01 on a numerator of 0.5 times up to 10^6 records, and on the mean square of distances up to 500.
    "a quotient": lambda: quotient(0.01, 100.0),
    "a denominator": lambda: quotient(100.0, 0.01),
    "a variance": lambda: variance(0.01, 1000.0),
    "a large variance of narrow noise": lambda: dpjax.Release([4e5], NOISY_VARIANCE, two_sums, 100),
    "censored": lambda: Release([4e5], Censored(Laplace(0.2), lower=0), identity, 10**6),
}
SAFE = {
    "a vector": lambda: Release([4e5, 1.0], VectorLaplace(1.0), identity, 10**6),
    "correlated noise": lambda: Release([4e5, 1.0], MultivariateGaussian(10 * NARROW), identity, 10**6),
    "a quotient": lambda: quotient(10.0, 10.0),
    "a variance": lambda: variance(0.01, 10.0),
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
