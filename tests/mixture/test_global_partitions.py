"""Three records known through one release: partitions and bins against full enumeration, and one record."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dpjax
from dpjax.mechanisms.base import as_mechanism
from dpjax.mixture.base import MixtureState
from dpjax.mixture.binned import bin_release
from dpjax.mixture.problem import MixtureProblem
from dpjax.mixture.samplers.base import Setup, Slots, step
from dpjax.mixture.samplers.conditional import Conditional
from dpjax.mixture.samplers.neal5 import Neal5
from tests.mixture.crp import number_partition
from tests.mixture.global_release import HISTOGRAM, RELEASES, joint_posterior
from tests.mixture.two_points import TwoPoints

ALPHA = 0.8
NUM_CHAINS = 300
NUM_SWEEPS = 500
BURN_IN = 150
SETUPS = {
    "conditional": Setup(Conditional(proposals=1), Slots(16)),
    "sticks": Setup(Conditional("stick", proposals=1), Slots(24)),
    "blocked": Setup(Conditional(truncation=24, proposals=1), Slots(24)),
    "neal 5": Setup(Neal5(), Slots(8)),
}


@partial(jax.jit, static_argnames=("setup", "n", "num_chains", "num_sweeps"))
def run(problem: MixtureProblem, setup: Any, key: jax.Array, n: int, num_chains: int, num_sweeps: int) -> Any:
    """The labels and records [chain, sweep, n] and the first record's parameter [chain, sweep]."""

    def chain(key: jax.Array) -> Any:
        start_key, prior_key, record_key, run_key = jax.random.split(key, 4)
        records = problem.component.sample(record_key, problem.component.sample_prior(prior_key, n))
        state = setup.start(problem, start_key, jnp.zeros(n, jnp.int32), records)

        def move(state: MixtureState, index: jax.Array) -> Any:
            state, _ = step(problem, setup, jax.random.fold_in(run_key, index), state)
            return state, (state.labels, state.records, state.mixing.theta["mean"][state.labels[0]])

        return jax.lax.scan(move, state, jnp.arange(num_sweeps))[1]

    return jax.vmap(chain)(jax.random.split(key, num_chains))


def largest_scores(setup: Any, release: dpjax.Release, discount: float = 0.0) -> tuple[float, float]:
    """The largest difference from the enumeration, in standard errors between chains, and from a wrong one."""
    alpha = jnp.asarray(ALPHA, float)
    problem = MixtureProblem(release.value, bin_release(release), TwoPoints(), alpha, discount or None)
    labels, records, _ = run(problem, setup, jax.random.key(5), 3, NUM_CHAINS, NUM_SWEEPS)
    partition = number_partition(np.asarray(labels)[:, BURN_IN:])
    bins = np.sum(np.asarray(records)[:, BURN_IN:, :, None] >= np.array(release.statistic.edges[1:-1]), axis=-1)
    number = np.ravel_multi_index((partition, *np.moveaxis(bins, -1, 0)), (5, 3, 3, 3))
    wrong = (ALPHA, 0.0) if discount else (0.6 * ALPHA, 0.0)
    laws = [joint_posterior(release, *numbers).ravel() for numbers in ((ALPHA, discount), wrong)]
    common = np.flatnonzero(laws[0] > 0.002)
    shares = np.stack([np.mean(number == value, axis=1) for value in common], axis=1)
    errors = shares.std(axis=0, ddof=1) / np.sqrt(NUM_CHAINS)
    right, wrong = (float(np.max(np.abs(shares.mean(axis=0) - law[common]) / errors)) for law in laws)
    return right, wrong


QUICK = (("conditional", "smoothed"),)
CASES = [
    pytest.param(*case, marks=() if case in QUICK else pytest.mark.slow)
    for case in [(setup, release) for setup in SETUPS for release in RELEASES]
]


@pytest.mark.x32
@pytest.mark.parametrize(("setup", "release"), CASES)
def test_partitions_and_bins_have_the_enumerated_law(setup: str, release: str) -> None:
    right, wrong = largest_scores(SETUPS[setup], RELEASES[release])
    assert right < 5 < wrong


@pytest.mark.slow
@pytest.mark.x32
@pytest.mark.parametrize("setup", ["conditional", "neal 5"])
def test_a_discount_changes_the_enumerated_law(setup: str) -> None:
    """The wrong law is that of no discount."""
    right, wrong = largest_scores(SETUPS[setup].with_capacity(24), RELEASES["smoothed"], 0.25)
    assert right < 5 < wrong


class OneBin:
    """The channel of a single record: noise on its bin."""

    def log_density(self, value: jax.Array, statistic: jax.Array) -> jax.Array:
        return dpjax.Laplace(0.5).log_density(value, HISTOGRAM({"y": statistic}))

    def sample(self, key: jax.Array, statistic: jax.Array) -> jax.Array:
        return dpjax.Laplace(0.5).sample(key, HISTOGRAM({"y": statistic}))


@pytest.mark.parametrize("name", ["conditional", pytest.param("neal 5", marks=pytest.mark.slow)])
def test_of_one_record_a_release_of_all_is_a_release_of_each(name: str) -> None:
    """The same keys give the same chain, record by record."""
    alpha, value = jnp.asarray(ALPHA, float), jnp.array([0.7, -0.3, 0.4], float)
    together = MixtureProblem(
        value, bin_release(dpjax.Release(value, dpjax.Laplace(0.5), HISTOGRAM, 1)), TwoPoints(), alpha
    )
    apart = MixtureProblem(value[None], as_mechanism(OneBin()), TwoPoints(), alpha)
    runs = [run(problem, SETUPS[name], jax.random.key(6), 1, 2, 60) for problem in (together, apart)]
    for first, second in zip(*runs, strict=True):
        np.testing.assert_array_equal(first, second)
    assert len(np.unique(runs[0][1])) > 40
