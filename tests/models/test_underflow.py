"""Priors with mass beyond the floats say so, and their draws are positive and finite all the same."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
from numpyro import distributions as dist
from scipy import special, stats

import dpjax
from dpjax import mixture, models
from tests.conftest import FLOAT32

SMALL = 0.02 if FLOAT32 else 0.002
LEAST = float(jnp.finfo(jnp.zeros((), float).dtype).tiny)

PRIORS = {
    "Gamma": lambda: models.GammaPrior(SMALL, 1.0),
    "inverse Gamma": lambda: models.InverseGammaPrior(SMALL, 1.0),
}


@pytest.mark.parametrize("name", PRIORS)
def test_draws_of_a_prior_beyond_the_floats_are_positive_and_finite(name: str) -> None:
    with pytest.warns(UserWarning, match=r"^shape: given .* of this prior lies beyond the range of float"):
        prior = PRIORS[name]()
    draws = np.asarray(jax.jit(jax.vmap(prior.sample))(jax.random.split(jax.random.key(1), 4_000)), np.float64)
    assert np.all(draws > 0)
    assert np.all(np.isfinite(draws))
    at_end = np.sum(draws == (draws.min() if name == "Gamma" else draws.max()))
    chance = special.gammainc(SMALL, 4 * LEAST)
    assert stats.binomtest(int(at_end), draws.size, chance).pvalue > 1e-4


def test_priors_within_the_floats_are_silent() -> None:
    models.GammaPrior(0.1, 1.0)
    models.InverseGammaPrior([0.5, 1.0], 1.0)
    jax.jit(lambda shape: models.GammaPrior(shape, 1.0).sample(jax.random.key(0)))(SMALL)


def test_base_measures_and_sites_beyond_the_floats_are_named() -> None:
    with pytest.warns(UserWarning, match=r"^shape: given"):
        mixture.GammaShapes(SMALL, 1.0)
    with pytest.warns(UserWarning, match=r"^shape: given"):
        mixture.NormalInverseGamma(0.0, 1.0, SMALL, 1.0)

    def program(n: int) -> None:
        rate = numpyro.sample("rate", dist.Gamma(SMALL, 1.0))
        with numpyro.plate("records", n):
            numpyro.sample("y", dist.Exponential(rate))

    with (
        jax.numpy_rank_promotion("allow"),
        jax.numpy_dtype_promotion("standard"),
        pytest.warns(UserWarning, match=r"^the shape of the site 'rate': given"),
    ):
        dpjax.from_numpyro(program, records=["y"])


def test_probabilities_that_are_rounded_to_zero_have_no_noncentred_form() -> None:
    assert not models.categorical([SMALL, 1.0]).has("noncentred")
    assert models.categorical([0.5, 1.0]).has("noncentred")
    assert not models.naive_bayes([1.0, 1.0], np.full((1, 2, 2), SMALL)).has("noncentred")


def exact_mean(concentration: np.ndarray, value: np.ndarray, scale: float, n: int) -> np.ndarray:
    """E[p | noisy counts of three cells] by enumeration of the counts."""
    counts = np.array([(i, j, n - i - j) for i in range(n + 1) for j in range(n + 1 - i)])
    prior = special.gammaln(concentration[None] + counts) - special.gammaln(counts + 1)
    weights = np.exp(np.sum(prior + stats.laplace.logpdf(value[None], counts, scale), axis=1))
    means = (concentration[None] + counts) / (concentration.sum() + n)
    return weights @ means / weights.sum()


@pytest.mark.slow
def test_the_default_sampler_is_right_for_probabilities_near_zero() -> None:
    concentration, value = np.full(3, 0.04), np.array([15.0, 3.0, 1.0])
    release = dpjax.Release(value, dpjax.Laplace(3.0), lambda record: jax.nn.one_hot(record["cell"], 3), 20)
    model = models.categorical(concentration)
    posterior = dpjax.sample(jax.random.key(2), model, release, num_chains=48, num_warmup=200, num_samples=2_000)
    means = np.asarray(posterior.draws["probabilities"], np.float64).mean(axis=1)
    error = means.std(axis=0, ddof=1) / np.sqrt(len(means))
    assert np.all(np.abs(means.mean(axis=0) - exact_mean(concentration, value, 3.0, 20)) < 5 * error)
