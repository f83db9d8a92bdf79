"""What a user gets wrong is said before anything is drawn, and what is asked of a posterior fits it."""

from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dpjax
from dpjax import mixture
from dpjax.models import GammaPrior

BASE = mixture.NormalInverseGamma(0.0, 0.1, 3.0, 3.0)
VALUES = np.array([-1.0, 0.5, 2.0])


class Column:
    """Numbers of another library, as a column of a table."""

    def __init__(self, *numbers: float | None) -> None:
        self.numbers = numbers

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.numbers, dtype)


def sample(**changes: Any) -> mixture.MixturePosterior:
    """A short run; all that are made share one compiled program."""
    arguments = {"values": VALUES, "channel": dpjax.Laplace(1.0), "component": BASE, "concentration": 1.0}
    arguments |= {"num_chains": 1, "num_warmup": 0, "num_samples": 6, "collect": ("labels",), "progress": False}
    return mixture.sample(jax.random.key(0), **(arguments | changes))


BETA = {"component": mixture.GammaShapes(2.0, 1.0), "channel": None}
BAD = {
    "a missing value of a table": ({"values": Column(1.0, np.nan), "channel": None}, ValueError, "values: given"),
    "None in a table": ({"values": Column(1.0, None)}, ValueError, "values: given"),
    "an object of a table": ({"values": Column(1.0, object())}, TypeError, "values: given an array of object"),
    "a number for records": ({"values": 1.0, "channel": None}, ValueError, r"values: given shape \[\]"),
    "no values": ({"values": None, "channel": None}, TypeError, "values: given None"),
    "a record outside": (
        BETA | {"values": [0.2, 3.0, 0.5, -1.0]},
        ValueError,
        "values: given 3.0 at place 1 and 1 more",
    ),
    "a record on the border": (
        BETA | {"values": [0.2, 1.0, 0.5, 0.7]},
        ValueError,
        "values: given 1.0 at place 1; expected",
    ),
    "integer noise": ({"channel": dpjax.DiscreteGaussian(2.0), "values": [1, 2, 3]}, ValueError, "channel: given Disc"),
    "categories of real records": (
        {"channel": dpjax.RandomizedResponse(0.7, 2), "values": [0, 1, 1]},
        ValueError,
        "channel: given RandomizedResponse on real records",
    ),
    "no concentration": ({"concentration": None}, TypeError, "concentration: given None"),
    "a class for a prior": ({"concentration": GammaPrior}, TypeError, "concentration: given GammaPrior"),
    "priors of two": ({"concentration": GammaPrior([1.0, 2.0], 1.0)}, ValueError, "concentration: given a GammaPrior"),
    "a missing value far down": ({"values": [0.0] * 9 + [np.nan]}, ValueError, r"values: .*, not finite at place 9"),
    "a table of one column": ({"values": VALUES[:, None]}, ValueError, r"values: given shape \[3, 1\]"),
    "a class for a base measure": (
        {"component": mixture.NormalInverseGamma},
        TypeError,
        "component: given the class Normal",
    ),
    "proposals to known records": (
        {"channel": None, "sampler": mixture.conditional(proposals=2)},
        ValueError,
        "proposals: given 2; expected 0",
    ),
    "a scale a person": (
        {"channel": dpjax.Gaussian(np.ones(3)), "component": mixture.TruncatedNormalInverseGamma(0.0, 0.1, 3.0, 3.0)},
        ValueError,
        r"channel.scale: given shape \[3\]",
    ),
    "a number to collect": ({"collect": 3}, TypeError, "collect: given 3; expected a function of a MixtureState"),
    "a name that no state has": ({"collect": "weights"}, ValueError, r"collect: given \['weights'\]; expected a func"),
}


@pytest.mark.x64
@pytest.mark.parametrize("case", BAD)
def test_bad_input(case: str) -> None:
    changes, error, text = BAD[case]
    with pytest.raises(error, match=f"^{text}"):
        sample(**changes)


