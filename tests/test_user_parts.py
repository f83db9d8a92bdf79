"""The parts that a user can write, as the documentation writes them, give the posterior that they define."""

import re
from pathlib import Path

import jax
import numpy as np
import pytest

import dpjax
from dpjax import diagnostics

PAGE = Path(__file__).parents[1] / "docs" / "extending.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)


@pytest.fixture(scope="module")
def names() -> dict:
    """What the code of the page defines."""
    namespace: dict = {"__name__": "extending"}
    exec(compile("\n".join(BLOCKS), str(PAGE), "exec"), namespace)
    return namespace


def test_examples_are_short() -> None:
    bodies = [[line for line in block.splitlines() if line.strip()] for block in BLOCKS]
    assert max(map(len, bodies)) <= 24
    functions = re.findall(r"^(?:def|class) .*?(?=^\S|\Z)", "\n".join(BLOCKS), re.M | re.S)
    assert max(len([line for line in function.splitlines() if line.strip()]) for function in functions) < 18


@pytest.mark.x32
def test_the_page_agrees_with_importance_sampling(names: dict) -> None:
    check(names["posterior"], names["exact"])


@pytest.mark.x32
@pytest.mark.parametrize(
    "imputation",
    [
        dpjax.imwg(),
        pytest.param(dpjax.imwg(scan="random"), marks=pytest.mark.slow),
        pytest.param(dpjax.soma(), marks=pytest.mark.slow),
        dpjax.soma(attempts=3),
    ],
)
def test_shipped_imputations_take_a_users_model_mechanism_and_statistic(names: dict, imputation: object) -> None:
    posterior = dpjax.sample(
        jax.random.key(3), names["poisson"], names["release"], imputation=imputation, num_samples=2_000, progress=False
    )
    check(posterior, names["exact"])


@pytest.mark.x32
def test_a_wrong_part_is_found(names: dict) -> None:
    """A mutation: the kernel forgets the ratio."""
    release = dpjax.Release(names["release"].value, names["StudentT"](1e6), names["total_and_large"], 10)

    def forgetful(model: dpjax.Model, given: dpjax.Release) -> object:
        return dpjax.imwg()(model, release)

    options = {"imputation": forgetful, "refresh": False, "num_samples": 2_000, "progress": False}
    posterior = dpjax.sample(jax.random.key(3), names["poisson"], names["release"], **options)
    with pytest.raises(AssertionError):
        check(posterior, names["exact"])


def check(posterior: dpjax.Posterior, exact: object) -> None:
    """Mean and standard deviation within five joint standard errors."""
    draws = posterior.draws["rate"]
    row = exact.summary()["rate"]
    assert abs(draws.mean() - row["mean"]) < 5 * np.hypot(diagnostics.mcse_mean(draws), row["se_mean"])
    assert abs(draws.std() - row["sd"]) < 5 * np.hypot(diagnostics.mcse_sd(draws), row["se_sd"])
