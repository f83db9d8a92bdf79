"""The marginal samplers keep the joint distribution of everything; mutations do not."""

import sys

import jax
import pytest

import dpjax
from dpjax.mixture.samplers.base import Sampler, Setup, Slots
from dpjax.mixture.samplers.neal2 import Neal2
from dpjax.mixture.samplers.neal3 import Neal3
from dpjax.mixture.samplers.neal5 import Neal5
from dpjax.mixture.samplers.neal8 import Neal8
from dpjax.models import GammaPrior
from tests.mixture.components.cases import COMPONENTS
from tests.mixture.perfect import NOISE, p_value, run
from tests.tools.perfect_start import REJECT

PRIOR = GammaPrior(6.0, 10.0)
ALPHA = 0.6

CASES = {
    "neal 5": (Setup(Neal5(), Slots(32)), PRIOR),
    "neal 5, redrawn": (Setup(Neal5(3, redraw=True), Slots(32)), ALPHA),
    "neal 8": (Setup(Neal8(2), Slots(32)), ALPHA),
}
QUICK = ("neal 5",)
MARKED = [pytest.param(name, marks=pytest.mark.keys if name in QUICK else pytest.mark.slow) for name in CASES]
LAPLACE = dpjax.Laplace(NOISE)


@pytest.mark.parametrize("name", MARKED)
def test_the_joint_law_is_invariant(name: str) -> None:
    setup, concentration = CASES[name]
    ends = run(jax.random.key(22), setup, concentration, LAPLACE)
    assert p_value(ends, concentration) > REJECT
    assert ends.overflow.mean() < 1e-3
    assert (ends.acceptance_rate.mean() == 1.0) == isinstance(setup.sampler, Neal8)


@pytest.mark.slow
@pytest.mark.parametrize("sampler", [Neal2(), Neal3(), Neal8(1)], ids=repr)
def test_the_joint_law_is_invariant_without_a_channel(sampler: Sampler) -> None:
    component, laws = COMPONENTS["truncated"]
    ends = run(jax.random.key(23), Setup(sampler, Slots(32)), PRIOR, None, component=component)
    assert p_value(ends, PRIOR, None, laws) > REJECT
    wrong = (None, GammaPrior(6.0, 6.0))
    ends = run(jax.random.key(23), Setup(sampler, Slots(32)), PRIOR, None, component=component, believed=wrong)
    assert p_value(ends, PRIOR, None, laws) < REJECT


WRONG = {
    "proposals that are always taken": (dpjax.Laplace(1e3), PRIOR),
    "noise of another scale": (dpjax.Laplace(1.5 * NOISE), PRIOR),
    "a concentration of another prior": (LAPLACE, GammaPrior(6.0, 6.0)),
}


@pytest.mark.x32
@pytest.mark.parametrize("fault", WRONG)
def test_sweeps_of_another_model_are_rejected(fault: str) -> None:
    setup, concentration = CASES["neal 5"]
    ends = run(jax.random.key(22), setup, concentration, LAPLACE, believed=WRONG[fault])
    assert p_value(ends, concentration) < REJECT


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["upside down", "one source for all", "the first auxiliary kept"])
def test_planted_faults_are_rejected(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ratio of the estimates the wrong way round; every record proposed the first one's cluster; no choice."""
    module = sys.modules["dpjax.mixture.samplers.neal5"]
    setup, concentration = CASES["neal 5, redrawn"]
    right = {name: getattr(module, name) for name in ("log_mean", "settle", "pack")}

    def one_source(urn, labels, proposal, accept):
        return right["settle"](urn._replace(sources=urn.sources.at[:].set(0)), labels, proposal, accept)

    def first(setup, key, held):
        return module.AuxiliaryRecords(held.labels, held.records[0], held.log_channel[0])

    planted = {
        "upside down": ("log_mean", lambda log_channel: -right["log_mean"](log_channel)),
        "one source for all": ("settle", one_source),
        "the first auxiliary kept": ("pack", first),
    }
    jax.clear_caches()
    monkeypatch.setattr(module, *planted[fault])
    ends = run(jax.random.key(22), setup, concentration, LAPLACE)
    jax.clear_caches()
    assert p_value(ends, concentration) < REJECT
