"""The shipped models, written again in NumPyro, against the same references: within 4 joint standard errors."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
from numpyro import distributions as dist

import dpjax
from dpjax import diagnostics
from problems import numpyro_programs as programs
from tests.posterior import cases
from tests.posterior.test_references import JOINT_ERRORS, LENGTHS, misses


def normal_mean() -> tuple[cases.Case, dpjax.Model]:
    def program(n: int) -> None:
        mean = numpyro.sample("mean", dist.Normal(0.0, 2.0))
        with numpyro.plate("records", n):
            numpyro.sample("y", dist.Normal(mean, 1.0))

    return cases.normal_mean(), dpjax.from_numpyro(program, records=["y"])


def table() -> tuple[cases.Case, dpjax.Model]:
    case = cases.discrete_gaussian_table()
    return case, dpjax.from_numpyro(programs.categorical, records=["cell"], concentration=np.ones(4))


def naive_bayes(name: str) -> tuple[cases.Case, dpjax.Model]:
    case, given = cases.naive_bayes(name), cases.load(name)["inputs"]
    num_features, num_levels, num_classes = np.asarray(given["m"]).shape
    model = dpjax.from_numpyro(
        programs.naive_bayes,
        records=("class", "features"),
        class_concentration=np.broadcast_to(given["alp"], num_classes).astype(float),
        feature_concentration=np.full((num_features, num_classes, num_levels), float(given["alpha"])),
    )
    return case, model


def regression() -> tuple[cases.Case, dpjax.Model]:
    case, given = cases.linear_regression(), cases.load("lin1")["inputs"]
    model = dpjax.from_numpyro(
        programs.regression,
        records=("x", "y"),
        covariate_mean=jnp.asarray(given["m"], float),
        covariate_cov=jnp.asarray(given["Sigma"], float),
        scale=float(given["tau"]),
        variance=float(given["sigma2"]),
    )
    return case, model


BUILDS: dict[str, Callable] = {
    "normal mean": normal_mean,
    "table": table,
    "naive bayes": lambda: naive_bayes("nb_small"),
    "naive bayes 10": lambda: naive_bayes("nb10"),
    "regression": regression,
}
QUICK = ("normal mean",)


@pytest.mark.x32
@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in BUILDS]
)
def test_posterior_meets_its_reference(name: str) -> None:
    with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        case, model = BUILDS[name]()
        posterior = dpjax.sample(jax.random.key(2027), model, case.release, progress=False, **LENGTHS)
    draws = case.flatten(posterior.draws)
    assert np.min(diagnostics.ess_bulk(draws)) > 400
    for figure, distance in misses(draws, case).items():
        assert np.nanmax(np.abs(distance)) < JOINT_ERRORS, (figure, distance)
