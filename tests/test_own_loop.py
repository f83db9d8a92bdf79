"""The page on loops of one's own runs, and its chains have the posterior; kernels that return other things are told."""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dpjax
from dpjax import diagnostics
from tests.tools.printed import run_checked

PAGE = Path(__file__).parents[1] / "docs" / "own-loop.md"
MODEL = dpjax.models.normal(dpjax.models.NormalPrior(0.0, 2.0), variance=1.0)
RELEASE = dpjax.Release([1.0], dpjax.Laplace(6.0), dpjax.statistics.total("y", -3.0, 3.0), n=4)
INFO = dpjax.base.ImputationInfo(jnp.zeros(()), jnp.zeros(4, int), jnp.zeros((), int))


@pytest.mark.slow
def test_loops_of_one_s_own_have_the_posterior(capsys: pytest.CaptureFixture[str]) -> None:
    with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        names = run_checked(PAGE)
    exact = dpjax.importance_sample(jax.random.key(9), names["model"], names["release"], 50_000).summary()["mean"]
    means = np.asarray(names["means"])[None, 500:]
    assert abs(means.mean() - exact["mean"]) < 5 * np.hypot(diagnostics.mcse_mean(means), exact["se_mean"])
    assert names["apart"].shape == (200,)
    assert names["apart"][-1] < 0.2
    assert names["meetings"].num_censored == 0
    assert names["bounds"][-1] < names["bounds"][0]
    assert "imputation: given without_report" in capsys.readouterr().out


def kernel(returned: Any) -> Any:
    """An imputation whose kernel returns what a function of its latent state returns."""

    def imputation(model: dpjax.Model, release: dpjax.Release) -> Any:
        return lambda rng_key, latent, parameters: returned(latent)

    return imputation


WRONG = {
    "the latent state alone": (lambda latent: latent, "returns Latent"),
    "three values": (lambda latent: (latent, INFO, 1.0), "returns 3 values"),
    "a dict as a report": (
        lambda latent: (latent, {"accepted": INFO.accepted}),
        "returns dict as info",
    ),
    "records alone": (lambda latent: (latent.records, INFO), "a dict of 'y' as latent"),
    "other records": (
        lambda latent: (latent._replace(records={"y": latent.records["y"][:3]}), INFO),
        r"latent.records\['y'\] of shape \[3\]",
    ),
    "another type": (
        lambda latent: (latent._replace(records={"y": latent.records["y"].astype(int)}), INFO),
        r"latent.records\['y'\] of type int",
    ),
    "one count for all": (
        lambda latent: (latent, INFO._replace(accepted=jnp.zeros((), int))),
        r"info.accepted of shape",
    ),
    "an error": (lambda latent: latent.nothing, "raised AttributeError"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_kernel_that_returns_something_else_is_told_what(case: str) -> None:
    """Before, it was "too many values to unpack" or "'dict' object has no attribute 'num_nonfinite'"."""
    returned, message = WRONG[case]
    with pytest.raises((TypeError, ValueError), match=message):
        dpjax.gibbs(MODEL, RELEASE, imputation=kernel(returned))


def test_a_kernel_that_is_right_is_taken() -> None:
    dpjax.gibbs(MODEL, RELEASE, imputation=kernel(lambda latent: (latent, INFO)))


def test_the_joint_density_is_one_number_with_a_gradient() -> None:
    parameters, records = {"mean": jnp.array(0.5)}, {"y": jnp.array([1.0, -1.0, 2.0])}
    expected = MODEL.log_prior(parameters) + sum(np.asarray(MODEL.log_density(parameters, records)))
    np.testing.assert_allclose(MODEL.log_joint(parameters, records), expected, rtol=1e-6)
    assert jax.grad(MODEL.log_joint)(parameters, records)["mean"].shape == ()
