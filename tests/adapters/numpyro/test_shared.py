"""Counts of one distribution for all records: their likelihood and sums by tables, and joint-distribution tests."""

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
from dpjax.adapters.numpyro.shared import TALLIED
from dpjax.data_augmentation.parameters.interweaving import likelihood_of_noise
from tests.conftest import FLOAT32
from tests.tools.perfect_start import REJECT, noise_p_value, parameter_p_value, run

N = 6
TOLERANCE = 1e-4 if FLOAT32 else 1e-10


def inflated(n: int) -> None:
    """A negative binomial distribution with added zeros."""
    gate = numpyro.sample("gate", dist.Beta(2.0, 3.0))
    mean = numpyro.sample("mean", dist.Gamma(3.0, 1.0))
    size = numpyro.sample("size", dist.Gamma(2.0, 1.0))
    with numpyro.plate("people", n):
        numpyro.sample("y", dist.ZeroInflatedDistribution(dist.NegativeBinomial2(mean, size), gate=gate))


def regression(n: int) -> None:
    rate = numpyro.sample("rate", dist.Gamma(2.0, 1.0))
    with numpyro.plate("people", n):
        x = numpyro.sample("x", dist.Normal(0.0, 1.0))
        numpyro.sample("y", dist.Poisson(rate * jnp.exp(0.1 * x)))


LAWS = {
    "gate": lambda gate: (gate, stats.beta(2.0, 3.0)),
    "mean": lambda mean: (mean, stats.gamma(3.0)),
    "size": lambda size: (size, stats.gamma(2.0)),
}
PARAMETERS = {"gate": 0.2, "mean": 4.0, "size": 1.5}


@pytest.fixture(scope="module")
def model() -> dpjax.Model:
    return dpjax.from_numpyro(inflated, records=["y"])


def parameters() -> dict[str, jax.Array]:
    return {name: jnp.asarray(value, float) for name, value in PARAMETERS.items()}


COUNTS = np.arange(40)
NEGATIVE_BINOMIALS: dict[str, tuple[Any, float, float]] = {
    "mean": (dist.NegativeBinomial2(3.0, 2.0), 2.0, 0.4),
    "logits": (dist.NegativeBinomialLogits(2.5, 0.4), 2.5, 1 / (1 + np.exp(0.4))),
    "probability": (dist.NegativeBinomialProbs(2.5, 0.3), 2.5, 0.7),
    "Gamma": (dist.GammaPoisson(2.0, 0.7), 2.0, 0.7 / 1.7),
}


@pytest.mark.parametrize("name", NEGATIVE_BINOMIALS)
def test_negative_binomial_densities_are_scipys(name: str) -> None:
    """NumPyro's own have an error of 1e-6."""
    law, size, success = NEGATIVE_BINOMIALS[name]
    found = on_floats(law.expand((40,))).log_prob(jnp.asarray(COUNTS))
    np.testing.assert_allclose(found, stats.nbinom.logpmf(COUNTS, size, success), rtol=TOLERANCE)


@pytest.mark.parametrize("gate", [0.0, 0.3])
def test_densities_with_added_zeros_are_scipys(gate: float) -> None:
    law = dist.ZeroInflatedPoisson(gate, 2.5).expand((40,))
    exact = np.log((1 - gate) * stats.poisson.pmf(COUNTS, 2.5) + gate * (COUNTS == 0))
    np.testing.assert_allclose(on_floats(law).log_prob(jnp.asarray(COUNTS)), exact, rtol=TOLERANCE)


@pytest.mark.x64
def test_which_records_share_their_distribution(model: dpjax.Model) -> None:
    assert model.noncentred.sums is not None
    assert model.has("summarize")
    other = dpjax.from_numpyro(regression, records=["x", "y"])
    assert other.noncentred.sums is None
    assert not other.has("summarize")


