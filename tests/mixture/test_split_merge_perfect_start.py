"""Sweeps that begin with split-merge moves keep the joint distribution of everything; mutations do not."""

import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dpjax
from dpjax import mixture
from dpjax.mixture.samplers.base import Setup, Slots
from dpjax.mixture.samplers.conditional import Conditional
from dpjax.mixture.samplers.neal3 import Neal3
from dpjax.mixture.samplers.neal5 import Neal5
from dpjax.mixture.samplers.neal8 import Neal8
from dpjax.mixture.samplers.split_merge import SplitMerge
from tests.mixture import test_multivariate_perfect_start as vectors
from tests.mixture.components.cases import COMPONENTS
from tests.mixture.perfect import BASE_LAWS, LAPLACE, NOISE, p_value, run
from tests.tools.perfect_start import REJECT

PRIOR = vectors.PRIOR
MOVES = {"proposals": 2, "launch_scans": 2}
TRUNCATED, TRUNCATED_LAWS = COMPONENTS["truncated"]
NUMBERS = mixture.NormalInverseGamma(0.5, 0.5, 3.0, 2.0)

CASES = {
    "conditional": (Setup(SplitMerge(Conditional(proposals=0), **MOVES), Slots(20)), dpjax.Laplace(NOISE), NUMBERS),
    "neal 3": (Setup(SplitMerge(Neal3(), **MOVES), Slots(32)), None, TRUNCATED),
    "neal 5": (Setup(SplitMerge(Neal5(), **MOVES), Slots(32)), dpjax.Laplace(NOISE), NUMBERS),
    "neal 8": (Setup(SplitMerge(Neal8(2), **MOVES), Slots(32)), dpjax.Laplace(NOISE), NUMBERS),
    "vectors": (Setup(SplitMerge(Neal8(2), **MOVES), Slots(32)), vectors.GAUSSIAN, vectors.BASE),
}


def smallest(name: str) -> float:
    """The p-value that the ends follow the laws they began with."""
    setup, channel, component = CASES[name]
    ends = run(jax.random.key(41), setup, PRIOR, channel, component=component)
    assert ends.overflow.mean() < 2e-3
    if name == "vectors":
        return vectors.p_value(ends, channel)
    laws = BASE_LAWS if component is NUMBERS else TRUNCATED_LAWS
    return p_value(ends, PRIOR, None if channel is None else LAPLACE, laws)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_the_joint_law_is_invariant(name: str) -> None:
    assert smallest(name) > REJECT


@pytest.mark.slow
@pytest.mark.parametrize(("fault", "name"), [("log_sides", "neal 3"), ("log_imputed", "conditional")])
def test_missing_proposal_densities_are_rejected(fault: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    jax.clear_caches()  # the program compiled for the right move would answer for the wrong one
    monkeypatch.setattr(sys.modules["dpjax.mixture.samplers.split_merge"], fault, lambda *given: jnp.array(0.0))
    found = smallest(name)
    jax.clear_caches()
    assert found < REJECT


def two_far_clusters(proposals: int) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of clusters [chain, draw] of large clusters, and how many proposals were accepted."""
    generator = np.random.default_rng(5)
    records = np.repeat([-6.0, 6.0], 60) + generator.normal(size=120)
    posterior = mixture.sample(
        jax.random.key(9),
        records + generator.normal(size=120),
        dpjax.Gaussian(1.0),
        component=mixture.NormalInverseGamma(0.0, 0.01, 3.0, 60.0),
        concentration=0.1,
        sampler=mixture.split_merge(mixture.neal8(), proposals) if proposals else mixture.neal8(),
        num_chains=2,
        num_warmup=0,
        num_samples=150,
        collect=("labels",),
        progress=False,
    )
    labels = posterior.collected["labels"]
    mixed = [[len(set(row[:60]) & set(row[60:])) > 0 for row in chain] for chain in labels]
    return np.array(mixed), posterior.info["num_split_merges"]


@pytest.mark.slow
def test_far_clusters_that_begin_as_one_are_split() -> None:
    mixed, accepted = two_far_clusters(2)
    assert accepted.sum() > 0
    assert not np.any(mixed[:, 50:])
