"""A conjugate component is one class: here counts with Gamma rates, under every sampler that applies."""

from dataclasses import dataclass
from math import gamma
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.special import gammaln
from scipy import stats

import dpjax
from dpjax import mixture
from tests.mixture.crp import PARTITIONS, number_partition

SHAPE, RATE, ALPHA, SCALE = 1.5, 0.5, 0.7, 0.8
COUNTS = np.array([0.0, 1.0, 7.0])
RELEASED = np.array([0.4, 1.7, 6.1])
NUM_CHAINS, NUM_SWEEPS, BURN_IN = 200, 150, 30
NUM_CLUSTERS = np.array([len(set(labels)) for labels in PARTITIONS])


@dpjax.mechanisms.frozen_pytree
@dataclass(frozen=True)
class GammaRates:
    """Records y ~ Poisson(λ) with λ ~ Gamma(shape, rate)."""

    shape: float
    rate: float

    def sample_prior(self, key: jax.Array, size: int) -> dict[str, jax.Array]:
        return {"rate": jax.random.gamma(key, self.shape, (size,)) / self.rate}

    def sample(self, key: jax.Array, theta: dict[str, jax.Array]) -> jax.Array:
        return jax.random.poisson(key, theta["rate"]).astype(theta["rate"].dtype)

    def log_density(self, record: jax.Array, theta: dict[str, jax.Array]) -> jax.Array:
        return record * jnp.log(theta["rate"]) - theta["rate"] - gammaln(record + 1)

    def features(self, record: jax.Array) -> jax.Array:
        return jnp.stack([record, gammaln(record + 1)])

    def update(self, key: jax.Array, theta: dict, counts: jax.Array, totals: jax.Array) -> dict[str, jax.Array]:
        return {"rate": jax.random.gamma(key, self.shape + totals[:, 0]) / (self.rate + counts)}

    def log_evidence(self, counts: jax.Array, totals: jax.Array) -> jax.Array:
        shape, rate = self.shape + totals[:, 0], self.rate + counts
        prior = self.shape * jnp.log(jnp.asarray(self.rate, counts.dtype)) - gammaln(self.shape)
        return prior + gammaln(shape) - shape * jnp.log(rate) - totals[:, 1]


def log_density(records: np.ndarray) -> np.ndarray:
    """log m(y) of records [size, ...] of one cluster, by its negative binomial predictives."""
    total, found = np.zeros_like(records[0]), np.zeros_like(records[0])
    for place, record in enumerate(records):
        rate = RATE + place
        found = found + stats.nbinom.logpmf(record, SHAPE + total, rate / (rate + 1))
        total = total + record
    return found


def partition_law(channel: dpjax.Laplace | None) -> np.ndarray:
    """P(partition | values), by summation over all records where they are not known."""
    possible = np.array(np.meshgrid(*[np.arange(16.0)] * 3)).reshape(3, -1)
    records = COUNTS[:, None] if channel is None else possible
    noise = 0.0 if channel is None else stats.laplace.logpdf(RELEASED[:, None], records, SCALE).sum(axis=0)
    weights = []
    for labels in PARTITIONS:
        blocks = [[place for place in range(3) if labels[place] == own] for own in set(labels)]
        urn = ALPHA ** len(blocks) * np.prod([gamma(len(block)) for block in blocks])
        weights.append(urn * np.sum(np.exp(noise + sum(log_density(records[block]) for block in blocks))))
    return np.array(weights) / np.sum(weights)


LAPLACE = dpjax.Laplace(SCALE)
CASES = {
    "conditional": (mixture.conditional(), None),
    "neal 2": (mixture.neal2(), None),
    "neal 3": (mixture.neal3(), None),
    "neal 8": (mixture.neal8(2), None),
    "conditional, behind noise": (mixture.conditional(), LAPLACE),
    "neal 5, behind noise": (mixture.neal5(), LAPLACE),
}
QUICK = ("neal 5, behind noise",)
EXACT = {channel: partition_law(channel) for channel in (None, LAPLACE)}


def run(sampler: mixture.Sampler, channel: dpjax.Laplace | None, concentration: float) -> np.ndarray:
    """Which partition each sweep of each chain is, [chain, sweep]."""
    values = COUNTS if channel is None else RELEASED
    component = GammaRates(SHAPE, RATE)
    algorithm = mixture.gibbs(
        values, channel, component=component, concentration=concentration, sampler=sampler, capacity=16
    )

    @jax.jit
    @jax.vmap
    def chain(key: jax.Array) -> tuple[jax.Array, jax.Array]:
        start_key, run_key = jax.random.split(key)

        def sweep(state: Any, key: jax.Array) -> Any:
            state, info = algorithm.step(key, state)
            return state, (state.labels, info.overflow)

        state = algorithm.init(jnp.zeros(3, int), start_key)
        return jax.lax.scan(sweep, state, jax.random.split(run_key, NUM_SWEEPS))[1]

    labels, overflow = chain(jax.random.split(jax.random.key(3), NUM_CHAINS))
    assert np.mean(overflow) < 1e-2
    return number_partition(np.asarray(labels)[:, BURN_IN:])


@pytest.mark.x64
@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in CASES]
)
def test_partitions_have_the_enumerated_law(name: str) -> None:
    sampler, channel = CASES[name]
    found = run(sampler, channel, ALPHA)
    shares = np.stack([np.mean(found == number, axis=1) for number in range(len(PARTITIONS))], axis=1)
    errors = shares.std(axis=0, ddof=1) / np.sqrt(NUM_CHAINS)
    assert np.max(np.abs(shares.mean(axis=0) - EXACT[channel]) / errors) < 5
    of_less = EXACT[channel] * 0.7**NUM_CLUSTERS  # with 0.7 of the concentration
    assert np.max(np.abs(shares.mean(axis=0) - of_less / of_less.sum()) / errors) > 5


def test_the_evidence_is_that_of_the_predictives() -> None:
    features = jax.vmap(GammaRates(SHAPE, RATE).features)(jnp.asarray(COUNTS))
    found = GammaRates(SHAPE, RATE).log_evidence(jnp.array([3.0]), jnp.sum(features, axis=0)[None])
    assert float(found[0]) == pytest.approx(float(log_density(COUNTS)), rel=1e-4)


def test_it_is_told_apart_from_components_without_evidence() -> None:
    assert isinstance(GammaRates(SHAPE, RATE), mixture.Conjugate)
    assert not isinstance(mixture.GammaShapes(2.0, 1.0), mixture.Conjugate)
