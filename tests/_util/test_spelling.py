"""Arguments that have two usual names."""

import copy
import inspect
import pickle
from dataclasses import replace

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


NEIGHBOURS = "replace-one"

SLIPS = {
    "another usual name": (
        lambda: dpjax.DiscreteGaussian(sigma=6),
        r"^sigma: given a value; expected .* Write scale\.$",
    ),
    "a misspelt name": (lambda: dpjax.Laplace(scal=6), r"^scal: .* Write scale\.$"),
    "a name like none": (lambda: dpjax.Laplace(6, colour=1), r"^colour: .* See help\(Laplace\)\.$"),
    "of a release": (lambda: dpjax.Release(values=[1.0]), r"^values: .* Write value\.$"),
    "missing": (lambda: dpjax.private.Budget(1.0), r"^delta: given nothing; .* takes epsilon, delta, neighbours\.$"),
    "missing after a name": (
        lambda: dpjax.private.Budget(epsilon=1.0, neighbours=NEIGHBOURS),
        r"^delta: given nothing",
    ),
}


@pytest.mark.parametrize("name", SLIPS)
def test_constructors_say_what_their_arguments_are_called(name):
    call, message = SLIPS[name]
    with pytest.raises(TypeError, match=message):
        call()


def test_copies_are_made_as_before():
    noise = dpjax.Laplace(2.0)
    assert pickle.loads(pickle.dumps(noise)) == copy.copy(noise) == replace(noise, scale=2.0) == noise
    assert "scale" in inspect.signature(dpjax.Laplace).parameters
