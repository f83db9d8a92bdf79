"""Bad inputs of private kernels and their sums, which once failed with a raw error or were let through."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dpjax
from dpjax import private, statistics
from dpjax.clt import accuracy
from dpjax.private import noise
from tests.private.releases.paid_sums import seeded


def log_likelihood(parameters: Any, record: Any) -> Any:
    return jnp.sum(parameters) * record["y"]


def log_prior(parameters: Any) -> Any:
    return jnp.zeros(())


def target(position: Any) -> private.Target:
    return private.target(log_likelihood, log_prior, {"y": np.ones(3)}, position, people=None, chunk_size=4)


TARGET = target(jnp.zeros(2))
OPTIONS: dict[str, Any] = {"sampling_rate": 0.5, "gradient_bound": 1.0, "noise_multiplier": 2.0}


def built(build: Callable[[Any], Any]) -> Callable[[], Any]:
    return lambda: private.make_kernel(TARGET, build, ())


CASES: dict[str, tuple[Callable[[], Any], str]] = {
    "no parameters": (lambda: target(jnp.zeros(0)), "position"),
    "gradients at too many parameters": (lambda: private.clipped_gradients(TARGET, jnp.zeros(3), 1.0), "vector"),
    "ratios at too many parameters": (
        lambda: private.clipped_ratios(TARGET, jnp.zeros(2), jnp.zeros(3), 1.0),
        "proposal",
    ),
    "diffusion for each parameter": (
        lambda: private.dp_sgnht(TARGET, noise.jax, step_size=0.1, diffusion=[1.0, 2.0], **OPTIONS),
        "diffusion",
    ),
    "a step size at the start of floats": (
        lambda: private.dp_sgld(TARGET, noise.jax, step_size=1e-320, **OPTIONS),
        "step_size",
    ),
    "a kernel of nothing": (built(lambda target: None), "build"),
    "a kernel of one function": (built(lambda target: (log_prior,)), "build"),
    "a kernel of numbers": (built(lambda target: (1, 2)), "build"),
}


@pytest.mark.parametrize("case", CASES)
def test_is_refused(refused, case: str) -> None:
    refused(*CASES[case])


def test_a_budget_beyond_what_is_left_is_told_what_is() -> None:
    ledger = private.Ledger(private.Budget(1.0, 1e-6, "replace-one"))
    whole = private.Budget(5.0, 1e-6, "replace-one")
    with pytest.raises(private.BudgetExceeded, match=r"expected at most what is left, ε = 1 at δ = 1e-06, or one sum"):
        private.release(
            ledger, statistics.total("y", 0.0, 1.0), {"y": [0.5]}, noise=seeded(1), budget=whole, people=None
        )


def test_a_forecast_names_an_argument_of_its_own(monkeypatch) -> None:
    """It said to pass more points, which it does not take."""

    def refuse(*arguments: Any, **options: Any) -> Any:
        accuracy.check_errors(accuracy.Errors(jnp.array(1.0), jnp.array(1.0)), 32, "the total")

    monkeypatch.setattr("dpjax.private.planning.design.sample_clt", refuse)
    model = dpjax.models.normal(dpjax.models.NormalPrior(0.0, 2.0), variance=1.0)
    total, budget = statistics.total("y", -3.0, 3.0), private.Budget(1.0, 1e-6, "replace-one")
    with pytest.raises(ValueError, match=r"^approximate: given .* 32 points.*; expected .*approximate=False") as told:
        private.design(jax.random.key(0), model, total, budget, 20, approximate=True, progress=False)
    assert "more points" not in str(told.value)
