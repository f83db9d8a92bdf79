"""Poisson samples of the records: each takes part independently, whatever the block."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from dpjax import private
from dpjax.private.sums.clipped import clip_rows, gradients_of
from dpjax.private.sums.poisson import sampled_gradients, successes
from tests.private.cases import normal_mean
from tests.tools.perfect_start import REJECT

N, RATE = 40, 0.3


RECORDS = np.random.default_rng(8).normal(size=N)


TARGET = normal_mean(RECORDS)


def places(key: jax.Array, block: int) -> np.ndarray:
    """All sampled places that blocks of a size give, by the loop that `sampled_gradients` runs on the device."""
    found, last, number = [], jnp.asarray(-1, jnp.int32), 0
    while last < N - 1:
        found.append(np.asarray(successes(jax.random.fold_in(key, number), last, RATE, block, N)))
        last, number = found[-1][-1], number + 1
    joined = np.concatenate(found)
    return joined[joined < N]


@pytest.mark.x64
def test_a_sample_larger_than_the_block_is_not_cut_short() -> None:
    vector = jnp.array([0.2])
    sample = jax.jit(lambda key: sampled_gradients(TARGET, key, vector, rate=RATE, bound=0.8, block=3))
    clip = jax.jit(lambda weights: clip_rows(gradients_of(TARGET, vector, jnp.asarray(RECORDS)), weights, 0.8))
    for seed in range(3):
        key = jax.random.key(seed)
        chosen = places(key, 3)
        assert len(chosen) > 3
        values, longer = clip(jnp.zeros(N).at[chosen].set(1.0))
        total = sample(key)
        np.testing.assert_array_equal(total.gradients.value, np.sum(values, axis=1) * total.gradients.unit)
        assert (total.gradients.clipped, total.size) == (longer, len(chosen))


@cache
def members() -> tuple[np.ndarray, np.ndarray]:
    """Which records are in each of 4,000 samples of several blocks, and in their first block alone."""

    def first_block(key: jax.Array) -> jax.Array:
        first = successes(jax.random.fold_in(key, 0), jnp.asarray(-1, jnp.int32), RATE, BLOCK, N)
        return jnp.zeros(N).at[first].set(1.0, mode="drop")

    def both(key: jax.Array) -> tuple:
        # The gradients are unit vectors, so that their sum is the sample itself.
        return sampled_gradients(
            UNITS, key, jnp.zeros(N), rate=RATE, bound=2.0, block=BLOCK
        ).gradients.value, first_block(key)

    whole, first = jax.jit(jax.vmap(both))(jax.random.split(jax.random.key(4), 4_000))
    return np.rint(np.asarray(whole)), np.rint(np.asarray(first))


BLOCK = 14  # one sample in five is larger


UNITS = private.target(
    lambda theta, record: jnp.dot(theta, record), lambda theta: -jnp.sum(theta**2), np.eye(N), jnp.zeros(N)
)


def sample_p_value(members: np.ndarray) -> float:
    """The smaller p-value of the sizes (binomial) and of each record's and each neighbouring pair's frequency."""
    sizes = np.bincount(members.sum(axis=1).astype(int), minlength=N + 1)
    bins = [slice(0, 8), *[slice(k, k + 1) for k in range(8, 17)], slice(17, N + 1)]
    law = stats.binom(N, RATE).pmf(np.arange(N + 1))
    size_p = stats.chisquare([sizes[b].sum() for b in bins], [law[b].sum() * len(members) for b in bins]).pvalue
    pairs = members[:, :-1] * members[:, 1:]
    z_records = (members.mean(axis=0) - RATE) / np.sqrt(RATE * (1 - RATE) / len(members))
    z_pairs = (pairs.mean(axis=0) - RATE**2) / np.sqrt(RATE**2 * (1 - RATE**2) / len(members))
    largest = max(np.abs(z_records).max(), np.abs(z_pairs).max())
    return min(size_p, 1 - (1 - 2 * stats.norm.sf(largest)) ** (2 * N - 1))


@pytest.mark.keys
def test_each_record_takes_part_independently() -> None:
    assert sample_p_value(members()[0]) > REJECT


def test_samples_cut_to_one_block_are_noticed() -> None:
    """A mutation: records beyond the block are dropped."""
    assert sample_p_value(members()[1]) < REJECT
