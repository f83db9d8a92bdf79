"""Few records and two possible parameters: the posterior of partitions against full enumeration."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, special, stats

import dpjax
from dpjax import mixture
from dpjax.mechanisms import PoissonBinomial
from dpjax.mixture.base import MixtureState
from dpjax.mixture.problem import MixtureProblem
from dpjax.mixture.process import Process
from dpjax.mixture.samplers.base import Setup, Slots, step
from dpjax.mixture.samplers.conditional import Conditional
from dpjax.mixture.samplers.neal2 import Neal2
from dpjax.mixture.samplers.neal3 import Neal3
from dpjax.mixture.samplers.neal5 import Neal5
from dpjax.mixture.samplers.neal8 import Neal8
from tests.mixture.components.test_tractable import expected_marginals
from tests.mixture.crp import number_partition, partition_posterior
from tests.mixture.two_points import (
    MEANS,
    PRIOR,
    SCALE,
    KnownTwoPoints,
    ReleasedTwoPoints,
    TwoPoints,
)

VALUES = (-1.4, 0.6, 2.0)
NOISE = 0.6
FOUR = (*VALUES, 0.4)
ALPHA = 0.8
DISCOUNT = 0.2
NUM_CHAINS = 300
NUM_SWEEPS = 400
BURN_IN = 50


def evidence(values: tuple[float, ...]) -> np.ndarray:
    """The density [parameters, n] of each value under each parameter, by quadrature."""

    def density(value: float, mean: float) -> float:
        def integrand(y: float) -> float:
            return stats.laplace.pdf(value, y, NOISE) * stats.norm.pdf(y, mean, SCALE)

        return integrate.quad(integrand, -12, 12, points=[value], limit=200)[0]

    return np.array([[density(value, mean) for value in values] for mean in MEANS])


@partial(jax.jit, static_argnames=("setup", "num_sweeps"))
def partitions(
    problem: MixtureProblem, setup: Setup, key: jax.Array, records: jax.Array, num_sweeps: int = NUM_SWEEPS
) -> jax.Array:
    """The labels [chain, sweep, n] of many chains, which start from these records."""

    def chain(key: jax.Array) -> jax.Array:
        start_key, run_key = jax.random.split(key)
        labels = jnp.arange(problem.n, dtype=jnp.int32) // 2
        state = setup.start(problem, start_key, labels, records)

        def move(state: MixtureState, index: jax.Array) -> tuple[MixtureState, jax.Array]:
            state, _ = step(problem, setup, jax.random.fold_in(run_key, index), state)
            return state, state.labels

        return jax.lax.scan(move, state, jnp.arange(num_sweeps))[1]

    return jax.vmap(chain)(jax.random.split(key, NUM_CHAINS))


def largest_scores(
    problem: MixtureProblem, setup: Setup, records: jax.Array, laws: list[np.ndarray], num_sweeps: int = NUM_SWEEPS
) -> tuple[float, ...]:
    """The largest difference of the chains from each law of the partitions, in standard errors between chains."""
    found = number_partition(
        np.asarray(partitions(problem, setup, jax.random.key(5), records, num_sweeps)[:, BURN_IN:])
    )
    shares = np.stack([np.mean(found == number, axis=1) for number in range(len(laws[0]))], axis=1)
    errors = shares.std(axis=0, ddof=1) / np.sqrt(NUM_CHAINS)
    return tuple(float(np.max(np.abs(shares.mean(axis=0) - law) / errors)) for law in laws)


CASES = {
    "exact": (Setup(Conditional(proposals=0), Slots(16)), KnownTwoPoints()),
    "metropolis": (Setup(Conditional(proposals=1), Slots(16)), TwoPoints()),
    "several proposals": (Setup(Conditional(proposals=3), Slots(16)), TwoPoints()),
    "sticks": (Setup(Conditional("stick", proposals=1), Slots(24)), TwoPoints()),
    "blocked": (Setup(Conditional(truncation=24, proposals=0), Slots(24)), KnownTwoPoints()),
    "neal 2": (Setup(Neal2(), Slots(8)), ReleasedTwoPoints(NOISE)),
    "neal 3": (Setup(Neal3(), Slots(8)), ReleasedTwoPoints(NOISE)),
    "neal 5": (Setup(Neal5(), Slots(8)), TwoPoints()),
    "neal 5, all auxiliaries kept": (Setup(Neal5(3, redraw=False), Slots(8)), TwoPoints()),
    "neal 5, redrawn": (Setup(Neal5(3, redraw=True), Slots(8)), TwoPoints()),
    "neal 8": (Setup(Neal8(2), Slots(8)), KnownTwoPoints()),
}


def marked(quick: tuple[str, ...], left_out: tuple[str, ...] = ()) -> list[Any]:
    """The cases, all but some of them slow."""
    names = [name for name in CASES if name not in left_out]
    return [pytest.param(name, marks=() if name in quick else pytest.mark.slow) for name in names]


def scores_of_case(
    name: str, values: tuple[float, ...], discount: float | None, wrong: list[tuple[float, float]]
) -> tuple[float, ...]:
    """The largest differences of a case's chains from the enumeration, and from that with other numbers."""
    setup, component = CASES[name]
    channel = None if isinstance(component, ReleasedTwoPoints) else dpjax.Laplace(NOISE)
    records, alpha = jnp.asarray(values, float), jnp.asarray(ALPHA, float)
    problem = MixtureProblem(records, channel, component, alpha, discount)
    density, prior = evidence(values), np.array(PRIOR)
    laws = [partition_posterior(density, prior, *numbers) for numbers in [(ALPHA, discount or 0.0), *wrong]]
    return largest_scores(problem, setup, records, laws)


