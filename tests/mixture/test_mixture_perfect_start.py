"""Every variant of the conditional sampler keeps the joint law of everything; planted faults do not."""

import sys

import jax
import jax.numpy as jnp
import pytest
from scipy import stats

import dpjax
from dpjax.mixture.conditional import Scheme
from dpjax.mixture.records import Imputed
from dpjax.models import GammaPrior
from tests.mixture.perfect import NOISE, p_value, run
from tests.perfect_start import REJECT

PRIOR = GammaPrior(6.0, 10.0)
ALPHA = 0.6

CASES = {
    "exact": (Scheme("posterior", 20, 0), PRIOR, dpjax.Laplace(NOISE)),
    "metropolis": (Scheme("posterior", 20, 1), ALPHA, dpjax.Laplace(NOISE)),
    "several offers": (Scheme("posterior", 20, 3), ALPHA, dpjax.Laplace(NOISE)),
    "sticks": (Scheme("stick", 20, 0), ALPHA, dpjax.Gaussian(NOISE)),
    "blocked": (Scheme("blocked", 20, 1), ALPHA, dpjax.Laplace(NOISE)),
}


QUICK = ("exact", "metropolis")
MARKED = [pytest.param(name, marks=pytest.mark.keys if name in QUICK else pytest.mark.slow) for name in CASES]


@pytest.mark.parametrize("name", MARKED)
def test_the_joint_law_is_invariant(name: str) -> None:
    scheme, concentration, channel = CASES[name]
    ends = run(jax.random.key(21), scheme, concentration, channel)
    law = stats.norm if isinstance(channel, dpjax.Gaussian) else stats.laplace
    assert p_value(ends, concentration, law(scale=NOISE)) > REJECT
    assert ends.overflow.mean() < 1e-3
    assert (ends.acceptance_rate.mean() == 1.0) == (scheme.num_offers == 0)


def plant(monkeypatch: pytest.MonkeyPatch, name: str, fault: object) -> None:
    monkeypatch.setattr(sys.modules["dpjax.mixture.conditional"], name, fault)


SCHEME = Scheme("posterior", 20, 0)


def test_slices_before_the_new_weights_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted fault: every record may choose every slot held, by equal weights."""
    from dpjax.mixture import labels

    def level(present: jax.Array, weights: labels.Weights) -> labels.Slices:
        return labels.open_slices(present, weights)._replace(log_shares=jnp.zeros_like(weights.weights))

    plant(monkeypatch, "draw_slices", lambda uniforms, present, weights, threshold: level(present, weights))
    assert p_value(run(jax.random.key(21), SCHEME, ALPHA), ALPHA) < REJECT


def test_records_that_ignore_the_values_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    def deaf(problem, scheme, key, theta, state):
        drawn = problem.component.sample(key, theta)
        return Imputed(drawn, state.log_channel, jnp.ones(len(drawn), bool), jnp.array(0))

    plant(monkeypatch, "impute", deaf)
    assert p_value(run(jax.random.key(21), SCHEME, ALPHA), ALPHA) < REJECT


@pytest.mark.slow
def test_old_slices_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted fault: the slice variables are drawn uniformly on (0, threshold) whatever the slot's weight."""
    from dpjax.mixture import labels

    def short(uniforms, present, weights, threshold):
        return labels.draw_slices(uniforms * uniforms, present, weights, threshold)

    plant(monkeypatch, "draw_slices", short)
    assert p_value(run(jax.random.key(21), SCHEME, ALPHA, num_chains=20_000), ALPHA) < REJECT


@pytest.mark.slow
def test_a_forgotten_cluster_in_the_concentration_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    from dpjax.mixture.concentration import update_concentration

    def forgetful(key, prior, present, num_clusters, n):
        return update_concentration(key, prior, present, num_clusters - 1, n)

    plant(monkeypatch, "update_concentration", forgetful)
    assert p_value(run(jax.random.key(21), SCHEME, PRIOR), PRIOR) < REJECT
