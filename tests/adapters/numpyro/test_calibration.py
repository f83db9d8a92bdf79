"""Simulation-based calibration of NumPyro models with privatized sufficient statistics."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
from numpyro import distributions as dist

import dpjax
from problems import numpyro_programs as programs

N = 50
REPLICATES = 240
REJECT = 1e-3


def products(record: Any) -> jax.Array:
    """Clamped x, y and their product, the sufficient statistics of a regression through its score."""
    x, y = jnp.clip(record["x"], -3.0, 3.0), jnp.clip(record["y"].astype(float), 0.0, 8.0)
    return jnp.stack([x, y, x * y])


def groups(record: Any) -> jax.Array:
    """The size of the second group, and the clamped sums of both."""
    group, y = record["group"].astype(float), jnp.clip(record["y"], -5.0, 5.0)
    return jnp.stack([group, (1 - group) * y, group * y, y * y])


def logits(record: Any) -> jax.Array:
    """Clamped x, the logit of y, and their product."""
    x, y = jnp.clip(record["x"], -3.0, 3.0), jnp.clip(jax.scipy.special.logit(record["y"]), -4.0, 4.0)
    return jnp.stack([x, y, x * y, y * y])


DESIGNS = {
    "logistic regression": (
        programs.logistic,
        ("x", "y"),
        dpjax.Release(jnp.zeros(3), dpjax.Laplace(2.0), products, N),
    ),
    "poisson regression": (programs.poisson, ("x", "y"), dpjax.Release(jnp.zeros(3), dpjax.Gaussian(4.0), products, N)),
    "two groups": (programs.two_groups, ("group", "y"), dpjax.Release(jnp.zeros(4), dpjax.Laplace(5.0), groups, N)),
    "beta regression": (
        programs.beta_regression,
        ("x", "y"),
        dpjax.Release(jnp.zeros(4), dpjax.Laplace(4.0), logits, N),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", DESIGNS)
def test_ranks_of_the_truth_are_uniform(name: str) -> None:
    program, records, design = DESIGNS[name]
    model = dpjax.from_numpyro(program, records=records)
    calibration = dpjax.sbc(jax.random.key(5), model, design, num_replicates=REPLICATES, thin=20)
    for quantity, p_value in calibration.p_values().items():
        assert np.min(p_value) > REJECT, (quantity, p_value)


@pytest.mark.slow
def test_a_wrong_model_is_found_out() -> None:
    """A mutation: half the prior's width, and a slope of the wrong law."""

    def narrow(n: int) -> None:
        coef = numpyro.sample("coef", dist.Normal(0.0, 0.5).expand([2]).to_event(1))
        with numpyro.plate("records", n):
            x = numpyro.sample("x", dist.Normal(0.0, 1.0))
            numpyro.sample("y", dist.Bernoulli(logits=coef[0] + coef[1] * x))

    program, records, design = DESIGNS["logistic regression"]
    model, wrong = (dpjax.from_numpyro(each, records=records) for each in (program, narrow))
    calibration = dpjax.sbc(jax.random.key(5), model, design, fit=wrong, num_replicates=REPLICATES, thin=20)
    assert min(np.min(p_value) for p_value in calibration.p_values().values()) < REJECT
