"""Chains that start at exact draws of the posterior stay in it, and those of planted faults do not."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from scipy import stats
from scipy.special import logsumexp, softmax

import dpjax
from dpjax.data_augmentation.parameters import initial_tuning
from dpjax.data_augmentation.problem import augment
from dpjax.data_augmentation.summed_out import MarginalLikelihood, summed_state
from dpjax.data_augmentation.sweep import build_sweep
from tests.tools.perfect_start import REJECT

RELEASED = np.array([14, 31, -1])
EXPOSURE = np.array([2.0, 4.0, 0.5])
NUMBERS = np.arange(200)
RATES = np.linspace(0.02, 20.0, 2_000)
NUM_CHAINS, NUM_SWEEPS = 4_000, 3


def visits(exposure: Any, y: Any = None) -> None:
    rate = numpyro.sample("rate", dist.Gamma(5.0, 1.0))
    with numpyro.plate("weeks", len(exposure)):
        numpyro.sample("y", dist.Poisson(rate * exposure), obs=y)


def model(exposure: np.ndarray = EXPOSURE) -> dpjax.Model:
    return dpjax.from_numpyro(visits, ["y"], exposure=jnp.asarray(exposure, float))


def probabilities() -> np.ndarray:
    """The posterior probability of each rate."""
    of_counts = stats.poisson.logpmf(NUMBERS, EXPOSURE[:, None] * RATES[:, None, None])
    of_noise = stats.dlaplace.logpmf(RELEASED[:, None] - NUMBERS, 0.5)
    return softmax(stats.gamma.logpdf(RATES, 5.0) + logsumexp(of_counts + of_noise, axis=2).sum(axis=1))


def right(likelihood: MarginalLikelihood) -> MarginalLikelihood:
    return likelihood


def without_weights(likelihood: MarginalLikelihood) -> MarginalLikelihood:
    terms: Any = likelihood.terms
    return replace(likelihood, terms=replace(terms, log_released=jnp.zeros_like(terms.log_released)))


def without_offset(likelihood: MarginalLikelihood) -> MarginalLikelihood:
    return replace(likelihood, model=model(np.ones(3)))


def of_one_row(likelihood: MarginalLikelihood) -> MarginalLikelihood:
    return replace(likelihood, weights=likelihood.weights.at[0].set(0.0))


@pytest.fixture(scope="module")
def p_value_of() -> Any:
    """How probable it is that chains, which start in the posterior, are still in it after some steps."""
    weights, release = probabilities(), dpjax.LocalRelease(RELEASED, dpjax.DiscreteLaplace(2.0), "y")
    drawn = np.random.default_rng(0).choice(RATES, NUM_CHAINS, p=weights)
    starts = {"rate": jnp.asarray(drawn + np.random.default_rng(1).uniform(-0.005, 0.005, NUM_CHAINS), float)}
    own = model()
    likelihood = dpjax.marginal_likelihood(own, release, jax.tree.map(lambda leaf: leaf[:50], starts))
    plan = augment(own, release, allow_sums=True).plan
    tuning = initial_tuning(jax.random.key(2), own)._replace(step_size=jnp.asarray(0.3, float))

    @jax.jit
    def run(likelihood: MarginalLikelihood) -> Any:
        sweep = build_sweep(likelihood.model, likelihood, plan)

        def chain(key: Any, parameters: Any) -> Any:
            state = summed_state(plan, parameters, likelihood)
            keys = jax.random.split(key, NUM_SWEEPS)
            return jax.lax.scan(lambda state, key: (sweep.move(key, state, tuning)[0], None), state, keys)[0].parameters

        return jax.vmap(chain)(jax.random.split(jax.random.key(3), NUM_CHAINS), starts)["rate"]

    def p_value(change: Any) -> float:
        ends = np.asarray(run(change(likelihood)))
        return float(stats.kstest(ends, lambda rate: np.interp(rate, RATES + 0.005, np.cumsum(weights))).pvalue)

    return p_value


def test_chains_that_start_in_the_posterior_stay_in_it(p_value_of):
    assert p_value_of(right) > REJECT


@pytest.mark.parametrize("fault", [without_weights, without_offset, of_one_row])
def test_chains_of_planted_faults_do_not(p_value_of, fault):
    """A window's weights, an offset or a row's weight forgotten."""
    assert p_value_of(fault) < 1e-6
