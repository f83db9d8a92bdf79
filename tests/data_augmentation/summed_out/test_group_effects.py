"""Group effects that a model writes on their own scale: they move as standardised numbers, too."""

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from scipy import stats
from scipy.special import softmax

import dpjax
from dpjax.data_augmentation.parameters import initial_tuning
from dpjax.data_augmentation.problem import augment
from dpjax.data_augmentation.summed_out import summed_state
from dpjax.data_augmentation.sweep import build_sweep
from tests.tools.perfect_start import REJECT

RELEASED = np.array([1.9, -0.7, 0.4, -2.2, 1.1])
DEVIATION = 0.5
SPREADS = np.linspace(0.001, 6.0, 6_000)
NUM_CHAINS = 3_000


def groups() -> None:
    spread = numpyro.sample("spread", dist.HalfNormal(1.0))
    effect = numpyro.sample("effect", dist.Normal(jnp.zeros(5), spread).to_event(1))
    with numpyro.plate("areas", 5):
        numpyro.sample("y", dist.Normal(effect, DEVIATION))


MODEL = dpjax.from_numpyro(groups, ["y"])
RELEASE = dpjax.LocalRelease(RELEASED, dpjax.Gaussian(DEVIATION), "y")
VARIANCE = 2 * DEVIATION**2
"""Of a released value about the effect of its area."""


def probabilities() -> np.ndarray:
    """The posterior probability of each standard deviation of the effects."""
    marginal = stats.norm.logpdf(RELEASED[:, None], 0.0, np.sqrt(VARIANCE + SPREADS**2)).sum(axis=0)
    return softmax(stats.halfnorm.logpdf(SPREADS) + marginal)


def perfect_starts() -> dict[str, jax.Array]:
    """Exact draws of the posterior [chain]."""
    rng = np.random.default_rng(3)
    spread = rng.choice(SPREADS, NUM_CHAINS, p=probabilities()) + rng.uniform(-0.0005, 0.0005, NUM_CHAINS)
    weight = (spread**2 / (spread**2 + VARIANCE))[:, None]
    effect = rng.normal(weight * RELEASED, np.sqrt(weight * VARIANCE))
    return {"spread": jnp.asarray(spread, float), "effect": jnp.asarray(effect, float)}


def run(starts: dict[str, jax.Array], num_sweeps: int) -> np.ndarray:
    """The standard deviations [chain] after some sweeps."""
    problem = augment(MODEL, RELEASE, allow_sums=True)
    tuning = initial_tuning(jax.random.key(2), MODEL)._replace(step_size=jnp.asarray(0.3, float))
    likelihood: Any = problem.swept_release
    sweep = build_sweep(MODEL, likelihood, problem.plan)

    def chain(key: Any, parameters: Any) -> Any:
        state = summed_state(problem.plan, parameters, likelihood)
        keys = jax.random.split(key, num_sweeps)
        return jax.lax.scan(lambda state, key: (sweep.move(key, state, tuning)[0], None), state, keys)[0].parameters

    keys = jax.random.split(jax.random.key(4), len(starts["spread"]))
    return np.asarray(jax.jit(jax.vmap(chain))(keys, starts)["spread"])


def p_value(spreads: np.ndarray) -> float:
    cumulative = np.cumsum(probabilities())
    return float(stats.kstest(spreads, lambda at: np.interp(at, SPREADS + 0.0005, cumulative)).pvalue)


def test_chains_that_start_in_the_posterior_stay_in_it() -> None:
    assert p_value(run(perfect_starts(), 3)) > REJECT


def keep_spread(step: Callable, model: Any, log_likelihood: Callable) -> Any:
    """The step as if its coordinates had no Jacobian."""
    own = model.noncentred.coordinates
    flat = model.noncentred._replace(coordinates=own._replace(log_jacobian=lambda coordinates: jnp.zeros(())))
    return step(model._replace(noncentred=flat), log_likelihood)


def test_a_forgotten_jacobian_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    module = sys.modules["dpjax.data_augmentation.sweep"]
    monkeypatch.setattr(module, "build_standardised_step", partial(keep_spread, module.build_standardised_step))
    assert p_value(run(perfect_starts(), 3)) < 1e-6


NECK = {"spread": jnp.full(40, 1e-4, float), "effect": jnp.full((40, 5), 1e-5, float)}
"""From here trajectories on the effects' own scale are rejected, whatever their length."""


def test_chains_leave_a_scale_near_zero() -> None:
    """A chain of a notebook stayed there for all of its 1,500 draws."""
    assert np.mean(run(NECK, 200) > 0.05) > 0.8


def test_on_the_effects_own_scale_they_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["dpjax.data_augmentation.sweep"], "build_standardised_step", lambda *given: None)
    assert np.mean(run(NECK, 200) > 0.05) < 0.1
