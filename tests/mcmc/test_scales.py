"""The scales of group effects by the draws of a pilot run: standardised if data say little, on their own if they do."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
from numpyro import distributions as dist

import dpjax
from dpjax.data_augmentation.problem import augment
from dpjax.data_augmentation.summed_out.likelihood import left_out_at
from dpjax.mcmc.alone import make_run_alone
from dpjax.mcmc.climb import rescale_by
from dpjax.mcmc.run import split_key
from dpjax.models.recentred import Recentred
from dpjax.runtime.devices import choose_mesh

RECORDS = {"y": jnp.arange(6)}


def effects(group: Any, y: Any = None) -> None:
    spread = numpyro.sample("spread", dist.HalfNormal(1.0))
    deviation = numpyro.sample("deviation", dist.Normal(0.0, 1.0).expand([3]))
    with numpyro.plate("units", 6):
        numpyro.sample("y", dist.Poisson(jnp.exp(spread * deviation[group])), obs=y)


@pytest.fixture(scope="module")
def model() -> Recentred:
    """With scales by the curvature at a mode that is not where the posterior is."""
    inner = dpjax.from_numpyro(effects, records="y", group=np.array([0, 1, 2, 0, 1, 2]))
    return Recentred(inner, inner, RECORDS, {"deviation": jnp.array([0.2, 0.5, 0.9])}, "y")


@pytest.mark.parametrize(
    ("spread_of_spread", "spread_of_effects", "least", "most"), [(0.6, 1.0, 0.0, 0.05), (0.05, 0.1, 0.95, 1.0)]
)
def test_scales_follow_what_draws_know(model, spread_of_spread, spread_of_effects, least, most):
    """Chains diverged near a spread of zero, as the mode had effects known that were not: 108 draws of 4,000."""
    spread_key, effect_key = jax.random.split(jax.random.key(1))
    draws = {
        "spread": jnp.exp(spread_of_spread * jax.random.normal(spread_key, (4, 100), float)),
        "deviation": spread_of_effects * jax.random.normal(effect_key, (4, 100, 3), float),
    }
    powers = np.asarray(rescale_by(model, draws).powers["deviation"])
    assert np.all((powers >= least) & (powers <= most))


def counts(group: Any, x: Any, groups: int, y: Any = None) -> None:
    level, slope = numpyro.sample("level", dist.Normal(0.0, 10.0)), numpyro.sample("slope", dist.Normal(0.0, 1.0))
    spread = numpyro.sample("spread", dist.HalfNormal(3.0))
    deviation = numpyro.sample("deviation", dist.Normal(0.0, 1.0).expand([groups]))
    with numpyro.plate("units", len(group)):
        numpyro.sample("y", dist.Poisson(jnp.exp(level + slope * x + spread * deviation[group])), obs=y)


@pytest.mark.slow
def test_sums_are_tabulated_if_draws_about_the_joint_mode_are_too_far_apart_for_a_table():
    """Catches sums that are not tabulated, so that gradients take fourteen times as long: in float32."""
    units, groups = 200, 20
    group, x = np.arange(units) % groups, np.random.default_rng(0).normal(size=units)
    rng = np.random.default_rng(2)
    effects = 0.3 * rng.normal(size=groups)[group] + 0.4 * x
    released = rng.poisson(2.0 * np.exp(effects)) + np.round(rng.normal(0.0, 5.0, units)).astype(int)
    model = dpjax.from_numpyro(counts, records="y", group=group, x=x, groups=groups)
    release = dpjax.LocalRelease(released, dpjax.DiscreteGaussian(5.0), "y")
    problem = augment(model, release, allow_sums=True)
    given = {"collect": None, "keys": split_key(jax.random.key(0), 2), "mesh": choose_mesh(None, 2)}
    run = make_run_alone(problem, 100, 1, 1, None, **given)
    assert run.problem.swept_release.is_tabulated
    assert left_out_at(run.problem.swept_release, run.ascent.starts) < 1e-6
