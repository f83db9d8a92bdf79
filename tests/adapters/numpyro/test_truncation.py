"""Truncated distributions: no density beyond the support, mass 1, and draws far outside the bulk."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpyro import distributions as dist

from dpjax.adapters.numpyro.forms import draw_parameter
from dpjax.adapters.numpyro.truncation import log_density


@pytest.mark.parametrize(
    ("law", "value"),
    [
        (dist.Bernoulli(probs=0.3), 2),
        (dist.Categorical(probs=jnp.ones(3) / 3), 7),
        (dist.Binomial(5, probs=0.3), 6),
        (dist.Poisson(2.0), -1),
        (dist.Exponential(1.0), -1.0),
        (dist.Uniform(0.0, 1.0), 1.5),
        (dist.TruncatedNormal(0.0, 1.0, low=0.0), -0.1),
    ],
)
def test_values_beyond_the_support_have_no_density(law: Any, value: float) -> None:
    density = jax.jit(lambda value: log_density(law.expand((1,)), value))
    assert density(jnp.array([value])) == -np.inf


@pytest.mark.parametrize("law", [
    dist.TruncatedNormal(1.0, 1.5, low=0.5, high=2.0),
    dist.TruncatedDistribution(dist.Logistic(0.0, 0.4), low=1.0),
    dist.TruncatedDistribution(dist.Laplace(1.0, 0.3), high=0.0),
])  # fmt: skip
def test_truncated_densities_are_normalised(law: Any) -> None:
    """Without it chains move as if the bounds were not known to depend on the parameters."""
    grid = np.linspace(-8, 8, 64_001)
    inside = grid[(grid >= getattr(law, "low", -8)) & (grid <= getattr(law, "high", 8))]
    density = np.exp(np.asarray(jax.vmap(lambda value: log_density(law, value))(jnp.asarray(inside)), float))
    np.testing.assert_allclose(np.trapezoid(density, inside), 1, rtol=1e-3)


def test_cut_priors_are_drawn_far_outside_the_bulk() -> None:
    law = dist.TruncatedNormal(-30.0, 1.0, low=0.0).expand((2_000,))
    draws = np.asarray(draw_parameter(jax.random.key(3), law))
    # Near an Exponential law of rate 30 + 1/30.
    assert np.all(draws >= 0)
    assert abs(draws.mean() * (30 + 1 / 30) - 1) < 6 / np.sqrt(2_000)
