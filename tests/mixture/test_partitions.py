"""Three records and two possible parameters: the posterior of partitions against full enumeration."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

import dpjax
from dpjax.mixture.base import MixtureState
from dpjax.mixture.samplers.conditional import Problem, Scheme
from dpjax.mixture.samplers.relabelled import MarginalScheme
from dpjax.mixture.schemes import functions_of
from tests.mixture.crp import PARTITIONS, number_partition, partition_posterior
from tests.mixture.two_points import (
    MEANS,
    PRIOR,
    SCALE,
    ConjugateTwoPoints,
    KnownTwoPoints,
    ReleasedTwoPoints,
    TwoPoints,
)

VALUES = (-1.4, 0.6, 2.0)
NOISE = 0.6
ALPHA = 0.8
NUM_CHAINS = 300
NUM_SWEEPS = 400
BURN_IN = 50


def evidence() -> np.ndarray:
    """The density [parameters, 3] of each value under each parameter, by quadrature."""

    def density(value: float, mean: float) -> float:
        def integrand(y: float) -> float:
            return stats.laplace.pdf(value, y, NOISE) * stats.norm.pdf(y, mean, SCALE)

        return integrate.quad(integrand, -12, 12, points=[value], limit=200)[0]

    return np.array([[density(value, mean) for value in VALUES] for mean in MEANS])


@partial(jax.jit, static_argnames="scheme")
def partitions(problem: Problem, scheme: Scheme | MarginalScheme, key: jax.Array) -> jax.Array:
    """The labels [chain, sweep, 3] of many chains."""
    start, sweep = functions_of(scheme)

    def chain(key: jax.Array) -> jax.Array:
        start_key, run_key = jax.random.split(key)
        labels = jnp.array([0, 0, 1], jnp.int32)
        state = start(problem, scheme, start_key, labels, problem.values)

        def step(state: MixtureState, index: jax.Array) -> tuple[MixtureState, jax.Array]:
            state, _ = sweep(problem, scheme, jax.random.fold_in(run_key, index), state)
            return state, state.labels

        return jax.lax.scan(step, state, jnp.arange(NUM_SWEEPS))[1]

    return jax.vmap(chain)(jax.random.split(key, NUM_CHAINS))


def largest_score(scheme: Scheme | MarginalScheme, component: TwoPoints, believed: float = ALPHA) -> float:
    """The largest difference from the enumeration, in standard errors between chains."""
    channel = None if isinstance(component, ReleasedTwoPoints) else dpjax.Laplace(NOISE)
    problem = Problem(jnp.asarray(VALUES, float), channel, component, jnp.asarray(believed, float))
    found = number_partition(np.asarray(partitions(problem, scheme, jax.random.key(5))[:, BURN_IN:]))
    shares = np.stack([np.mean(found == number, axis=1) for number in range(len(PARTITIONS))], axis=1)
    errors = shares.std(axis=0, ddof=1) / np.sqrt(NUM_CHAINS)
    exact = partition_posterior(evidence(), np.array(PRIOR), ALPHA)
    return float(np.max(np.abs(shares.mean(axis=0) - exact) / errors))


CASES = {
    "exact": (Scheme("posterior", 16, 0), KnownTwoPoints()),
    "metropolis": (Scheme("posterior", 16, 1), TwoPoints()),
    "several offers": (Scheme("posterior", 16, 3), TwoPoints()),
    "sticks": (Scheme("stick", 24, 1), TwoPoints()),
    "blocked": (Scheme("blocked", 24, 0), KnownTwoPoints()),
    "neal 2": (MarginalScheme("neal2", 8), ReleasedTwoPoints(NOISE)),
    "neal 3": (MarginalScheme("neal3", 8), ReleasedTwoPoints(NOISE)),
    "neal 5": (MarginalScheme("neal5", 8), TwoPoints()),
    "neal 5, all auxiliaries kept": (MarginalScheme("neal5", 8, 3), TwoPoints()),
    "neal 5, redrawn": (MarginalScheme("neal5", 8, 3, redraw=True), TwoPoints()),
    "neal 8": (MarginalScheme("neal8", 8, 2), KnownTwoPoints()),
    "exact, split-merge": (Scheme("posterior", 16, 0, split_merge=1, launch_scans=1), ConjugateTwoPoints()),
    "neal 5, split-merge": (MarginalScheme("neal5", 8, split_merge=1, launch_scans=1), ConjugateTwoPoints()),
}
QUICK = ("metropolis", "neal 3", "neal 5")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in CASES]
)
def test_partitions_have_the_enumerated_law(name: str) -> None:
    assert largest_score(*CASES[name]) < 5
    assert largest_score(*CASES[name], believed=0.7 * ALPHA) > 5
