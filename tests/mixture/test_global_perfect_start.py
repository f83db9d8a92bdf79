"""With one release of all records the samplers keep the joint distribution of everything; mutations do not."""

import sys
from dataclasses import replace

import jax
import numpy as np
import pytest
from scipy import stats

import dpjax
from dpjax import statistics
from dpjax.mixture.binned import Binned
from dpjax.mixture.samplers.base import Setup, Slots
from dpjax.mixture.samplers.conditional import Conditional
from dpjax.mixture.samplers.neal5 import Neal5
from dpjax.models import GammaPrior
from tests.mixture.components.cases import COMPONENTS
from tests.mixture.perfect import BASE_LAWS, N, p_value, run
from tests.tools.perfect_start import REJECT

PRIOR = GammaPrior(6.0, 10.0)
COUNTS = statistics.histogram("y", [-9.0, -0.5, 0.5, 1.5, 9.0])
SCALE = 0.4
NOISY = dpjax.Release(np.zeros(4), dpjax.Laplace(SCALE), COUNTS, N)
SMOOTHED = dpjax.Release(
    np.zeros(6), dpjax.SmoothedHistogram(0.15, 6), statistics.histogram("y", np.linspace(0, 1, 5)), N
)
LAPLACE = stats.laplace(scale=SCALE)
SETUPS = {"conditional": Setup(Conditional(proposals=1), Slots(24)), "neal 5": Setup(Neal5(), Slots(32))}


QUICK = ["neal 5", pytest.param("conditional", marks=pytest.mark.slow)]


@pytest.mark.keys
@pytest.mark.parametrize("name", QUICK)
def test_the_joint_law_is_invariant(name: str) -> None:
    ends = run(jax.random.key(31), SETUPS[name], PRIOR, NOISY)
    assert p_value(ends, PRIOR, LAPLACE) > REJECT
    assert ends.overflow.mean() < 1e-3
    assert np.exp(-2 / SCALE) < ends.acceptance_rate.mean() < 0.7


@pytest.mark.slow
@pytest.mark.parametrize("name", SETUPS)
def test_draws_from_a_smoothed_histogram_keep_their_law(name: str) -> None:
    component, laws = COMPONENTS["beta"]
    ends = run(jax.random.key(32), SETUPS[name], PRIOR, SMOOTHED, component=component)
    assert p_value(ends, PRIOR, stats.uniform, laws) > REJECT
    other = replace(SMOOTHED, mechanism=dpjax.SmoothedHistogram(0.8, 6))
    ends = run(jax.random.key(32), SETUPS[name], PRIOR, SMOOTHED, component=component, believed=(other, PRIOR))
    assert p_value(ends, PRIOR, stats.uniform, laws) < REJECT


def another_scale(factor: float) -> dpjax.Release:
    return replace(NOISY, mechanism=dpjax.Laplace(factor * SCALE))


WRONG = {
    "proposals that are always taken": (another_scale(1e6), PRIOR),
    "noise of another scale": (another_scale(2.0), PRIOR),
    "a concentration of another prior": (NOISY, GammaPrior(6.0, 6.0)),
}
COVERED = ("proposals that are always taken", "a concentration of another prior")
"""What the same sampler and the same step of the concentration are convicted of in `test_marginal_perfect_start`."""

FAULTS = [pytest.param(fault, marks=[pytest.mark.slow] * (fault in COVERED)) for fault in WRONG]


@pytest.mark.x32
@pytest.mark.parametrize("name", QUICK)
@pytest.mark.parametrize("fault", FAULTS)
def test_sweeps_of_another_model_are_rejected(name: str, fault: str) -> None:
    ends = run(jax.random.key(31), SETUPS[name], PRIOR, NOISY, believed=WRONG[fault])
    assert p_value(ends, PRIOR, LAPLACE) < REJECT


@pytest.mark.x32
@pytest.mark.parametrize("name", QUICK)
def test_noise_without_end_leaves_the_prior(name: str) -> None:
    """Every proposal is taken; the counts tell nothing, and what they imply is left to chance."""
    vague = another_scale(1e6)
    ends = run(jax.random.key(33), SETUPS[name], PRIOR, vague)
    assert ends.acceptance_rate.mean() > 0.999
    assert p_value(ends, PRIOR, stats.laplace(scale=1e6 * SCALE), BASE_LAWS) > REJECT


@pytest.mark.slow
@pytest.mark.parametrize("name", SETUPS)
@pytest.mark.parametrize("fault", ["counts as they were", "a record counted twice"])
def test_planted_faults_are_rejected(name: str, fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Records decide all at once; a bin loses its record only after the proposal is weighed."""

    def at_once(self: Binned, records: jax.Array, proposals: jax.Array, thresholds: jax.Array) -> jax.Array:
        old, new = self.histogram.bin(records), self.histogram.bin(proposals)
        counts = jax.numpy.sum(jax.nn.one_hot(old, len(self.gains), dtype=int), axis=0)
        change = self.gains[new, counts[new]] - self.gains[old, counts[old] - 1]
        return thresholds < jax.numpy.where(old == new, 0, change)

    def twice(self: Binned, records: jax.Array, proposals: jax.Array, thresholds: jax.Array) -> jax.Array:
        wrong = replace(self, gains=jax.numpy.roll(self.gains, -1, axis=1))
        return decide(wrong, records, proposals, thresholds)

    decide = Binned.decide
    jax.clear_caches()
    planted = {"counts as they were": at_once, "a record counted twice": twice}
    monkeypatch.setattr(sys.modules["dpjax.mixture.binned"].Binned, "decide", planted[fault])
    ends = run(jax.random.key(31), SETUPS[name], PRIOR, NOISY, num_chains=12_000)
    jax.clear_caches()
    assert p_value(ends, PRIOR, LAPLACE) < REJECT