QUICK = ("metropolis", "neal 3", "neal 5")


@pytest.mark.x32
@pytest.mark.parametrize("name", marked(QUICK))
def test_partitions_have_the_enumerated_law(name: str) -> None:
    """The wrong law is that of another concentration."""
    right, wrong = scores_of_case(name, VALUES, None, [(0.7 * ALPHA, 0.0)])
    assert right < 5 < wrong


COUNTS = (0, 3, 8)
BINOMIAL = PoissonBinomial(0.35, 8)
SHAPES = (2.0, 0.5)
BETA_CASES = {
    "exact": Setup(Conditional(proposals=0), Slots(16)),
    "metropolis": Setup(Conditional(proposals=1), Slots(16)),
    "neal 8": Setup(Neal8(2), Slots(8)),
}


def partitions_of_counts(theta: float) -> np.ndarray:
    """The law of partitions of Beta records behind binomial counts, by Gauss-Laguerre quadrature over both shapes."""
    nodes, weights = special.roots_genlaguerre(30, SHAPES[0] - 1)
    a, b = np.meshgrid(nodes / SHAPES[1], nodes / SHAPES[1])
    evidence = np.exp(expected_marginals(PoissonBinomial(theta, 8), a.ravel(), b.ravel()))[:, list(COUNTS)]
    return partition_posterior(evidence, np.outer(weights, weights).ravel() / weights.sum() ** 2, ALPHA)


@pytest.mark.slow
@pytest.mark.parametrize("name", BETA_CASES)
def test_partitions_of_beta_records_behind_counts_have_the_enumerated_law(name: str) -> None:
    """Whether records are integrated out or imputed; counts of another θ have another law."""
    component = mixture.GammaShapes(*SHAPES)
    problem = MixtureProblem(jnp.asarray(COUNTS), BINOMIAL, component, jnp.asarray(ALPHA, float))
    laws = [partitions_of_counts(theta) for theta in (0.35, 0.25)]
    right, wrong = largest_scores(problem, BETA_CASES[name], jnp.full(3, 0.5), laws, num_sweeps=150)
    print(name, right, wrong)
    assert right < 5 < wrong


@pytest.mark.x32
@pytest.mark.parametrize("name", marked(("neal 3",), left_out=("metropolis", "several proposals", "neal 5, redrawn")))
def test_partitions_with_a_discount_have_the_enumerated_law(name: str) -> None:
    """The wrong laws are those of another concentration, and of no discount."""
    right, *wrong = scores_of_case(name, FOUR, DISCOUNT, [(0.7 * ALPHA, DISCOUNT), (ALPHA, 0.0)])
    assert right < 5 < min(wrong)


class JoinsAtFullWeight(Process):
    """A fault: clusters weigh n_h, not n_h - d."""

    def joining(self, sizes: jax.Array) -> jax.Array:
        return sizes


class OpensAtConcentration(Process):
    """A fault: a new cluster weighs α, not α + d k."""

    def opening(self, num_clusters: jax.Array) -> jax.Array:
        return self.concentration


class BreaksAsDirichlet(Process):
    """A fault: sticks are Beta(1, α)."""

    def sticks(self, places: jax.Array) -> tuple[float, jax.Array]:
        return 1, jnp.broadcast_to(self.concentration, places.shape)


@pytest.mark.slow
@pytest.mark.x32
@pytest.mark.parametrize(
    ("fault", "name"),
    [(JoinsAtFullWeight, "neal 3"), (OpensAtConcentration, "neal 3"), (BreaksAsDirichlet, "sticks")],
)
def test_faults_of_the_process_are_rejected(fault: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpjax.mixture.problem.Process", fault)
    jax.clear_caches()
    (score,) = scores_of_case(name, FOUR, DISCOUNT, [])
    jax.clear_caches()
    assert score > 5
