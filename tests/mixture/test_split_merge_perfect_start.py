"""Sweeps that begin with split-merge moves keep the joint law of everything; planted faults do not."""

import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dpjax
from dpjax import mixture
from dpjax.mixture.samplers.conditional import Scheme
from dpjax.mixture.samplers.relabelled import MarginalScheme
from tests.mixture import test_multivariate_perfect_start as vectors
from tests.mixture.components import COMPONENTS
from tests.mixture.perfect import BASE_LAWS, LAPLACE, NOISE, p_value, run
from tests.perfect_start import REJECT

PRIOR = vectors.PRIOR
MOVES = {"split_merge": 2, "launch_scans": 2}
TRUNCATED, TRUNCATED_LAWS = COMPONENTS["truncated"]
NUMBERS = mixture.NormalInverseGamma(0.5, 0.5, 3.0, 2.0)

CASES = {
    "conditional": (Scheme("posterior", 20, 0, **MOVES), dpjax.Laplace(NOISE), NUMBERS),
    "neal 3": (MarginalScheme("neal3", 32, **MOVES), None, TRUNCATED),
    "neal 5": (MarginalScheme("neal5", 32, **MOVES), dpjax.Laplace(NOISE), NUMBERS),
    "neal 8": (MarginalScheme("neal8", 32, 2, **MOVES), dpjax.Laplace(NOISE), NUMBERS),
    "vectors": (MarginalScheme("neal8", 32, 2, **MOVES), vectors.GAUSSIAN, vectors.BASE),
}


def smallest(name: str) -> float:
    """The p-value that the ends follow the laws they began with."""
    scheme, channel, component = CASES[name]
    ends = run(jax.random.key(41), scheme, PRIOR, channel, component=component)
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


def two_far_clusters(split_merge: int) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of clusters [chain, draw] of large clusters, and how many proposals were accepted."""
    generator = np.random.default_rng(5)
    records = np.repeat([-6.0, 6.0], 60) + generator.normal(size=120)
    posterior = mixture.sample(
        jax.random.key(9),
        records + generator.normal(size=120),
        dpjax.Gaussian(1.0),
        base=mixture.NormalInverseGamma(0.0, 0.01, 3.0, 60.0),
        concentration=0.1,
        sampler="neal8",
        split_merge=split_merge,
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
