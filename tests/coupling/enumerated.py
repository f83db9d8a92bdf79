"""A target of three binary records, small enough to enumerate, and a coupled kernel of it."""

from functools import cache
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np

import dpjax
from dpjax import coupling

N = 3
LEVELS = np.array([0.0, 2.0, -1.0, 1.5])
PROPOSAL = 0.3  # the chance that a proposal is 1
STATES = np.array(list(product([0, 1], repeat=N)))


def log_density(total: jax.Array) -> jax.Array:
    return jnp.interp(total[0], jnp.arange(4.0), jnp.asarray(LEVELS))


def log_proposal(record: jax.Array) -> jax.Array:
    return jnp.where(record > 0.5, jnp.log(PROPOSAL), jnp.log(1 - PROPOSAL))


def propose(key: jax.Array) -> jax.Array:
    return jax.random.bernoulli(key, PROPOSAL).astype(float)


def sample_start(key: jax.Array) -> jax.Array:
    return jnp.zeros(N)


def ones(records: jax.Array) -> dict:
    return {"ones": jnp.sum(records), "all": jnp.all(records > 0.5)}


@cache
def kernel() -> dpjax.coupling.CoupledKernel:
    return coupling.coupled_exchangeable(
        log_density,
        propose,
        log_proposal,
        sample_start,
        imputation=dpjax.soma(),
        statistic=lambda record: record[None],
        proposals=1,
    )


def weight(state: np.ndarray) -> float:
    count = state.sum()
    return np.exp(LEVELS[count]) / (PROPOSAL**count * (1 - PROPOSAL) ** (N - count))


@cache
def soma_matrix() -> np.ndarray:
    """The law of one attempt from every state, by enumeration."""
    number = {tuple(state): place for place, state in enumerate(STATES)}
    matrix = np.zeros((len(STATES), len(STATES)))
    for here, state in enumerate(STATES):
        for proposal, chance in ((0, 1 - PROPOSAL), (1, PROPOSAL)):
            tried = [np.where(np.arange(N) == place, proposal, state) for place in range(N)]
            weights = np.array([weight(new) for new in tried])
            for new, w in zip(tried, weights, strict=True):
                taken = min(1.0, weights.sum() / (weights.sum() + weight(state) - w))
                matrix[here, number[tuple(new)]] += chance * w / weights.sum() * taken
        matrix[here, here] += 1 - matrix[here].sum()
    return matrix


def exact_law() -> np.ndarray:
    law = np.exp(LEVELS[STATES.sum(axis=1)])
    return law / law.sum()
