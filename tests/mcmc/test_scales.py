"""The scales of group effects by the draws of a pilot run: standardised if data say little, on their own if they do."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
from numpyro import distributions as dist

import dpjax
from dpjax.mcmc.climb import rescale_by
from dpjax.models.recentred import Recentred

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