@pytest.mark.parametrize("counts", [[0, 3, 3, 70, 1], [5, 2 * TALLIED, 0, 0, 9]], ids=["narrow", "wide"])
def test_the_likelihood_of_a_tally_is_that_of_the_records(model: dpjax.Model, counts: list[int]) -> None:
    """Both with their gradients, also where each record has its own term."""
    records = {"y": jnp.array(counts)}

    @jax.jit
    def compute(parameters: Any) -> tuple:
        tallied = jax.value_and_grad(lambda each: model.log_likelihood(each, model.summarize(records)))(parameters)
        one_by_one = jax.value_and_grad(lambda each: jnp.sum(model.log_density(each, records)))(parameters)
        return tallied, one_by_one, model.log_likelihood(parameters, model.summarize(records))

    tallied, one_by_one, value = compute(parameters())
    jax.tree.map(lambda one, other: np.testing.assert_allclose(one, other, rtol=TOLERANCE), tallied, one_by_one)
    np.testing.assert_allclose(value, one_by_one[0], rtol=TOLERANCE)


def test_an_impossible_record_has_no_likelihood(model: dpjax.Model) -> None:
    assert model.log_likelihood(parameters(), model.summarize({"y": jnp.array([3, -1])})) == -np.inf


def statistic(record: Any) -> jax.Array:
    """A clamped count, and whether it is 0."""
    return jnp.stack([jnp.clip(record["y"], 0, 8), record["y"] == 0]).astype(float)


RELEASE = dpjax.Release(jnp.zeros(2), dpjax.Laplace(1.5), statistic, N)


def test_the_likelihood_of_noise_is_that_of_its_records(model: dpjax.Model) -> None:
    slow = model._replace(noncentred=model.noncentred._replace(sums=None))
    moved = [parameters(), parameters() | {"mean": jnp.array(300.0)}, parameters() | {"mean": jnp.array(jnp.inf)}]

    @jax.jit
    def compute(key: jax.Array) -> Any:
        record_key, noise_key = jax.random.split(key)
        records = model.sample_records(record_key, parameters(), N)
        noise = model.noncentred.noise(noise_key, parameters(), records)
        pairs = [likelihood_of_noise(each, RELEASE, noise) for each in (model, slow)]
        return [tuple(log_likelihood(each) for log_likelihood in pairs) for each in moved]

    found = np.asarray(compute(jax.random.key(1)))
    np.testing.assert_allclose(found[:, 0], found[:, 1], rtol=TOLERANCE)
    assert found[2, 0] == -np.inf


def p_value(model: dpjax.Model) -> float:
    after = run(jax.random.key(21), model, RELEASE, dpjax.imwg(), interweave=True, num_chains=1_000, num_sweeps=3)
    return min(noise_p_value(after.noise, stats.laplace(scale=1.5)), parameter_p_value(after, LAWS))


@pytest.mark.keys
def test_a_perfect_start_stays_perfect(model: dpjax.Model) -> None:
    assert p_value(model) > REJECT


@pytest.mark.slow
def test_sums_of_other_records_are_found_out(model: dpjax.Model) -> None:
    """A mutation: sums over the noise that is left when the largest count of a sweep is forgotten."""
    honest: Callable = model.noncentred.sums

    def without_the_largest(noise: Any) -> Callable:
        return honest({"y": jnp.where(noise["y"] == jnp.max(noise["y"]), 0.0, noise["y"])})

    wrong = model._replace(noncentred=model.noncentred._replace(sums=without_the_largest))
    assert p_value(wrong) < REJECT


@pytest.mark.slow
def test_a_likelihood_that_forgets_a_count_is_found_out(model: dpjax.Model) -> None:
    """A mutation: the smallest count is tallied once, however often it occurs."""

    def forgetful(records: Any) -> Any:
        tally = model.summarize(records)
        return tally._replace(times=tally.times.at[0].min(1.0))

    assert p_value(model._replace(summarize=forgetful)) < REJECT
