"""Split-merge moves by themselves against full enumeration, and what does not go with them."""

import sys
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from dpjax.mixture.samplers.relabelled import MarginalScheme
from dpjax.mixture.schemes import functions_of

import dpjax
from dpjax import mixture
from dpjax.mixture.base import MixtureState
from dpjax.mixture.samplers.conditional import Problem
from dpjax.mixture.samplers.split_merge import split_merge
from tests.mixture.crp import PARTITIONS, number_partition, partition_posterior
from tests.mixture.test_partitions import ALPHA, BURN_IN, NOISE, NUM_CHAINS, NUM_SWEEPS, VALUES, evidence
from tests.mixture.two_points import PRIOR, ConjugateTwoPoints, ReleasedTwoPoints, TwoPoints

CASES = {
    "values": (MarginalScheme("neal3", 8, split_merge=1, launch_scans=1), ReleasedTwoPoints(NOISE)),
    "values, three at once": (MarginalScheme("neal3", 8, split_merge=3), ReleasedTwoPoints(NOISE)),
    "records drawn anew": (MarginalScheme("neal8", 8, split_merge=1, launch_scans=2), ConjugateTwoPoints()),
}
QUICK = ("records drawn anew",)
MARKED = [pytest.param(name, marks=pytest.mark.keys if name in QUICK else pytest.mark.slow) for name in CASES]


@partial(jax.jit, static_argnames="scheme")
def moved_alone(problem: Problem, scheme: Any, key: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The labels [chain, move, 3] of chains that make no other move, and how many moves were accepted."""
    start, _ = functions_of(scheme)

    def chain(key: jax.Array) -> tuple[jax.Array, jax.Array]:
        start_key, run_key = jax.random.split(key)
        state = start(problem, scheme, start_key, jnp.array([0, 0, 1], jnp.int32), problem.values)

        def step(state: MixtureState, index: jax.Array) -> tuple[MixtureState, tuple[jax.Array, jax.Array]]:
            moved = split_merge(problem, scheme, jax.random.fold_in(run_key, index), state)
            return state._replace(labels=moved.labels, records=moved.records), (moved.labels, moved.num_accepted)

        return jax.lax.scan(step, state, jnp.arange(2 * NUM_SWEEPS))[1]

    return jax.vmap(chain)(jax.random.split(key, NUM_CHAINS))


def largest_score(name: str, believed: float = ALPHA) -> float:
    """The largest difference from the enumeration, in standard errors between chains."""
    scheme, component = CASES[name]
    channel = None if isinstance(component, ReleasedTwoPoints) else dpjax.Laplace(NOISE)
    problem = Problem(jnp.asarray(VALUES, float), channel, component, jnp.asarray(believed, float))
    labels, accepted = jax.device_get(moved_alone(problem, scheme, jax.random.key(6)))
    assert 0.05 < accepted.mean() / scheme.split_merge < 0.95
    found = number_partition(labels[:, BURN_IN:])
    shares = np.stack([np.mean(found == number, axis=1) for number in range(len(PARTITIONS))], axis=1)
    errors = shares.std(axis=0, ddof=1) / np.sqrt(NUM_CHAINS)
    exact = partition_posterior(evidence(), np.array(PRIOR), ALPHA)
    return float(np.max(np.abs(shares.mean(axis=0) - exact) / errors))


@pytest.mark.parametrize("name", MARKED)
def test_partitions_have_the_enumerated_law(name: str) -> None:
    assert largest_score(name) < 5
    assert largest_score(name, believed=0.7 * ALPHA) > 5


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
    score = largest_score(name)
    jax.clear_caches()
    assert score > 5


BASE = mixture.NormalInverseGamma(0.0, 0.1, 3.0, 3.0)
REFUSED = [
    ({"split_merge": -1}, ValueError, "split_merge"),
    ({"split_merge": 1.0}, TypeError, "split_merge"),
    ({"split_merge": 1, "launch_scans": -1}, ValueError, "launch_scans"),
    ({"split_merge": 1, "weights": "stick"}, ValueError, "split_merge"),
    ({"split_merge": 1, "truncation": 20}, ValueError, "split_merge"),
    ({"split_merge": 1, "sampler": "neal5", "auxiliaries": 2, "redraw": False}, ValueError, "split_merge"),
    ({"split_merge": 1, "base": None, "kernel": TwoPoints()}, ValueError, "split_merge"),
    ({"split_merge": 1, "values": np.zeros(1)}, ValueError, "split_merge"),
]


@pytest.mark.parametrize(("change", "error", "argument"), REFUSED)
def test_what_does_not_go_together_is_refused(change: dict[str, Any], error: Any, argument: str) -> None:
    settings = {"values": np.zeros(6), "channel": dpjax.Laplace(0.6), "base": BASE, "concentration": 1.0}
    with pytest.raises(error, match=rf"^{argument}: given"):
        mixture.sample(jax.random.key(0), progress=False, **(settings | change))
