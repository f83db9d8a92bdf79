"""Every variant of the conditional sampler keeps the joint distribution of everything; mutations do not."""

import sys
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import pytest
from scipy import stats

import dpjax
from dpjax.mixture.samplers.base import Setup, Slots
from dpjax.mixture.samplers.conditional import Conditional, Slices, draw_slices, open_slices
from dpjax.mixture.samplers.weights import Weights
from dpjax.models import GammaPrior
from tests.mixture.components.cases import COMPONENTS
from tests.mixture.perfect import NOISE, p_value, run
from tests.tools.perfect_start import REJECT

PRIOR = GammaPrior(6.0, 10.0)
ALPHA = 0.6

CASES = {
    "exact": (Setup(Conditional(proposals=0), Slots(20)), PRIOR, dpjax.Laplace(NOISE)),
    "metropolis": (Setup(Conditional(proposals=1), Slots(20)), ALPHA, dpjax.Laplace(NOISE)),
    "several proposals": (Setup(Conditional(proposals=3), Slots(20)), ALPHA, dpjax.Laplace(NOISE)),
    "sticks": (Setup(Conditional("stick", proposals=0), Slots(20)), PRIOR, dpjax.Gaussian(NOISE)),
    "blocked": (Setup(Conditional(truncation=20, proposals=1), Slots(20)), PRIOR, dpjax.Laplace(NOISE)),
}


QUICK = ("exact",)
MARKED = [pytest.param(name, marks=pytest.mark.keys if name in QUICK else pytest.mark.slow) for name in CASES]


@pytest.mark.parametrize("name", MARKED)
def test_the_joint_law_is_invariant(name: str) -> None:
    setup, concentration, channel = CASES[name]
    ends = run(jax.random.key(21), setup, concentration, channel)
    law = stats.norm if isinstance(channel, dpjax.Gaussian) else stats.laplace
    assert p_value(ends, concentration, law(scale=NOISE)) > REJECT
    assert ends.overflow.mean() < 1e-3
    assert (ends.acceptance_rate.mean() == 1.0) == (setup.sampler.proposals == 0)


@pytest.fixture(autouse=True)
def forget_planted(request: pytest.FixtureRequest) -> Iterator[None]:
    """No program compiled for a mutation test is left behind."""
    yield
    if "monkeypatch" in request.fixturenames:
        jax.clear_caches()


def plant(monkeypatch: pytest.MonkeyPatch, name: str, fault: object) -> None:
    jax.clear_caches()  # the program compiled for the right kernel would answer for the wrong one
    monkeypatch.setattr(sys.modules["dpjax.mixture.samplers.conditional"], name, fault)


SETUP = Setup(Conditional(proposals=0), Slots(20))
LAPLACE = dpjax.Laplace(NOISE)


@pytest.mark.slow
def test_slices_before_the_new_weights_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mutation: every record may choose every slot held, by equal weights."""

    def level(present: jax.Array, weights: Weights) -> Slices:
        return open_slices(present, weights)._replace(log_shares=jnp.zeros_like(weights.weights))

    plant(monkeypatch, "draw_slices", lambda uniforms, present, weights, threshold: level(present, weights))
    assert p_value(run(jax.random.key(21), SETUP, ALPHA, LAPLACE), ALPHA) < REJECT


@pytest.mark.slow
@pytest.mark.parametrize("name", COMPONENTS)
def test_other_components_keep_the_joint_law(name: str) -> None:
    """The truncated base measure without imputation, and Beta records by Metropolis steps."""
    component, laws = COMPONENTS[name]
    channel, proposals = (LAPLACE, 1) if name == "beta" else (None, 0)
    ends = run(
        jax.random.key(21), Setup(Conditional(proposals=proposals), Slots(20)), ALPHA, channel, component=component
    )
    law = stats.laplace(scale=NOISE) if name == "beta" else None
    assert p_value(ends, ALPHA, law, laws) > REJECT
    assert p_value(ends, 1.6 * ALPHA, law, laws) < REJECT


WRONG = {
    "values that are not listened to": (dpjax.Laplace(1e3), PRIOR),
    "noise of another scale": (dpjax.Laplace(1.3 * NOISE), PRIOR),
    "a concentration of another prior": (dpjax.Laplace(NOISE), GammaPrior(6.0, 6.0)),
}


@pytest.mark.x32
@pytest.mark.parametrize("fault", WRONG)
def test_sweeps_of_another_model_are_rejected(fault: str) -> None:
    setup, concentration, channel = CASES["exact"]
    ends = run(jax.random.key(21), setup, concentration, channel, believed=WRONG[fault])
    assert p_value(ends, concentration) < REJECT


@pytest.mark.slow
def test_proposals_that_are_always_taken_are_rejected() -> None:
    setup, concentration, channel = CASES["metropolis"]
    ends = run(jax.random.key(21), setup, concentration, channel, believed=(dpjax.Laplace(1e3), ALPHA))
    assert p_value(ends, concentration) < REJECT


@pytest.mark.slow
def test_old_slices_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mutation: the slice variables are drawn uniformly on (0, threshold) whatever the slot's weight."""

    def short(uniforms, present, weights, threshold):
        return draw_slices(uniforms * uniforms, present, weights, threshold)

    plant(monkeypatch, "draw_slices", short)
    assert p_value(run(jax.random.key(21), SETUP, ALPHA, LAPLACE, num_chains=20_000), ALPHA) < REJECT


@pytest.mark.slow
def test_a_forgotten_cluster_in_the_concentration_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    from dpjax.mixture.samplers.weights import update_concentration

    def forgetful(key, prior, present, num_clusters, n):
        return update_concentration(key, prior, present, num_clusters - 1, n)

    plant(monkeypatch, "update_concentration", forgetful)
    assert p_value(run(jax.random.key(21), SETUP, PRIOR, LAPLACE), PRIOR) < REJECT
