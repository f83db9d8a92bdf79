"""What a summary says of chains that mix poorly: divergent trajectories, and parameters that are better non-centred."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
from numpyro import distributions as dist

import dpjax
from dpjax.posterior.reports import advise_starts, dependent_priors
from tests.plot.results import make_posterior

WEEKS = 6


def walk(n, y=None):
    sigma = numpyro.sample("sigma", dist.HalfNormal(1.0))
    level = numpyro.sample("level", dist.Normal(0.0, 2.0))
    steps = numpyro.sample("walk", dist.GaussianRandomWalk(sigma, WEEKS))
    with numpyro.plate("weeks", WEEKS):
        numpyro.sample("y", dist.Poisson(jnp.exp(level + steps)), obs=y)


def effects(group, y=None):
    spread = numpyro.sample("spread", dist.HalfNormal(1.0))
    with numpyro.plate("groups", 3):
        effect = numpyro.sample("effect", dist.Normal(0.0, spread))
    with numpyro.plate("areas", len(group)):
        numpyro.sample("y", dist.Poisson(jnp.exp(effect[group])), obs=y)


def test_a_site_whose_prior_depends_on_another_is_named() -> None:
    """Effects that are standardised already are not, nor are parameters that do not depend on others."""
    assert dependent_priors(dpjax.from_numpyro(walk, records="y", n=WEEKS)) == {"walk": ["sigma"]}
    grouped = dpjax.from_numpyro(effects, records="y", group=np.array([0, 0, 1, 1, 2, 2]))
    assert dependent_priors(grouped) == {}
    assert dependent_priors(dpjax.models.categorical(np.ones(3))) == {}
    # The intercept of a formula is that at the means of the covariates.
    known = {"dose": ["none", "low", "high"] * 2, "age": np.arange(6.0)}
    assert dependent_priors(dpjax.models.formula("ill ~ dose + age", known, family="poisson")) == {}


def test_the_remedy_names_the_site() -> None:
    """R-hat of a random walk was 1.12, and the remedy was to draw more."""
    release = dpjax.LocalRelease([3, 5, 9, 8, 4, 2], dpjax.DiscreteLaplace(1.0), field="y")
    posterior = make_posterior(release, dpjax.from_numpyro(walk, records="y", n=WEEKS))
    assert "The prior of walk depends on sigma: write it non-centred" in posterior.remedy


def test_what_is_advised_can_be_done() -> None:
    """Where records are summed out the advice was another imputation, and large-sample starts, which are refused."""
    local = dpjax.LocalRelease([3, 5, 9, 8, 4, 2], dpjax.DiscreteLaplace(1.0), field="y")
    model = dpjax.from_numpyro(effects, records="y", group=np.array([0, 0, 1, 1, 2, 2]))
    alone = make_posterior(local, model, dpjax.summed_out())
    assert "imputation" not in alone.remedy
    assert "another parameter_kernel" in alone.remedy
    assert "another imputation or parameter_kernel" in make_posterior().remedy
    assert "large-sample" not in advise_starts(alone)
    assert "large-sample" not in advise_starts(make_posterior(local, model))
    assert 'Try initial="large-sample", starting values' in advise_starts(make_posterior())
    with pytest.raises(TypeError, match="initial: given 'large-sample'"):
        dpjax.sample(jax.random.key(1), model, local, initial="large-sample", progress=False)


@pytest.mark.filterwarnings("ignore:.*effective sample size", "ignore:.*R-hat")
def test_divergent_trajectories_are_counted() -> None:
    """By the share of steps between draws; they went unmentioned but for `sample_clt`."""
    posterior = make_posterior(num_draws=500)
    posterior.settings["thin"] = 2  # type: ignore[index]
    posterior.info["centred_is_divergent"] = np.zeros((2, 500))
    posterior.info["centred_is_divergent"][0, :8] = 0.5
    with pytest.warns(UserWarning, match=r"8 of 2000 trajectories diverged.*target_acceptance=0\.95"):
        posterior.summary()
    posterior.info["centred_is_divergent"][0, 1:] = 0.0
    posterior.summary()
