"""Channels of units of several persons beside models that say how many a unit has."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from scipy import special, stats

import dpjax
from dpjax.mechanisms import ReportSums
from tests.adapters.numpyro.conftest import _ranks_and_types_may_differ

__all__ = ["_ranks_and_types_may_differ"]

SIZE = np.array([60, 120, 399, 75, 240, 88])
X = np.linspace(-1.0, 1.0, 6)
KEEP, FLIP, SLOPE = 0.75, 0.25, 0.3
SUMS = np.array([17, 36, 118, 24, 71, 28])
IS_SINGLE = jnp.zeros(()).dtype == np.float32


def sick(size, x, y=None):
    level = numpyro.sample("level", dist.Normal(-3.0, 1.0))
    with numpyro.plate("schools", len(size)):
        numpyro.sample("y", dist.Binomial(size, logits=level + SLOPE * x), obs=y)


def visits(x, y=None):
    level = numpyro.sample("level", dist.Normal(1.0, 1.0))
    with numpyro.plate("schools", len(x)):
        numpyro.sample("y", dist.Poisson(jnp.exp(level + SLOPE * x)), obs=y)


@pytest.fixture(scope="module")
def model() -> dpjax.Model:
    return dpjax.from_numpyro(sick, ["y"], size=SIZE, x=X)


def released(n: Any) -> dpjax.LocalRelease:
    return dpjax.LocalRelease(SUMS, ReportSums(KEEP, FLIP, n), "y")


def log_likelihood(level: float, reports: np.ndarray) -> float:
    """By sums over all counts of each school, and over all numbers of kept bits; `reports` [n] persons reported."""
    found = 0.0
    for size, n, x, total in zip(SIZE, reports, X, SUMS, strict=True):
        count, kept = np.arange(size + 1)[:, None], np.arange(size + 1)[None]
        terms = stats.binom.logpmf(kept, count, KEEP) + stats.binom.logpmf(total - kept, n - count, FLIP)
        of_count = stats.binom.logpmf(count[:, 0], size, special.expit(level + SLOPE * x))
        found += special.logsumexp(of_count + special.logsumexp(terms, axis=1))
    return float(found)


def test_each_school_has_the_number_of_persons_that_reported(model):
    """By enumeration. One number for all moved the level by more than two standard deviations, in silence."""
    likelihood = dpjax.marginal_likelihood(model, released(SIZE))
    for level in (-3.0, -4.5):
        found, expected = float(likelihood({"level": jnp.asarray(level)})), log_likelihood(level, SIZE)
        np.testing.assert_allclose(found, expected, rtol=2e-5 if IS_SINGLE else 1e-10)
    grid = np.linspace(-7.0, -1.0, 121)
    wrong = np.full(6, 399)
    both = [np.array([log_likelihood(level, n) + stats.norm.logpdf(level, -3.0, 1.0) for level in grid])
            for n in (SIZE, wrong)]  # fmt: skip
    means = [special.softmax(one) @ grid for one in both]
    assert means[0] - means[1] > 0.5


REFUSED = {
    "one for all": (399, "n = 399 in unit 0; expected the model's number of persons of 'y', which is fewer"),
    "the smallest": (60, "n = 60 in unit 1; expected the model's number of persons of 'y', which is more"),
    "another order": (np.roll(SIZE, 1), "n = 88 in unit 0; expected the model's number of persons of 'y', which is"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_other_numbers_than_those_of_the_model_are_refused(model, name):
    """The first of them was sampled: channel and model each had a number of persons, and nobody compared them."""
    n, words = REFUSED[name]
    sums = np.minimum(SUMS, n)
    with pytest.raises(ValueError, match=words):
        dpjax.marginal_likelihood(model, dpjax.LocalRelease(sums, ReportSums(KEEP, FLIP, n), "y"))


def test_nothing_is_refused_where_the_model_says_nothing(model):
    """Poisson counts have no number of persons; nor does a school of which nothing was released."""
    dpjax.marginal_likelihood(dpjax.from_numpyro(visits, ["y"], x=X), released(399))
    kept = ReportSums(KEEP, FLIP, np.where(np.arange(6) == 2, 20, SIZE))
    gap = {"y": np.arange(6) == 2}
    dpjax.marginal_likelihood(model, dpjax.Microdata({"y": (np.where(gap["y"], 0, SUMS), kept)}, gap))
