"""Mechanisms as Tumult Analytics says them, from its keys and values."""

import enum

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import dpjax
from dpjax.adapters import tumult
from dpjax.adapters.tumult import mechanism_from_tumult
from tests.conftest import FLOAT32

# What opendp.mod.serialize of version 0.16.0 makes of a vector measurement, shortened by its input metric and versions.
LAPLACE = """{"__function__": "make_laplace", "__module__": "measurements", "__kwargs__": {
"input_domain": {"__function__": "vector_domain", "__module__": "domains", "__kwargs__": {
"atom_domain": {"__function__": "atom_domain", "__kwargs__": {"bounds": null, "nan": false, "T": "f64"}}}},
"scale": 3.0, "k": null, "MO": "MaxDivergence"}}"""


class Noise(enum.Enum):
    """As that library has it."""

    LAPLACE = 1
    GEOMETRIC = 2
    DISCRETE_GAUSSIAN = 3
    EXPONENTIAL = 4
    GAUSSIAN = 5


@pytest.mark.parametrize(
    ("kind", "parameter", "mechanism"),
    [
        (Noise.LAPLACE, 2.0, dpjax.Laplace(2.0)),
        (Noise.GEOMETRIC, 2, dpjax.DiscreteLaplace(2.0)),
        (Noise.DISCRETE_GAUSSIAN, 9.0, dpjax.DiscreteGaussian(3.0)),
        ("GAUSSIAN", 9.0, dpjax.Gaussian(3.0)),
    ],
)
def test_noise_of_tumult_is_read(kind, parameter, mechanism):
    assert mechanism_from_tumult({"noise_mechanism": kind, "noise_parameter": parameter}) == mechanism


@pytest.mark.parametrize(
    ("noise", "error", "message"),
    [
        ({"noise_mechanism": Noise.EXPONENTIAL, "noise_parameter": 1.0}, ValueError, "EXPONENTIAL"),
        ({"noise_mechanism": "LAPLACE", "noise_parameter": -1.0}, ValueError, "noise_parameter"),
        ({"noise_mechanism": "LAPLACE"}, TypeError, "noise_parameter"),
    ],
)
def test_other_noise_of_tumult_is_refused(noise, error, message):
    with pytest.raises(error, match=message):
        mechanism_from_tumult(noise)


AGES = {"low": 0, "high": 100, "field": "age", "n": 20, "num_bins": 400}


@pytest.mark.parametrize("budget", [{"epsilon": 0.8}, {"rho": 0.08}])
def test_quantiles_of_tumult_are_drawn_between_neighbouring_values(budget):
    """The density is that of the interval that the value is in, over its length, by the formula of its source."""
    release = tumult.read_quantile(41.3, 0.25, **AGES, **budget)
    records = np.sort(np.random.default_rng(1).uniform(0, 100, 20))
    total = np.histogram(records, release.statistic.edges)[0].astype(float)
    ends = np.r_[0.0, records, 100.0]
    weights = np.diff(ends) * np.exp(-0.8 * np.abs(np.arange(21) - 5) / (2 * 0.75))
    place = np.searchsorted(records, 41.3)
    expected = np.log(weights[place] / weights.sum() / np.diff(ends)[place])
    np.testing.assert_allclose(release.mechanism.log_density(np.array([41.3]), total), expected, atol=5e-3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "epsilon, rho: given neither"),
        ({"epsilon": 1.0, "rho": 1.0}, "epsilon, rho: given epsilon and rho"),
        ({"rho": -1.0}, "rho: given -1.0"),
        ({"epsilon": 1.0, "quantile": 1.0}, "quantile: given 1.0"),
    ],
)
def test_quantiles_of_tumult_without_one_budget_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        tumult.read_quantile(41.3, **{"quantile": 0.25} | AGES | options)


def test_an_average_is_that_of_a_clamped_count():
    """Catches a count that is not set to 1 where it was below, and another middle than that of the bounds."""
    noise = {"sum_noise": {"noise_mechanism": Noise.LAPLACE, "noise_parameter": 3.0}}
    counts = {"noise_mechanism": Noise.GEOMETRIC, "noise_parameter": 2.0}
    bounds = {"field": "y", "low": 1.0, "high": 4.0}
    release = tumult.read_average(2.9, **bounds, **noise, count_noise=counts, n=3)
    ages = np.array([1.5, 5.0, 3.0])
    found = float(release.log_likelihood({"y": jnp.asarray(ages)}))
    multiples = np.arange(1, 400)
    law = np.exp(-np.abs(np.arange(-400, 401)) / 2.0)
    law /= law.sum()
    probability = np.append(law[: 400 + 1 - 3 + 1].sum(), law[402 - 3 : 402 - 3 + 398])
    noisy = stats.laplace.pdf(0.4 * multiples - np.sum(np.clip(ages, 1.0, 4.0) - 2.5), scale=3.0)
    np.testing.assert_allclose(found, np.log(np.sum(probability * multiples * noisy)), rtol=1e-5 if FLOAT32 else 1e-10)


def test_an_average_of_integers_is_a_fraction():
    """Catches a middle of integers that is not whole, and a count that may have been below 1."""
    noise = {"sum_noise": dpjax.DiscreteLaplace(3.0), "count_noise": dpjax.DiscreteLaplace(2.0)}
    release = tumult.read_average(2 + 13 / 37, field="y", low=0, high=5, **noise, n=60, whole=True)
    assert release.value.tolist() == [13.0, 37.0]
    assert release.statistic({"y": jnp.asarray(4.0)}).tolist() == [2.0, 1.0]
    with pytest.raises(ValueError, match="n: given 30 records, noise of scale 2; expected at least 41 records"):
        tumult.read_average(2.5, field="y", low=0, high=5, **noise, n=30, whole=True)
    with pytest.raises(ValueError, match="low, high: given 5 and 0; expected low < high"):
        tumult.read_average(2.5, field="y", low=5, high=0, **noise, n=60)
