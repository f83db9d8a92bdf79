"""Arguments that have two usual names."""

import copy
import inspect
import pickle
from dataclasses import replace

import numpy as np
import pytest

import dpjax
from dpjax._util.spelling import takes_num_draws
from dpjax._util.validation import is_refusal
from dpjax.diagnostics.summary import Summary
from dpjax.posterior.batch import BatchPosterior
from dpjax.posterior.completed import DataSets
from dpjax.posterior.margins import Margin, Margins
from dpjax.posterior.posterior import Posterior
from dpjax.posterior.saving import Saved
from dpjax.posterior.survey import PopulationMeans, Survey
from tests.bad_inputs.calls import public_functions


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
RESULT = Summary(("a",), {"mean": np.zeros(1)})

KINDS = (
    *(dpjax.Posterior, dpjax.Microdata, dpjax.LocalRelease, BatchPosterior, Summary, DataSets, Margins, Margin),
    *(Saved, Survey, PopulationMeans, dpjax.private.Ledger, dpjax.private.PrivateDraws, dpjax.private.Design),
    *(dpjax.likelihood.MaximumLikelihood, dpjax.mixture.MixturePosterior, dpjax.coupling.Meetings),
)

SLIPS = {
    "another usual name": (
        lambda: dpjax.DiscreteGaussian(sigma=6),
        r"^sigma: given a value; expected .* Write scale\.$",
    ),
    "a misspelt name": (lambda: dpjax.Laplace(scal=6), r"^scal: .* Write scale\.$"),
    "a name like none": (lambda: dpjax.Laplace(6, colour=1), r"^colour: .* See help\(Laplace\)\.$"),
    "of a run": (lambda: dpjax.sample(None, None, None, chains=2), r"^chains: .* Write num_chains\.$"),
    "of a run, as others call it": (
        lambda: dpjax.sample(None, None, None, draws=2),
        r"^draws: .* Write num_samples\.$",
    ),
    "the seed of a run": (lambda: dpjax.sample(None, None, None, seed=2), r"^seed: .* Write key\.$"),
    "of a local release": (
        lambda: dpjax.LocalRelease([0, 1], chanel=1),
        r"^chanel: .* LocalRelease's .* Write channel\.$",
    ),
    "of a table": (
        lambda: RESULT.to_latex("table.tex"),
        r"^to_latex: given 1 argument by its place; .* columns, digits",
    ),
    "of a result": (lambda: RESULT.take(parameters=["a"]), r"^parameters: .* one of take's arguments: names\."),
    "of a posterior": (lambda: Posterior.odds_ratios(RESULT, "sex", "age"), r"^odds_ratios: given 2 .* at most 1"),
    "of a constructor by its promise": (lambda: dpjax.Laplace.from_epsilon(eps=1.0), r"^eps: .* Write epsilon\.$"),
    "of a sensitivity": (
        lambda: dpjax.statistics.total("y", 0.0, 1.0).sensitivity(NEIGHBOURS),
        r"^neighbours: given nothing; .* sensitivity takes norm, neighbours\.$",
    ),
    "of joined runs": (lambda: Posterior.concat(None, None), r"^concat: given 2 .* at most 1: posteriors"),
    "of a release": (lambda: dpjax.Release(values=[1.0]), r"^values: .* Write value\.$"),
    "missing": (lambda: dpjax.private.Budget(1.0), r"^delta: given nothing; .* takes epsilon, delta, neighbours\.$"),
    "missing after a name": (
        lambda: dpjax.private.Budget(epsilon=1.0, neighbours=NEIGHBOURS),
        r"^delta: given nothing",
    ),
    "too many": (
        lambda: dpjax.Laplace(6, 1, 2),
        r"^Laplace: given 3 arguments by their place; expected at most 1: scale\. Name the others\.$",
    ),
    "by place and by name": (lambda: dpjax.Laplace(6, scale=1), r"^scale: given two values, by its place and"),
    "of a method": (lambda: Posterior.plot_forest(None, colour=1), r"^colour: .* one of plot_forest's"),
}


@pytest.mark.parametrize("name", SLIPS)
def test_constructors_say_what_their_arguments_are_called(name):
    call, message = SLIPS[name]
    with pytest.raises(TypeError, match=message):
        call()


@pytest.mark.parametrize("kind", KINDS)
def test_methods_say_what_their_arguments_are_called(kind):
    """A new one of a result or a release, which Python's own error leaves without a remedy."""
    for name, method in vars(kind).items():
        if name[0] == "_" or name == "to_json" or not (callable(method) or hasattr(method, "__func__")):
            continue  # what a release is written with may have any names
        with pytest.raises(TypeError) as error:
            getattr(kind, name)(*[None] * inspect.isfunction(method), no_such_argument=1)
        assert is_refusal(error.value), name


def test_public_functions_say_what_their_arguments_are_called():
    """A new one that leaves this to Python; the cases above are of a few."""
    raw = []
    for path, function in public_functions().items():
        kinds = {one.kind for one in inspect.signature(function).parameters.values()}
        calls = [] if inspect.Parameter.VAR_KEYWORD in kinds else [((), {"colour": 1})]
        calls += [] if inspect.Parameter.VAR_POSITIONAL in kinds else [(range(99), {})]
        for values, options in calls:
            with pytest.raises(TypeError) as caught:
                function(*values, **options)
            if not is_refusal(caught.value):
                raw.append((path, str(caught.value)))
    assert raw == []


def test_a_misspelt_name_of_a_module_is_corrected():
    with pytest.raises(AttributeError, match=r"^module 'dpjax' has no attribute 'smaple': write dpjax\.sample$"):
        _ = dpjax.smaple
    with pytest.raises(AttributeError, match=r"^module 'dpjax\.models' has no attribute 'colour'$"):
        _ = dpjax.models.colour
    assert not hasattr(dpjax, "__missing__")


def test_copies_are_made_as_before():
    noise = dpjax.Laplace(2.0)
    assert pickle.loads(pickle.dumps(noise)) == copy.copy(noise) == replace(noise, scale=2.0) == noise
    assert "scale" in inspect.signature(dpjax.Laplace).parameters
