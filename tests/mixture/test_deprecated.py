"""The former spelling of `mixture.sample`: what it is turned into, and what it refuses as it did."""

from typing import Any

import jax
import numpy as np
import pytest

import dpjax
from dpjax import mixture
from dpjax.mixture.deprecated import translate
from dpjax.mixture.samplers import DEFAULT
from tests.mixture.two_points import TwoPoints

BASE = mixture.NormalInverseGamma(0.0, 0.1, 3.0, 3.0)
VALUES = np.array([-1.0, 0.5, 2.0])

SAMPLERS = [
    ({"weights": "stick", "offers": 2}, mixture.conditional("stick", offers=2)),
    ({"sampler": "conditional", "truncation": 10}, mixture.conditional(truncation=10)),
    ({"sampler": "neal2"}, mixture.neal2()),
    ({"sampler": "neal3", "auxiliaries": None}, mixture.neal3()),
    ({"sampler": "neal5", "auxiliaries": 2, "redraw": False}, mixture.neal5(2, redraw=False)),
    ({"sampler": "neal8", "weights": "posterior", "redraw": True}, mixture.neal8()),
    ({"sampler": "neal8", "auxiliaries": 4}, mixture.neal8(4)),
    ({"split_merge": 2}, mixture.split_merge(mixture.conditional(), 2)),
    ({"sampler": "neal8", "split_merge": 1, "launch_scans": 3}, mixture.split_merge(mixture.neal8(), 1, 3)),
    ({"split_merge": 0}, mixture.conditional()),
]


@pytest.mark.parametrize(("given", "meant"), SAMPLERS)
def test_an_old_sampler_is_turned_into_its_value(given: dict[str, Any], meant: mixture.Sampler) -> None:
    given = dict(given)
    sampler = given.pop("sampler", DEFAULT)
    with pytest.warns(DeprecationWarning, match=r"write sampler=dpjax\.mixture\."):
        assert translate(None, sampler, given)[1] == meant


@pytest.mark.parametrize(
    ("given", "component"),
    [
        ({"base": BASE}, BASE),
        ({"kernel": "gaussian", "base": BASE}, BASE),
        ({"kernel": "beta", "base": mixture.GammaShapes(2.0, 1.0)}, mixture.GammaShapes(2.0, 1.0)),
        ({"kernel": TwoPoints()}, TwoPoints()),
    ],
)
def test_an_old_kernel_is_turned_into_its_component(given: dict[str, Any], component: Any) -> None:
    with pytest.warns(DeprecationWarning, match="write component="):
        assert translate(None, DEFAULT, given)[0] == component


def test_the_old_call_draws_what_the_new_one_does() -> None:
    settings = {"concentration": 1.0, "num_chains": 1, "num_warmup": 0, "num_samples": 4, "progress": False}
    arguments = (jax.random.key(0), VALUES, dpjax.Laplace(1.0))
    new = mixture.sample(*arguments, component=BASE, sampler=mixture.neal5(), **settings)
    with pytest.warns(DeprecationWarning, match="of mixture.sample is deprecated") as caught:
        old = mixture.sample(*arguments, base=BASE, sampler="neal5", **settings)
    assert {warning.filename for warning in caught} == {__file__}
    jax.tree.map(np.testing.assert_array_equal, new.mixing, old.mixing)


def test_what_never_was_a_name_is_no_keyword() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'atoms'"):
        mixture.sample(jax.random.key(0), VALUES, None, component=BASE, concentration=1.0, atoms=3)


REFUSED = [
    ({"sampler": "neal4"}, ValueError, "sampler"),
    ({"sampler": "neal5", "weights": "stick"}, ValueError, "weights"),
    ({"sampler": "neal5", "truncation": 20}, ValueError, "truncation"),
    ({"sampler": "neal5", "offers": 2}, ValueError, "offers"),
    ({"sampler": "neal5", "auxiliaries": 0}, ValueError, "auxiliaries"),
    ({"sampler": "neal5", "redraw": "no"}, TypeError, "redraw"),
    ({"sampler": "neal8", "redraw": False}, ValueError, "redraw"),
    ({"sampler": "neal3", "auxiliaries": 2}, ValueError, "auxiliaries"),
    ({"sampler": "conditional", "auxiliaries": 2}, ValueError, "auxiliaries"),
    ({"sampler": "conditional", "redraw": False}, ValueError, "redraw"),
    ({"sampler": mixture.neal5(), "offers": 1}, ValueError, "offers"),
    ({"weights": "sticks"}, ValueError, "weights"),
    ({"split_merge": -1}, ValueError, "split_merge"),
    ({"split_merge": 1.0}, TypeError, "split_merge"),
    ({"split_merge": 1, "launch_scans": -1}, ValueError, "launch_scans"),
    ({"split_merge": 1, "weights": "stick"}, ValueError, "split_merge"),
    ({"kernel": "cauchy"}, ValueError, "kernel"),
    ({"kernel": TwoPoints(), "base": BASE}, ValueError, "base"),
    ({"kernel": object()}, TypeError, "component"),
    ({"base": None}, TypeError, "base"),
    ({"base": mixture.NormalInverseGamma}, TypeError, "base"),
    ({"base": mixture.GammaShapes(2.0, 1.0)}, TypeError, "base"),
    ({"component": BASE, "base": BASE}, ValueError, "component"),
]


@pytest.mark.filterwarnings("ignore:.*of mixture.sample is deprecated:DeprecationWarning")
@pytest.mark.parametrize(("given", "error", "argument"), REFUSED)
def test_what_did_not_go_together_is_refused_as_it_was(given: dict[str, Any], error: Any, argument: str) -> None:
    settings = {"concentration": 1.0, "progress": False} | ({} if {"kernel", "base"} & set(given) else {"base": BASE})
    with pytest.raises(error, match=rf"^{argument}: given"):
        mixture.sample(jax.random.key(0), VALUES, dpjax.Laplace(1.0), **(settings | given))
