"""The sampler of a NumPyro model leaves the joint distribution of parameters, records and release as it is."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import dpjax
from problems import numpyro_programs as programs
from tests.tools.perfect_start import REJECT, noise_p_value, parameter_p_value, run

N = 5


def moments(record: Any) -> jax.Array:
    """The response, and its product with the clamped covariate."""
    y = record["y"].astype(float)
    return jnp.stack([jnp.clip(y, -5.0, 5.0), jnp.clip(y, -5.0, 5.0) * jnp.clip(record["x"], -2.0, 2.0)])


def coefficients(scale: float) -> dict:
    return {"coef": lambda coef: (coef[:, 0], stats.norm(scale=scale))}


CASES: dict[str, Any] = {
    "logistic": (programs.logistic, coefficients(1.5)),
    "poisson": (programs.poisson, coefficients(0.7)),
    "beta": (programs.beta_regression, {"size": lambda size: (size, stats.gamma(4.0, scale=2.0))}),
}


def replicates(program: Any, model: dpjax.Model | None = None, num_sweeps: int = 3) -> Any:
    model = dpjax.from_numpyro(program, records=["x", "y"]) if model is None else model
    release = dpjax.Release(jnp.zeros(2), dpjax.Laplace(1.0), moments, N)
    return run(
        jax.random.key(20), model, release, dpjax.imwg(), interweave=True, num_chains=3_000, num_sweeps=num_sweeps
    )


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.slow) for name in CASES])
def test_a_perfect_start_stays_perfect(name: str) -> None:
    program, laws = CASES[name]
    after = replicates(program)
    assert noise_p_value(after.noise, stats.laplace()) > REJECT
    assert parameter_p_value(after, laws) > REJECT


@pytest.mark.slow
def test_noise_taken_for_free_of_the_parameters_is_found_out() -> None:
    """A mutation: the records themselves as their noise, without the density that they then have."""
    model = dpjax.from_numpyro(programs.beta_regression, records=["x", "y"])
    taken = dpjax.base.NonCentred(lambda key, parameters, records: records, lambda parameters, noise: noise)
    after = replicates(programs.beta_regression, model._replace(noncentred=taken))
    laws = CASES["beta"][1]
    assert min(noise_p_value(after.noise, stats.laplace()), parameter_p_value(after, laws)) < REJECT


@pytest.mark.x32
def test_noise_of_discrete_records_that_is_not_drawn_afresh_is_found_out() -> None:
    """A mutation: the lower end of the cell in place of a uniform within it."""
    model = dpjax.from_numpyro(programs.logistic, records=["x", "y"])
    honest = model.noncentred.noise

    def lower_end(key: jax.Array, parameters: Any, records: Any) -> Any:
        edge = jax.nn.sigmoid(-(parameters["coef"][0] + parameters["coef"][1] * records["x"]))
        return honest(key, parameters, records) | {"y": jnp.where(records["y"] == 1, edge, 0.0)}

    wrong = model._replace(noncentred=model.noncentred._replace(noise=lower_end))
    after = replicates(programs.logistic, wrong, num_sweeps=12)
    p_values = [noise_p_value(after.noise, stats.laplace()), parameter_p_value(after, coefficients(1.5))]
    assert np.min(p_values) < REJECT
