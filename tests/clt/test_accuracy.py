"""The skewness of the released sum, which the Normal law leaves out: measured, and warned of where it counts."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from scipy import stats

import dpjax
from dpjax.clt.accuracy import cumulants, measure_skewness, warn_of_skewness

KEY = jax.random.key(5)
TOTAL = dpjax.statistics.total("y")


def counts(x: np.ndarray | None) -> None:
    rate = numpyro.sample("rate", dist.Gamma(1.0, 1.0))
    with numpyro.plate("records", len(x)):
        numpyro.sample("y", dist.Poisson(rate * x))


def test_cumulants_are_k_statistics():
    sample = np.random.default_rng(1).gamma(0.5, size=(7, 3, 2)).astype(jnp.result_type(float))
    second, third = cumulants(jnp.asarray(sample))
    rtol = 1e-10 if jax.config.jax_enable_x64 else 1e-5
    np.testing.assert_allclose(second, stats.kstat(sample.astype(float), 2, axis=0).mean(axis=0), rtol=rtol)
    np.testing.assert_allclose(third, stats.kstat(sample.astype(float), 3, axis=0).mean(axis=0), rtol=rtol)


@pytest.mark.x32
def test_skewness_is_that_of_records_of_their_own_laws_with_noise():
    """Of Poisson counts every cumulant is the rate; those of all records together would be far larger."""
    x = np.concatenate([np.full(150, 0.02), np.full(50, 2.0)])
    model = dpjax.from_numpyro(counts, ["x", "y"], x=jnp.asarray(x))
    release = dpjax.Release([100.0], dpjax.Gaussian(3.0), TOTAL, len(x))
    rates = {"rate": jnp.linspace(0.05, 0.2, 40)}
    found = measure_skewness(KEY, model, release, jnp.zeros(1), rates)
    total = np.asarray(rates["rate"]) * x.sum()
    exact = np.sqrt(np.mean((total / (total + 9.0) ** 1.5) ** 2))
    np.testing.assert_allclose(found, [exact], rtol=0.1)


@pytest.mark.x64
@pytest.mark.parametrize(("cell", "noticed"), [(2.0, True), (400.0, False)])
def test_a_rare_cell_is_warned_of(cell, noticed):
    """With two events behind noise of 0.5 the count's posterior is half as wide again under the Normal law."""
    n = 20_000
    release = dpjax.Release([cell, n - cell], dpjax.Gaussian(0.5), dpjax.statistics.cells("cell", 2), n)
    model = dpjax.models.categorical([1.0, 1.0])
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        posterior = dpjax.sample_clt(KEY, model, release, num_warmup=100, num_samples=100, progress=False)
    noise = 0.25 + posterior.draws["probabilities"][..., 0] * n
    expected = np.sqrt(np.mean((noise - 0.25) ** 2 / noise**3))
    np.testing.assert_allclose(posterior.info["skewness"][0], expected, rtol=0.25)
    assert any("has skewness" in str(one.message) for one in said) == noticed


def test_the_warning_names_the_coordinate_and_what_to_do():
    with pytest.warns(UserWarning, match=r"Coordinate 1 .* about 3 has.* 17 % too large. Use dpjax.sample"):
        warn_of_skewness(np.array([0.1, 0.58]))
