"""Products of matrices keep all digits of float32, also in functions of the user, whatever JAX's setting is.

A processor refuses products of rounded factors, as GPUs make by default: what is not computed in full fails here.
"""

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

import dpjax
from dpjax import coupling, mixture, private
from tests.tools.programs import GRAM, REGRESSION

ROUNDED = "TF32_TF32_F32"
"""JAX's name for products of factors that are rounded to 11 bits."""

COVARIATES = jnp.asarray(np.random.default_rng(1).normal(size=(8, 2)))
KEY = jax.random.key(1)
FEW: dict[str, Any] = {"num_chains": 2, "num_warmup": 20, "num_samples": 20, "progress": False}


@pytest.fixture(autouse=True)
def rounded_products() -> Iterator[None]:
    """The user's setting, and NumPyro's promotion of types."""
    with (
        jax.default_matmul_precision(ROUNDED),
        jax.numpy_dtype_promotion("standard"),
        jax.numpy_rank_promotion("allow"),
    ):
        yield


def written_by_a_user() -> dpjax.Model:
    """A regression whose mean is a product, in which nothing asks for precision."""

    def model(x: jax.Array) -> None:
        coef = numpyro.sample("coef", dist.Normal(0.0, 1.0).expand([2]).to_event(1))
        with numpyro.plate("records", len(x)):
            numpyro.sample("y", dist.Normal(x @ coef, 1.0))

    return dpjax.from_numpyro(model, ("y",), x=COVARIATES)


def released() -> dpjax.Release:
    return dpjax.Release(jnp.ones(1), dpjax.Laplace(1.0), dpjax.statistics.total("y", -3.0, 3.0), 8)


def private_draws() -> None:
    """Draws of a data holder, whose functions are plain ones."""

    def log_density(coef: jax.Array, record: dict[str, jax.Array]) -> jax.Array:
        return -jnp.square(record["y"] - record["x"] @ coef) / 2

    records = {"x": COVARIATES, "y": COVARIATES[:, 0]}
    target = private.target(log_density, lambda coef: -coef @ coef / 2, records, jnp.zeros(2))
    settings = {"step_size": 0.1, "num_leapfrog": 2, "gradient_bound": 1.0, "ratio_bound": 1.0}
    noise = {"tau_g": 1.0, "tau_l": 1.0}
    kernel = private.dp_hmc(target, private.noise.jax, **settings, **noise, mass=np.eye(2), scale=np.eye(2))
    ledger = private.Ledger(private.Budget(100.0, 1e-5, neighbours="replace-one"))
    private.sample(KEY, kernel, jnp.zeros((2, 2)), ledger, num_iterations=3)


def meetings() -> None:
    kernel = coupling.coupled_gibbs(written_by_a_user(), released(), relabel=False)
    coupling.meeting_times(KEY, kernel, num_pairs=4, max_steps=30, progress=False)


def clusters() -> None:
    component = mixture.NormalInverseWishart(mean=np.zeros(2), precision=0.1, degrees=4.0, scale=np.eye(2))
    posterior = mixture.sample(KEY, COVARIATES, None, component=component, concentration=1.0, **FEW)
    posterior.density(COVARIATES[:3])


CALLS: dict[str, Callable[[], Any]] = {
    "sample": lambda: dpjax.sample(KEY, written_by_a_user(), released(), **FEW),
    "sample, interweaving": lambda: dpjax.sample(KEY, REGRESSION, GRAM, **FEW),
    "sample_smc": lambda: dpjax.sample_smc(KEY, written_by_a_user(), released(), num_particles=4, num_islands=2),
    "sample_clt": lambda: dpjax.sample_clt(KEY, REGRESSION, GRAM, **FEW),
    "importance_sample": lambda: dpjax.importance_sample(KEY, written_by_a_user(), released(), 50),
    "private.sample": private_draws,
    "coupling.meeting_times": meetings,
    "mixture.sample": clusters,
}


def test_a_product_of_rounded_factors_is_refused() -> None:
    """What gives the other tests their power."""
    with pytest.raises(ValueError, match="precision"):
        jax.jit(lambda x: x @ x.T)(COVARIATES)


@pytest.mark.parametrize("name", CALLS)
def test_all_products_are_computed_in_full(name: str) -> None:
    CALLS[name]()
