"""Arguments that have two usual names."""

import inspect

import pytest

import dpjax
from dpjax._util.spelling import takes_num_draws
from dpjax.posterior.posterior import Posterior


@takes_num_draws
def numbered(key, num_samples=3):
    return key, num_samples


def test_either_name_is_taken():
    assert numbered(1) == (1, 3)
    assert numbered(1, num_draws=5) == numbered(1, num_samples=5) == numbered(1, 5) == (1, 5)
    with pytest.raises(TypeError, match=r"^num_draws: given num_draws and num_samples; expected one of them"):
        numbered(1, num_draws=5, num_samples=5)


@pytest.mark.parametrize(
    "function",
    [dpjax.importance_sample, dpjax.sample_prior_predictive, dpjax.invariance_test, dpjax.sbc, Posterior.predict],
)
def test_functions_that_return_so_many_draws_take_both(function):
    """Their signatures show the one name that all of dpjax has."""
    assert "num_samples" in inspect.signature(function).parameters
    with pytest.raises(TypeError, match="num_draws and num_samples"):
        function(num_draws=1, num_samples=1)
