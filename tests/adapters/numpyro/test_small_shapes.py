"""Record laws with small and large shapes: draws, density and noise describe one law, that of SciPy."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
from numpyro import distributions as dist
from scipy import stats

import dpjax
from dpjax.adapters.numpyro.floats import on_floats
from dpjax.adapters.numpyro.forms import draw_value, form_of
from tests.conftest import FLOAT32
from tests.models.test_small_shapes import posterior_mean
from tests.tools.perfect_start import REJECT

NUM_RECORDS = 20_000
ROUNDING = 5e-4 if FLOAT32 else 1e-8
"""Of log-densities at shapes of 1,000: terms of a thousand cancel."""

UNIT = [(0.02, 0.02), (0.02, 5.0), (1.0, 0.02), (1e3, 0.02), (0.02, 1e3), (0.3, 0.05), (2.0, 3.0), (1e3, 1e3)]
POSITIVE = [(0.02, 1e-6), (0.02, 1.0), (0.02, 1e6), (0.3, 1.0), (2.0, 1e-3), (1e3, 1.0)]

LAWS: dict[str, tuple[Callable[[Any, Any], Any], list]] = {
    "Beta": (lambda a, b: dist.Beta(a, b), UNIT),
    "Kumaraswamy": (lambda a, b: dist.Kumaraswamy(a, b), UNIT),
    "Gamma": (lambda a, b: dist.Gamma(a, b), POSITIVE),
    "InverseGamma": (lambda a, b: dist.InverseGamma(a, b), POSITIVE),
    "Weibull": (lambda a, b: dist.Weibull(b, a), POSITIVE),
    "Pareto": (lambda a, b: dist.Pareto(b, a), POSITIVE),
}
ORACLES: dict[str, Callable[[float, float], Any]] = {
    "Beta": stats.beta,
    "Gamma": lambda a, b: stats.gamma(a, scale=1 / b),
    "InverseGamma": lambda a, b: stats.invgamma(a, scale=b),
    "Weibull": lambda a, b: stats.weibull_min(a, scale=b),
    "Pareto": lambda a, b: stats.pareto(a, scale=b),
}
"""SciPy has no Kumaraswamy law: a power of its Beta(1, b) draws is one."""


def moved(shape: jax.Array) -> jax.Array:
    """A shape nearby, so that records tell one from the other, but not surely."""
    return shape * (1 + 0.3 / jnp.sqrt(1 + shape))


def study(build: Callable, both: bool, a: jax.Array, b: jax.Array, key: jax.Array) -> dict[str, jax.Array]:
    """Draws at one shape, or two, and at moved ones; what densities and noise say of the move from one to the other."""
    draw_key, moved_key, noise_key = jax.random.split(key, 3)
    one, other = (build(*shapes).expand((NUM_RECORDS,)) for shapes in ((a, b), (moved(a), moved(b) if both else b)))
    values = draw_value(draw_key, one)
    noise = form_of(one).noise(noise_key, values)
    density = form_of(one).log_density
    log_noise = 0.0 * noise if density is None else form_of(other).log_density(noise) - density(noise)
    return {
        "values": values,
        "moved": draw_value(moved_key, other),
        "back": form_of(one).value(noise),
        "log_ratio": on_floats(other).log_prob(values) - on_floats(one).log_prob(values),
        "naive_log_ratio": other.log_prob(values) - one.log_prob(values),
        "transported": form_of(other).value(noise),
        "log_noise": log_noise,
    }


def mean_p_value(samples: np.ndarray, mean: float = 1.0, variance: float = 0.0) -> float:
    """That samples have a mean, itself known up to a variance."""
    error = np.sqrt((samples.var() + variance) / samples.size) + ROUNDING
    return float(2 * stats.norm.sf(abs(samples.mean() - mean) / error))


def weighted_p_value(weights: np.ndarray, values: np.ndarray, target: np.ndarray) -> float:
    """That weighted values have the law of the target, at three of its quantiles."""
    p_values = [mean_p_value(weights)]
    for level in np.quantile(target, (0.1, 0.5, 0.9)):
        share = np.mean(target <= level)
        p_values.append(mean_p_value(weights * (values <= level), share, share * (1 - share)))
    return min(p_values) * len(p_values)


QUICK = ("Beta",)
MARKED = [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in LAWS]


@pytest.fixture(scope="module", params=MARKED)
def studied(request: pytest.FixtureRequest) -> tuple[str, list, dict[str, np.ndarray]]:
    build, cases = LAWS[request.param]
    a, b = (jnp.array(column) for column in zip(*cases, strict=True))
    keys = jax.random.split(jax.random.key(7), a.size)
    found = jax.jit(jax.vmap(lambda a, b, key: study(build, cases is UNIT, a, b, key)))(a, b, keys)
    return request.param, cases, {name: np.asarray(leaf, np.float64) for name, leaf in found.items()}


def test_all_is_finite_and_noise_gives_the_values_back(studied: tuple) -> None:
    name, _, found = studied
    for part in ("values", "back", "log_ratio", "transported", "log_noise"):
        assert np.all(np.isfinite(found[part])), (name, part)
    np.testing.assert_allclose(found["back"], found["values"], rtol=1e-4 if FLOAT32 else 1e-11)


def test_draws_follow_the_law_of_scipy(studied: tuple) -> None:
    """Up to what the end cells hold."""
    name, cases, found = studied
    for case, values in zip(cases, found["values"], strict=True):
        if name in ORACLES:
            law = ORACLES[name](*case)
            inside = values[(values > values.min()) & (values < values.max())]
            edges = law.cdf([inside.min(), inside.max()]) if inside.size else np.zeros(2)
            shares = np.mean(values < inside.min()), np.mean(values > inside.max())
            assert min(binomial_p_values(shares, edges)) > REJECT, (name, case)
            if edges[1] - edges[0] > 0.01:
                assert stats.kstest((law.cdf(inside) - edges[0]) / (edges[1] - edges[0]), "uniform").pvalue > REJECT


def binomial_p_values(shares: tuple[float, float], edges: np.ndarray) -> list[float]:
    """That as many draws are below and above these edges as should be; the extreme one is itself not inside."""
    expected = np.clip([edges[0], 1 - edges[1]], 1e-9, 1.0)
    counts = [round(share * NUM_RECORDS) for share in shares]
    return [
        1.0 if count <= 1 else stats.binomtest(count, NUM_RECORDS, chance).pvalue
        for count, chance in zip(counts, expected, strict=True)
    ]


def test_densities_are_those_of_the_draws(studied: tuple) -> None:
    name, cases, found = studied
    rejected = []
    for place, (case, values, moved) in enumerate(zip(cases, found["values"], found["moved"], strict=True)):
        weights, naive = (np.exp(found[part][place]) for part in ("log_ratio", "naive_log_ratio"))
        assert weighted_p_value(weights, values, moved) > REJECT, (name, case)
        rejected.append(not weighted_p_value(naive, values, moved) > REJECT)
    if FLOAT32 or cases is UNIT:
        assert any(rejected), "NumPyro's own densities pass"


def test_noise_carries_one_law_to_another(studied: tuple) -> None:
    name, cases, found = studied
    for case, weights, values, target in zip(
        cases, np.exp(found["log_noise"]), found["transported"], found["moved"], strict=True
    ):
        assert weighted_p_value(weights, values, target) > REJECT, (name, case)


@pytest.mark.slow
def test_the_default_sampler_finds_a_small_shape() -> None:
    """With interweaving, which draws the noise of rounded records within their cell."""

    def program(n: int) -> None:
        b = numpyro.sample("b", dist.Gamma(1.0, 1.0))
        with numpyro.plate("records", n):
            numpyro.sample("y", dist.Beta(1.0, b))

    release = dpjax.Release([90.0], dpjax.Laplace(2.0), dpjax.statistics.total("y", 0, 1), n=100)
    model = dpjax.from_numpyro(program, records=["y"])
    posterior = dpjax.sample(jax.random.key(1), model, release, num_chains=4, num_warmup=500, num_samples=3_000)
    error = posterior.summary()["b"]["mcse_mean"]
    assert abs(float(np.mean(posterior.draws["b"])) - posterior_mean(90.0, 2.0, 100)) < 5 * np.hypot(error, 0.001)