class OwnNoise:
    """A channel that is none of dpjax's."""

    scale = 0.5

    def __init__(self, normal_noise: bool) -> None:
        normal = dpjax.mechanisms.AddedNoise(self.log_noise, scale=lambda: self.scale, is_normal=normal_noise)
        self.noise = normal

    def log_density(self, value: jax.Array, statistic: jax.Array) -> jax.Array:
        return jnp.sum(self.log_noise(value - statistic))

    def log_noise(self, noise: jax.Array) -> jax.Array:
        return jax.scipy.stats.norm.logpdf(noise, 0.0, self.scale)

    def sample(self, key: jax.Array, statistic: jax.Array) -> jax.Array:
        return statistic + self.scale * jax.random.normal(key, statistic.shape)


def test_noise_that_says_it_is_normal_goes_with_its_base_measure() -> None:
    measure = mixture.TruncatedNormalInverseGamma(0.0, 0.1, 3.0, 3.0)
    assert measure.behind(OwnNoise(True)).noise_variance == 0.25
    for channel in (OwnNoise(False), dpjax.Laplace(1.0), dpjax.Censored(dpjax.Gaussian(1.0), lower=0.0)):
        with pytest.raises(TypeError, match=r"^channel: given \w+; expected dpjax.Gaussian"):
            measure.behind(channel)


def test_base_measures_of_single_numbers() -> None:
    with pytest.raises(ValueError, match=r"^mean: given shape \[2\]; expected one number"):
        mixture.NormalInverseGamma([0.0, 1.0], 0.1, 3.0, 3.0)
    with pytest.raises(TypeError, match=r"^mean: given None"):
        mixture.NormalInverseGamma(None, 0.1, 3.0, 3.0)
    with pytest.raises(ValueError, match=r"^shape: given shape \[2\]"):
        mixture.GammaShapes([1.0, 2.0], 1.0)


BAD_FUNCTIONS = {
    "another name": (lambda weights, theta: weights @ theta["mu"], ValueError, "one that asks for 'mu'"),
    "NumPy": (lambda weights, theta: np.asarray(weights), TypeError, "one that NumPy"),
    "a branch": (lambda weights, theta: weights if weights[0] > 0 else -weights, TypeError, "one that NumPy"),
    "two arrays": (lambda weights, theta: (weights, weights), TypeError, "one that returns a tuple"),
}


@pytest.mark.x64
@pytest.mark.parametrize("case", BAD_FUNCTIONS)
def test_bad_functionals(case: str) -> None:
    function, error, text = BAD_FUNCTIONS[case]
    with pytest.raises(error, match=f"^function: given {text}"):
        sample().functional(function)


def test_values_that_float32_rounds() -> None:
    if jax.config.jax_enable_x64:
        pytest.skip("float64 holds them")
    base = mixture.NormalInverseGamma(1.7e9, 0.1, 3.0, 3.0)
    with pytest.warns(dpjax.release.PrecisionWarning):
        sample(values=1.7e9 + VALUES, component=base)


def test_what_is_asked_of_a_posterior() -> None:
    posterior = sample()
    for grid in (None, [], [[0.0, 1.0]], 0.5, [0.0, np.nan]):
        with pytest.raises((TypeError, ValueError), match=r"^grid: given"):
            posterior.density(grid)
    with pytest.raises(ValueError, match=r"^level: given shape \[2\]"):
        posterior.density([0.0], level=[0.5, 0.9])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"^partition: given ndarray; expected a Partition of 3 records"):
        posterior.plot_co_clustering(np.zeros(3))  # type: ignore[arg-type]
    assert posterior.density(Column(0.0, 1.0)).mean.shape == (2,)


def test_a_functional_reads_what_has_changed() -> None:
    posterior, now = sample(), SimpleNamespace(threshold=1.0)

    def share(weights: jax.Array, theta: dict[str, jax.Array]) -> jax.Array:
        return weights @ jnp.where(theta["mean"] < now.threshold, 1.0, 0.0)

    below = posterior.functional(share)
    now.threshold = np.inf
    np.testing.assert_allclose(posterior.functional(share), 1.0, rtol=1e-5)
    assert below.min() < 0.999
