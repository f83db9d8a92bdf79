"""An error that a function of the user's own raises comes through, where dpjax asks which sampler a model can have."""

from typing import Any

import jax
import pytest

import dpjax
from dpjax import private
from dpjax.data_augmentation.problem import augment
from dpjax.likelihood.choose import choose_method
from dpjax.mcmc.inputs import default_initial

N = 20_000
WORDS = "my table of moments has no such row"
TOTAL = dpjax.statistics.total("y", -3.0, 3.0)
RELEASE = dpjax.Release([13.0], dpjax.Gaussian(6.0), TOTAL, n=N)


def fails(parameters: Any, statistic: Any) -> Any:
    raise ValueError(WORDS)


MODEL = dpjax.models.normal(dpjax.models.NormalPrior(0.0, 2.0), variance=1.0)._replace(statistic_moments=fails)
BUDGET = private.Budget(epsilon=1.0, delta=1e-6, neighbours="replace-one")
ASKS = {
    "starts of chains": lambda: default_initial(augment(MODEL, RELEASE, dpjax.imwg())),
    "starts asked for": lambda: dpjax.sample(jax.random.key(1), MODEL, RELEASE, initial="large-sample", progress=False),
    "a likelihood": lambda: choose_method(MODEL, RELEASE, "auto", None),
    "a design": lambda: private.design(jax.random.key(1), MODEL, TOTAL, BUDGET, N, progress=False),
}


@pytest.mark.x64
@pytest.mark.parametrize("name", ASKS)
def test_an_error_of_a_model_s_own_function_comes_through(name: str) -> None:
    """Before, another sampler was taken without a word, or the error was told as one of an argument."""
    with pytest.raises(ValueError, match=f"^{WORDS}"):
        ASKS[name]()


@pytest.mark.x64
def test_a_model_that_cannot_have_a_normal_sum_is_sampled_otherwise() -> None:
    """What stands in the way is an answer, and no error."""
    without = MODEL._replace(statistic_moments=None, noncentred=None)
    assert default_initial(augment(without, RELEASE, dpjax.imwg())) is None
    assert choose_method(without, RELEASE, "auto", None) == "imputation"
    assert (
        default_initial(
            augment(without._replace(statistic_moments=lambda parameters, statistic: None), RELEASE, dpjax.imwg())
        )
        is None
    )
