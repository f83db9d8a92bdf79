"""Priors that are known by their density alone: factors of the parameters, and improper distributions."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
from numpyro import distributions as dist

import dpjax
from dpjax.data_augmentation.problem import augment, with_refresh

N = 6
TOLERANCE = 1e-5 if jnp.zeros(()).dtype == jnp.float32 else 1e-12


def autoregression(y: Any = None) -> None:
    """Areas in a row, each near its neighbours (Besag, York and Mollié 1991), with their sum near 0."""
    scale = numpyro.sample("scale", dist.HalfNormal(1.0))
    effects = numpyro.sample("effects", dist.ImproperUniform(dist.constraints.real_vector, (), (N,)))
    with numpyro.plate("areas", N) as places:
        numpyro.sample("y", dist.Poisson(jnp.exp(1.0 + scale * effects[places])), obs=y)
    numpyro.factor("neighbours", -0.5 * jnp.sum(jnp.diff(effects) ** 2))
    numpyro.factor("centre", dist.Normal(0.0, 0.01 * N).log_prob(jnp.sum(effects)))


def flat(n: int, y: Any = None) -> None:
    """A flat prior that a factor makes Normal."""
    mean = numpyro.sample("mean", dist.ImproperUniform(dist.constraints.real, (), ()))
    numpyro.factor("near 1", -0.5 * (mean - 1.0) ** 2)
    with numpyro.plate("records", n):
        numpyro.sample("y", dist.Normal(mean, 1.0), obs=y)


def test_the_prior_has_its_factors_wherever_they_stand():
    """Notices factors left out because they come after the last parameter."""
    model: Any = dpjax.from_numpyro(autoregression, records=["y"])
    effects = np.array([0.3, 0.1, -0.2, -0.1, 0.4, -0.3])
    found = model.log_prior({"scale": jnp.asarray(0.5, float), "effects": jnp.asarray(effects, float)})
    centre = dist.Normal(0.0, 0.01 * N).log_prob(np.sum(effects))
    expected = dist.HalfNormal(1.0).log_prob(0.5) - 0.5 * np.sum(np.diff(effects) ** 2) + centre
    np.testing.assert_allclose(found, expected, rtol=TOLERANCE)
    drawn = model.sample_prior(jax.random.key(0))
    assert drawn["effects"].shape == (N,)
    assert not model.draws_prior
    assert dpjax.from_numpyro(flat, records=["y"]).exchangeable


def test_chains_start_without_draws_from_the_prior():
    values = jnp.array([2, 3, 1, 4, 6, 3])
    release = dpjax.LocalRelease(values, dpjax.DiscreteLaplace(1.0), field="y")
    problem = augment(dpjax.from_numpyro(autoregression, records=["y"]), release)
    assert not with_refresh(problem, None).plan.refresh
    with pytest.raises(ValueError, match="refresh: given True with a prior that cannot be drawn from"):
        with_refresh(problem, True)


def test_the_posterior_is_that_of_prior_and_factor():
    """The mean given records with Normal noise of variance 3 is Normal by a closed form."""
    values = np.array([2.5, 3.0, 1.0, 4.0, 6.0, 3.5])
    release = dpjax.LocalRelease(values, dpjax.Gaussian(np.sqrt(3.0)), field="y")
    posterior = dpjax.sample(jax.random.key(1), dpjax.from_numpyro(flat, records=["y"]), release, progress=False)
    draws, precision = posterior.draws["mean"], 1 + len(values) / 4
    error = dpjax.diagnostics.mcse_mean(draws)
    assert abs(np.mean(draws) - (1 + np.sum(values) / 4) / precision) < 5 * error
    np.testing.assert_allclose(np.std(draws), precision**-0.5, rtol=0.15)


DESIGN = dpjax.Release([3.0], dpjax.Laplace(1.0), dpjax.statistics.total("y", -5.0, 5.0), n=N)
CALLS: dict[str, Callable[[Any], Any]] = {
    "importance_sample": lambda model: dpjax.importance_sample(jax.random.key(0), model, DESIGN, 10),
    "sample_smc": lambda model: dpjax.sample_smc(jax.random.key(0), model, DESIGN),
    "sbc": lambda model: dpjax.sampler_tests.sbc(jax.random.key(0), model, DESIGN, num_replicates=20),
    "sample_prior_predictive": lambda model: dpjax.sample_prior_predictive(jax.random.key(0), model, DESIGN),
}


@pytest.mark.parametrize("name", CALLS)
def test_what_draws_from_the_prior_is_refused(name):
    with pytest.raises(ValueError, match="model: given a prior that cannot be drawn from"):
        CALLS[name](dpjax.from_numpyro(flat, records=["y"]))


def test_factors_of_records_are_refused():
    def program(n: int, y: Any = None) -> None:
        mean = numpyro.sample("mean", dist.Normal(0.0, 1.0))
        with numpyro.plate("records", n):
            y = numpyro.sample("y", dist.Normal(mean, 1.0), obs=y)
        numpyro.factor("last", -jnp.sum(y))

    with pytest.raises(ValueError, match="a factor, 'last', that depends on records"):
        dpjax.from_numpyro(program, records=["y"])


def test_the_data_holder_states_priors_by_distributions():
    """A factor could read confidential covariates."""
    with pytest.raises(ValueError, match="fn: given a model with factors or improper distributions"):
        dpjax.private_target(flat, {"y": np.zeros(4)})
