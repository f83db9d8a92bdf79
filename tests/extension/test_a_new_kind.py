"""A mechanism of a new kind is one file: samplers ask it for what it says, and nothing else is changed."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import dpjax
from dpjax import statistics
from dpjax.models import NormalPrior, normal
from tests.extension.thinned import Thinned
from tests.extension.two_cells import CELLS, MODEL, N, agrees

RELEASE = dpjax.Release([1.0, 2.0], Thinned(0.6), CELLS, N)


def test_law() -> None:
    counts, values = np.meshgrid(np.arange(7.0), np.arange(7.0))
    found = Thinned(0.6).log_density_terms(jnp.asarray(values), jnp.asarray(counts))
    np.testing.assert_allclose(np.exp(found), stats.binom.pmf(values, counts, 0.6), rtol=1e-4, atol=1e-6)
    draws = np.asarray(Thinned(0.6).sample(jax.random.key(1), jnp.full(10_000, 6.0)))
    np.testing.assert_allclose(draws.mean(), 3.6, atol=6 * np.sqrt(6 * 0.24 / 10_000))


@pytest.mark.parametrize("imputation", [None, dpjax.imwg()], ids=["chosen", "records"])
def test_chains_agree_with_enumeration(imputation: object) -> None:
    """Most starts have fewer than were seen of a cell, which the bounds of the sums exclude."""
    options = {} if imputation is None else {"imputation": imputation}
    options |= {"num_warmup": 50, "num_samples": 500, "progress": False}
    assert agrees(dpjax.sample(jax.random.key(2), MODEL, RELEASE, **options))


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ValueError, match=r"value: given .*; expected whole numbers"):
        dpjax.Release([1.5, 2.0], Thinned(0.6), CELLS, N)
    with pytest.raises(ValueError, match=r"value: given a negative count"):
        dpjax.Release([-1.0, 2.0], Thinned(0.6), CELLS, N)
    total = dpjax.Release([1.0], Thinned(0.6), statistics.total("y", -2, 2), N)
    with pytest.raises(ValueError, match=r"mechanism: given .*, whose noise is whole, on a statistic that is not"):
        dpjax.gibbs(normal(mean_prior=NormalPrior(0.0, 1.0), variance=1.0), total)


def test_it_is_described() -> None:
    words = str(dpjax.describe(RELEASE))
    assert "Noise: counts of a Poisson subsample of rate 0.6." in words
