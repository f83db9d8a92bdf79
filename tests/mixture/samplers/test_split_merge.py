"""Split-merge moves by themselves against full enumeration, and what does not go with them."""

import sys
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dpjax
from dpjax import mixture
from dpjax.mixture.base import MixtureState
from dpjax.mixture.problem import MixtureProblem
from dpjax.mixture.samplers.base import Setup, Slots
from dpjax.mixture.samplers.neal3 import Neal3
from dpjax.mixture.samplers.neal8 import Neal8
from dpjax.mixture.samplers.split_merge import SplitMerge, reseat_clusters
from tests.mixture.crp import PARTITIONS, number_partition, partition_posterior
from tests.mixture.test_partitions import ALPHA, BURN_IN, NOISE, NUM_CHAINS, NUM_SWEEPS, VALUES, evidence
from tests.mixture.two_points import PRIOR, ConjugateTwoPoints, ReleasedTwoPoints, TwoPoints

CASES = {
    "values": (Setup(SplitMerge(Neal3(), 1, 1), Slots(8)), ReleasedTwoPoints(NOISE)),
    "values, three at once": (Setup(SplitMerge(Neal3(), 3, 0), Slots(8)), ReleasedTwoPoints(NOISE)),
    "records drawn anew": (Setup(SplitMerge(Neal8(), 1, 2), Slots(8)), ConjugateTwoPoints()),
}
QUICK = ("records drawn anew",)
MARKED = [pytest.param(name, marks=pytest.mark.keys if name in QUICK else pytest.mark.slow) for name in CASES]


@partial(jax.jit, static_argnames="setup")
def moved_alone(problem: MixtureProblem, setup: Any, key: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The labels [chain, move, 3] of chains that make no other move, and how many moves were accepted."""

    def chain(key: jax.Array) -> tuple[jax.Array, jax.Array]:
        start_key, run_key = jax.random.split(key)
        state = setup.start(problem, start_key, jnp.array([0, 0, 1], jnp.int32), problem.values)

        def move(state: MixtureState, index: jax.Array) -> tuple[MixtureState, tuple[jax.Array, jax.Array]]:
            moved = reseat_clusters(problem, setup.sampler, setup.slots, jax.random.fold_in(run_key, index), state)
            return state._replace(labels=moved.labels, records=moved.records), (moved.labels, moved.num_accepted)

        return jax.lax.scan(move, state, jnp.arange(NUM_SWEEPS))[1]

    return jax.vmap(chain)(jax.random.split(key, NUM_CHAINS))


def largest_scores(name: str) -> tuple[float, float]:
    """The largest difference from the enumeration, in standard errors between chains, and from a wrong one."""
    setup, component = CASES[name]
    channel = None if isinstance(component, ReleasedTwoPoints) else dpjax.Laplace(NOISE)
    problem = MixtureProblem(jnp.asarray(VALUES, float), channel, component, jnp.asarray(ALPHA, float))
    labels, accepted = jax.device_get(moved_alone(problem, setup, jax.random.key(6)))
    assert 0.05 < accepted.mean() / setup.sampler.proposals < 0.95
    found = number_partition(labels[:, BURN_IN:])
    shares = np.stack([np.mean(found == number, axis=1) for number in range(len(PARTITIONS))], axis=1)
    errors = shares.std(axis=0, ddof=1) / np.sqrt(NUM_CHAINS)
    laws = [partition_posterior(evidence(), np.array(PRIOR), alpha) for alpha in (ALPHA, 0.7 * ALPHA)]
    right, wrong = (float(np.max(np.abs(shares.mean(axis=0) - law) / errors)) for law in laws)
    return right, wrong


@pytest.mark.parametrize("name", MARKED)
def test_partitions_have_the_enumerated_law(name: str) -> None:
    right, wrong = largest_scores(name)
    assert right < 5 < wrong


FAULTS = {
    "no proposal density of the sides": ("log_sides", "values"),
    "no proposal density of the records": ("log_imputed", "records drawn anew"),
    "no sizes of the clusters": ("gammaln", "values"),
}


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults_are_rejected(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    attribute, name = FAULTS[fault]
    jax.clear_caches()  # the program compiled for the right move would answer for the wrong one
    nothing = (lambda counts: jnp.zeros_like(counts)) if attribute == "gammaln" else (lambda *given: jnp.array(0.0))
    monkeypatch.setattr(sys.modules["dpjax.mixture.samplers.split_merge"], attribute, nothing)
    score, _ = largest_scores(name)
    jax.clear_caches()
    assert score > 5


BASE = mixture.NormalInverseGamma(0.0, 0.1, 3.0, 3.0)
SMALL = mixture.split_merge(mixture.conditional())
REFUSED = [
    {"sampler": mixture.split_merge(mixture.conditional("stick"))},
    {"sampler": mixture.split_merge(mixture.conditional(truncation=20))},
    {"sampler": mixture.split_merge(mixture.neal5(2, redraw=False))},
    {"sampler": mixture.split_merge(SMALL)},
    {"sampler": SMALL, "component": TwoPoints()},
    {"sampler": SMALL, "values": np.zeros(1)},
]


@pytest.mark.parametrize("change", REFUSED)
def test_what_does_not_go_together_is_refused(change: dict[str, Any]) -> None:
    settings = {"values": np.zeros(6), "channel": dpjax.Laplace(0.6), "component": BASE, "concentration": 1.0}
    with pytest.raises(ValueError, match=r"^split_merge: given"):
        mixture.gibbs(**(settings | change))


def test_unusable_choices_are_refused() -> None:
    with pytest.raises(TypeError, match=r"^sampler: given"):
        mixture.split_merge("neal5")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"^proposals: given"):
        mixture.split_merge(mixture.conditional(), 0)
    with pytest.raises(TypeError, match=r"^proposals: given"):
        mixture.split_merge(mixture.conditional(), 1.0)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"^launch_scans: given"):
        mixture.split_merge(mixture.conditional(), 1, -1)
