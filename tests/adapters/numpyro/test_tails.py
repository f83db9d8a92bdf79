"""What lies far out: counts beyond the last digit of a uniform, values beyond the support, priors that are cut."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
from numpyro import distributions as dist
from scipy import stats

import dpjax
from dpjax import models
from dpjax.adapters.numpyro.forms import form_of
from dpjax.data_augmentation.records.proposals import build_proposal
from dpjax.numerics import decision_uniforms
from tests.conftest import FLOAT32

LAST = np.nextafter(np.float32(1), np.float32(0))
"""The largest uniform of single precision."""


@pytest.mark.parametrize(
    ("law", "most"),
    [(dist.BetaBinomial(2.0, 3.0, 20), 20), (dist.Binomial(20, probs=0.999), 20), (dist.Poisson(2.5), 25)],
)
def test_sums_below_1_do_not_pass_the_last_count(law: Any, most: int) -> None:
    uniforms = jnp.array([0.0, LAST, 1 - jnp.finfo(float).epsneg])
    counts = form_of(law.expand((3,))).value(uniforms)
    assert np.all((counts >= 0) & (counts <= most))
    assert np.all(np.isfinite(law.log_prob(counts)))


def test_a_second_mode_is_found_beyond_a_gap() -> None:
    law = dist.ZeroInflatedPoisson(0.95, 300.0).expand((2,))
    np.testing.assert_allclose(form_of(law).value(jnp.array([0.9, 0.975])), [0, 300], atol=3)


def poisson(n: int) -> None:
    rate = numpyro.sample("rate", dist.Gamma(2.0, 1.0))
    with numpyro.plate("records", n):
        numpyro.sample("y", dist.Poisson(rate))


def test_counts_that_no_uniform_gives_have_no_noise_and_stay() -> None:
    model, parameters = dpjax.from_numpyro(poisson, records=["y"], n=3), {"rate": jnp.array(2.5)}
    records = {"y": jnp.array([3, 200, 2_000])}

    @jax.jit
    def compute() -> tuple:
        noise = model.noncentred.noise(jax.random.key(0), parameters, records)
        proposal = build_proposal(model, correlated=True)(jax.random.key(1), parameters, records, 0.9)
        return noise, model.noncentred.possible(parameters, noise), proposal

    noise, possible, proposal = compute()
    np.testing.assert_array_equal(np.isfinite(noise["y"]), [True, False, False])
    np.testing.assert_array_equal(possible, [True, False, False])
    np.testing.assert_array_equal(proposal["y"][1:], records["y"][1:])


def test_rates_whose_counts_are_beyond_reach_are_impossible() -> None:
    model = dpjax.from_numpyro(poisson, records=["y"], n=3)
    noise = {"y": jnp.array([0.1, 0.5, 0.9])}
    assert not np.any(model.noncentred.possible({"rate": jnp.array(3e12)}, noise))
    own = form_of(dist.Poisson(jnp.full(3, 3e12)))
    assert not np.any(own.possible(noise["y"]))


@pytest.mark.parametrize("law", [
    dist.Poisson(jnp.array([7.0, 3e6, 1e9])),
    dist.NegativeBinomial2(jnp.array([7.0, 3e6, 1e8]), 1e6),
    dist.Binomial(jnp.array([10, 10_000_000, 1_000_000_000]), probs=0.25),
    dist.ZeroInflatedPoisson(jnp.full(3, 0.25), jnp.array([7.0, 3e6, 1e9])),
])  # fmt: skip
def test_counts_with_a_large_mean_of_their_own_have_noise(law: Any) -> None:
    """A search over one count after another ended at a million."""
    form = form_of(law)

    @jax.jit
    def compute() -> tuple:
        counts = form.value(jnp.array([0.3, 0.5, 0.9]))
        noise = form.noise(jax.random.key(0), counts)
        return counts, noise, form.value(noise), form.possible(noise)

    counts, noise, again, possible = map(np.asarray, compute())
    np.testing.assert_array_equal(again, counts)
    np.testing.assert_allclose(noise, [0.3, 0.5, 0.9], atol=0.3)
    np.testing.assert_array_equal(possible, True)
    assert np.all(abs(counts[1:] / law.mean[1:] - 1) < 1)


def test_counts_of_millions_have_noise() -> None:
    model, parameters = dpjax.from_numpyro(poisson, records=["y"], n=3), {"rate": jnp.array(3e6)}
    noise = {"y": jnp.array([0.1, 0.5, 0.9])}
    assert np.all(model.noncentred.possible(parameters, noise))
    found, drawn = model.noncentred.records(parameters, noise), model.sample_records(jax.random.key(2), parameters, 3)
    np.testing.assert_allclose(found["y"], stats.poisson(3e6).ppf(noise["y"]), atol=3 if FLOAT32 else 0)
    np.testing.assert_allclose(drawn["y"], 3e6, rtol=0.01)


def test_cells_that_do_not_exist_have_no_density() -> None:
    tables = {"class_probabilities": jnp.ones(2) / 2, "feature_probabilities": jnp.ones((1, 2, 3)) / 3}
    table = models.categorical([1.0, 1.0, 1.0]).log_density(
        {"probabilities": jnp.ones(3) / 3}, {"cell": jnp.array([2, 7, -1])}
    )
    np.testing.assert_allclose(table, [-np.log(3), -np.inf, -np.inf], rtol=1e-6)
    records = {"class": jnp.array([1, 2, 0]), "features": jnp.array([[2], [0], [3]])}
    bayes = models.naive_bayes([1.0, 1.0], jnp.ones((1, 2, 3))).log_density(tables, records)
    np.testing.assert_allclose(bayes, [-np.log(6), -np.inf, -np.inf], rtol=1e-6)


def test_no_decision_hangs_on_a_uniform_of_0() -> None:
    draws = np.asarray(jax.jit(lambda key: decision_uniforms(key, (2**24,), jnp.float32))(jax.random.key(4)))
    assert np.sum(draws < 2.0**-23) > 0
    assert draws.min() == 2.0**-24
