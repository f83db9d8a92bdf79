"""The laws of whole numbers, against SciPy's in float64, in both float types and up to 10^8."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.special import gammaln

from dpjax.models import NegativeBinomialCount, PoissonCount, UniformCount
from dpjax.numerics.counts import deviance, stirling_error
from tests.conftest import FLOAT32

TOLERANCE = 2e-5 if FLOAT32 else 1e-9
NUM_DRAWS, REJECT = 20_000, 1e-4
LAWS = {
    "Poisson of 0.3": (PoissonCount(0.3), stats.poisson(0.3)),
    "Poisson of 30.5": (PoissonCount(30.5), stats.poisson(30.5)),
    "Poisson of 1e8": (PoissonCount(1e8), stats.poisson(1e8)),
    "negative Binomial of 0.5": (NegativeBinomialCount(0.5, 0.2), stats.nbinom(0.2, 0.2 / 0.7)),
    "negative Binomial of 40": (NegativeBinomialCount(40.0, 3.5), stats.nbinom(3.5, 3.5 / 43.5)),
    "negative Binomial of 1e7": (NegativeBinomialCount(1e7, 50.0), stats.nbinom(50.0, 50.0 / (1e7 + 50))),
    "negative Binomial near Poisson": (NegativeBinomialCount(30.0, 1e6), stats.nbinom(1e6, 1e6 / (1e6 + 30))),
    "uniform": (UniformCount(20, 45), stats.randint(20, 46)),
}


@pytest.mark.parametrize("name", LAWS)
def test_log_probabilities(name: str) -> None:
    prior, law = LAWS[name]
    n = np.unique(law.ppf([1e-6, 1e-3, 0.1, 0.5, 0.9, 0.999, 1 - 1e-6]).astype(int))
    # SciPy's own differences of log-gammas of 10^8 leave about eight digits.
    np.testing.assert_allclose(prior.log_probability(n), law.logpmf(n), atol=max(TOLERANCE, 1e-6 * (law.mean() > 1e4)))
    assert np.all(np.isneginf(prior.log_probability(jnp.array([-1, -7]))))
    assert prior.log_probability(n).dtype == jnp.result_type(float)


@pytest.mark.parametrize("n", [99_950_000, 100_000_000, 100_030_001])
def test_a_hundred_million_to_rounding(n: int) -> None:
    mean, d = 1e8, n - 1e8
    # log n! by Stirling's series and n log(n / mean) by its own series, so that nothing cancels.
    u = d / mean
    exact = -0.5 * np.log(2 * np.pi * n) - 1 / (12 * n) - mean * sum((-u) ** k / (k * (k - 1)) for k in range(2, 9))
    np.testing.assert_allclose(PoissonCount(mean).log_probability(jnp.array(n)), exact, atol=TOLERANCE)


def test_probabilities_sum_to_one() -> None:
    n = jnp.arange(2_000)
    for prior in (PoissonCount(25.0), NegativeBinomialCount(30.0, 2.0), UniformCount(0, 0), UniformCount(3, 1_999)):
        np.testing.assert_allclose(jnp.sum(jnp.exp(prior.log_probability(n))), 1.0, atol=TOLERANCE)


def test_series_agree_where_they_meet() -> None:
    for value in (3.0, 15.999, 16.001, 1e4):
        direct = gammaln(value + 1) - (value + 0.5) * np.log(value) + value - np.log(2 * np.pi) / 2
        np.testing.assert_allclose(stirling_error(jnp.asarray(value)), direct, atol=TOLERANCE)
    for value, mean in ((0.0, 3.0), (9.0, 11.1), (9.0, 10.9), (50.0, 2.0)):
        exact = (value * np.log(value / mean) if value else 0.0) + mean - value
        found = deviance(jnp.asarray(value), jnp.asarray(mean), jnp.asarray(value - mean))
        np.testing.assert_allclose(found, exact, atol=TOLERANCE)


@pytest.mark.keys
@pytest.mark.parametrize("name", LAWS)
def test_draws_follow_their_law(name: str) -> None:
    prior, law = LAWS[name]
    draws = np.asarray(jax.jit(jax.vmap(prior.sample))(jax.random.split(jax.random.key(3), NUM_DRAWS)))
    assert draws.dtype == jnp.result_type(int)
    ends = np.unique(law.ppf(np.linspace(0, 1, 21)[1:-1]))
    expected = np.diff(np.concatenate([[0.0], law.cdf(ends), [1.0]])) * NUM_DRAWS
    observed = np.bincount(np.searchsorted(ends, draws), minlength=len(expected))
    kept = expected > 5
    assert stats.chisquare(observed[kept], expected[kept] * observed[kept].sum() / expected[kept].sum()).pvalue > REJECT


@pytest.mark.x32
def test_digits_of_large_draws_are_not_lumped() -> None:
    """A float32 near 10^8 is a multiple of 8; the draws are not."""
    draws = np.asarray(jax.vmap(PoissonCount(1e8).sample)(jax.random.split(jax.random.key(4), 4_000)))
    assert stats.chisquare(np.bincount(draws % 8, minlength=8)).pvalue > REJECT


def test_quantiles_beyond() -> None:
    for prior, law in (LAWS["Poisson of 30.5"], LAWS["negative Binomial of 40"]):
        number = prior.quantile_beyond(1e-12)
        assert law.sf(number) <= 1e-12 < law.sf(number - 1)
