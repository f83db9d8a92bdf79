"""The concentration's law given the clusters, or the slots that they are in, against quadrature."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.special import betaln, gammaln

from dpjax import diagnostics
from dpjax.mixture.samplers.weights import update_concentration, update_concentration_of_sticks
from dpjax.models import GammaPrior

PRIOR = GammaPrior(2.0, 1.0)
COUNTS = np.array([1.0, 0.0, 0.0, 4.0, 1.0])
GRID = np.linspace(1e-4, 40, 200_000)


def log_slots(alpha: np.ndarray, counts: np.ndarray, truncated: bool) -> np.ndarray:
    """The log-probability of labels with these sizes of slots, the sticks integrated out."""
    behind = counts[::-1].cumsum()[::-1] - counts
    sticks = range(len(counts) - 1 if truncated else len(counts))
    return sum(betaln(1 + counts[h], alpha + behind[h]) - betaln(1, alpha) for h in sticks)


def log_partition(alpha: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The log-probability of a partition with these sizes of clusters, up to a constant."""
    return (counts > 0).sum() * np.log(alpha) + gammaln(alpha) - gammaln(alpha + counts.sum())


def moments(log_likelihood: np.ndarray) -> tuple[float, float]:
    """The posterior mean and standard deviation of the concentration."""
    log_density = stats.gamma(2.0).logpdf(GRID) + log_likelihood
    weights = np.exp(log_density - log_density.max())
    mean = weights @ GRID / weights.sum()
    return mean, np.sqrt(weights @ (GRID - mean) ** 2 / weights.sum())


def draw(update, num_draws: int = 4_000) -> np.ndarray:
    """Chains [chain, draw] of updates given the same clusters."""

    def chain(key):
        def step(present, index):
            moved = update(jax.random.fold_in(key, index), present)
            return moved, moved

        return jax.lax.scan(step, jnp.ones(()), jnp.arange(num_draws + 100))[1]

    return np.asarray(jax.jit(jax.vmap(chain))(jax.random.split(jax.random.key(5), 4)))[:, 100:]


def z_score(draws: np.ndarray, mean: float, sd: float) -> float:
    return abs(draws.mean() - mean) / (sd / np.sqrt(diagnostics.ess_mean(draws)))


@pytest.mark.x32
@pytest.mark.parametrize("empty", [0, 5])
@pytest.mark.parametrize("truncated", [False, True])
def test_sticks(truncated: bool, empty: int) -> None:
    """Empty slots behind the last cluster say nothing; in a truncated process the last slot has no stick."""
    counts = np.append(COUNTS, np.zeros(empty))

    def update(key, present):
        return update_concentration_of_sticks(key, PRIOR, present, jnp.asarray(counts, float), truncated)

    draws = draw(update)
    assert z_score(draws, *moments(log_slots(GRID, counts, truncated))) < 4
    # The law given the number of clusters alone is another one.
    assert z_score(draws, *moments(log_partition(GRID, counts))) > 6


def test_number_of_clusters() -> None:
    update = partial(update_of_number, num_clusters=3, n=6)
    assert z_score(draw(update), *moments(log_partition(GRID, COUNTS))) < 4


def update_of_number(key, present, num_clusters, n):
    return update_concentration(key, PRIOR, present, jnp.asarray(num_clusters), n)
