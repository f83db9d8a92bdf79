"""Numbers that look right and are not, by one table."""

from fractions import Fraction

import jax
import numpy as np
import pytest

import dpjax

MASKED = np.ma.array([1.0, 2.0], mask=[True, False])
KEYS = jax.random.split(jax.random.key(0), 3)
STATISTIC = dpjax.statistics.cells("cell", 2)


def release_of(n: int) -> dpjax.Release:
    return dpjax.Release([2.0, 1.0], dpjax.Laplace(1.0), STATISTIC, n)


def sample(imputation: dpjax.base.Imputation, release: dpjax.Release | None = None, **options: int) -> dpjax.Posterior:
    model = dpjax.models.categorical([1.0, 1.0])
    return dpjax.sample(jax.random.key(0), model, release or release_of(3), imputation=imputation, **options)


BAD = {
    "no scale": (lambda: dpjax.Laplace([]), "scale"),
    "masked scale": (lambda: dpjax.Laplace(MASKED), "scale"),
    "masked value": (lambda: dpjax.Release(MASKED, dpjax.Laplace(1.0), STATISTIC, n=3), "value"),
    "masked thresholded values": (
        lambda: dpjax.releases.thresholded(["a", "b"], MASKED, ["a", "b", "c"], dpjax.Laplace(1.0), threshold=1, n=9),
        "values",
    ),
    "a fraction": (lambda: dpjax.Laplace(Fraction(1, 3)), "scale"),
    "a scale beyond floats": (lambda: dpjax.Laplace(10**400), "scale"),
    "a value beyond floats": (lambda: dpjax.Release([10**400], dpjax.Laplace(1.0), STATISTIC, n=3), "value"),
    "a number of records beyond floats": (lambda: release_of(10**400), "n"),
    "more records than can be told apart": (lambda: sample(dpjax.imwg(), release_of(10**12)), "release"),
    "a key as value": (lambda: dpjax.Release(jax.random.key(0), dpjax.Laplace(1.0), STATISTIC, n=3), "value"),
    "keys as values": (
        lambda: dpjax.LocalRelease(jax.random.split(jax.random.key(0), 3), dpjax.Laplace(1.0)),
        "values",
    ),
    "keys as numbers": (lambda: dpjax.models.categorical(KEYS), "concentration"),
    "soma, not called": (lambda: sample(dpjax.soma), "imputation"),
    "counts, not called": (lambda: sample(dpjax.counts), "imputation"),
    "chains beyond any memory": (lambda: sample(dpjax.imwg(), num_chains=10**9), "num_chains"),
    "masked records": (lambda: dpjax.LocalRelease(MASKED, dpjax.Laplace(1.0), "y"), "values"),
}


@pytest.mark.filterwarnings("ignore::dpjax.release.PrecisionWarning")
@pytest.mark.parametrize(("build", "argument"), BAD.values(), ids=BAD)
def test_bad_numbers_are_refused_by_name(build, argument):
    with pytest.raises((TypeError, ValueError), match=rf"(?s){argument}: given .*; expected "):
        build()


@pytest.mark.filterwarnings("ignore::dpjax.release.PrecisionWarning")
@pytest.mark.skipif(jax.config.jax_enable_x64, reason="64 bits hold such numbers")
def test_a_table_of_more_records_than_32_bits_count_is_refused():
    with pytest.raises(ValueError, match="release: given n = 1000000000000 records; expected at most 2147483647"):
        sample(dpjax.counts(), release_of(10**12))
