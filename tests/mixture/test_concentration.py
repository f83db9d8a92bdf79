"""The concentration's law given the clusters, or the slots that they are in, against quadrature."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.special import betaln, gammaln

import dpjax
from dpjax import diagnostics
from dpjax.mixture.problem import MixtureProblem
from dpjax.mixture.process import Process
from dpjax.mixture.samplers.base import Slots
from dpjax.mixture.samplers.neal2 import Neal2, posterior_cluster
from dpjax.mixture.samplers.neal8 import prior_clusters
from dpjax.mixture.samplers.weights import posterior_weights, update_concentration, update_concentration_of_sticks
from dpjax.models import GammaPrior

PRIOR = GammaPrior(2.0, 1.0)
COUNTS = np.array([1.0, 0.0, 0.0, 4.0, 1.0])
GRID = np.linspace(1e-4, 40, 200_000)


def log_slots(alpha: np.ndarray, counts: np.ndarray, truncated: bool, discount: float = 0.0) -> np.ndarray:
    """The log-probability of labels with these sizes of slots, the sticks integrated out."""
    behind = counts[::-1].cumsum()[::-1] - counts
    total = 0.0
    for h in range(len(counts) - 1 if truncated else len(counts)):
        first, second = 1 - discount, alpha + discount * (h + 1)
        total = total + betaln(first + counts[h], second + behind[h]) - betaln(first, second)
    return total


def log_partition(alpha: np.ndarray, counts: np.ndarray, discount: float = 0.0) -> np.ndarray:
    """The log-probability of a partition with these sizes of clusters, up to a constant."""
    opened = sum(np.log(alpha + discount * i) for i in range(int((counts > 0).sum())))
    return opened + gammaln(alpha) - gammaln(alpha + counts.sum())


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
        return update_concentration_of_sticks(key, PRIOR, Process(present), jnp.asarray(counts, float), truncated)

    draws = draw(update)
    assert z_score(draws, *moments(log_slots(GRID, counts, truncated))) < 4
    # The law given the number of clusters alone is another one.
    assert z_score(draws, *moments(log_partition(GRID, counts))) > 6


DISCOUNT = 0.7


@pytest.mark.x32
@pytest.mark.parametrize("truncated", [False, True])
def test_sticks_with_a_discount(truncated: bool) -> None:
    counts = np.append(COUNTS, [0.0, 1.0, 0.0] if truncated else [1.0, 0.0, 0.0])

    def update(key, present):
        process = Process(present, jnp.asarray(DISCOUNT, float))
        return update_concentration_of_sticks(key, PRIOR, process, jnp.asarray(counts, float), truncated)

    draws = draw(update)
    assert z_score(draws, *moments(log_slots(GRID, counts, truncated, DISCOUNT))) < 4
    assert z_score(draws, *moments(log_slots(GRID, counts, truncated))) > 6
    assert z_score(draws, *moments(log_partition(GRID, counts, DISCOUNT))) > 6


def test_number_of_clusters() -> None:
    update = partial(update_of_number, num_clusters=3, n=6)
    assert z_score(draw(update), *moments(log_partition(GRID, COUNTS))) < 4


def update_of_number(key, present, num_clusters, n, discount=None):
    discount = None if discount is None else jnp.asarray(discount, float)
    return update_concentration(key, PRIOR, Process(present, discount), jnp.asarray(num_clusters), n)


@pytest.mark.x32
def test_number_of_clusters_with_a_discount() -> None:
    """A cluster too many, one too few and no discount have other laws; of one record there is nothing to learn."""
    counts = np.array([1.0, 3.0, 1.0, 2.0, 1.0])
    draws = draw(partial(update_of_number, num_clusters=5, n=8, discount=DISCOUNT))
    assert z_score(draws, *moments(log_partition(GRID, counts, DISCOUNT))) < 4
    for wrong in (np.array([4.0, 1.0, 2.0, 1.0]), np.array([1.0, 2.0, 1.0, 2.0, 1.0, 1.0])):
        assert z_score(draws, *moments(log_partition(GRID, wrong, DISCOUNT))) > 6
    assert z_score(draws, *moments(log_partition(GRID, counts))) > 6
    alone = draw(partial(update_of_number, num_clusters=1, n=1, discount=DISCOUNT), 1_000)
    assert z_score(alone, 2.0, np.sqrt(2.0)) < 4


def test_empty_slots_break_what_a_discount_leaves() -> None:
    """By Beta(1 - d, α + d k + d j) sticks, j = 1, 2: those of Beta(1, α), and those without d k, have other laws."""
    alpha, d, counts = 0.6, 0.4, jnp.array([2.0, 0.0, 5.0, 0.0, 0.0])
    process = Process(jnp.array(alpha), jnp.asarray(d, float))
    keys = jax.random.split(jax.random.key(6), 20_000)
    weights, beyond = jax.jit(jax.vmap(lambda key: posterior_weights(key, counts, process)))(keys)
    rest = np.sum(weights[:, [1, 3, 4]], axis=1) + beyond[:, -1]
    shares = np.asarray(weights[:, [1, 3]]) / np.stack([rest, rest - weights[:, 1]], axis=1)

    def p_values(found: np.ndarray, first: float, second: float) -> float:
        return stats.kstest(found, stats.beta(first, second).cdf).pvalue

    rests = alpha + 2 * d
    assert p_values(rest, rests, 7 - 2 * d) > 1e-4
    assert p_values(np.asarray(weights[:, 0]) / (1 - rest), 2 - d, 5 - d) > 1e-4
    for place, share in enumerate(shares.T, start=1):
        assert p_values(share, 1 - d, rests + d * place) > 1e-4
        assert max(p_values(share, 1, rests), p_values(share, 1 - d, alpha + d * place)) < 1e-6
    assert max(p_values(rest, alpha, 7), p_values(np.asarray(weights[:, 0]) / (1 - rest), 2, 5)) < 1e-6


def test_empty_slots_have_sticks_of_the_rest() -> None:
    """Broken at 1 for α they have the same sum, and other clusters open later: long runs tell, and these means."""
    alpha, counts = 3.0, jnp.array([2.0, 0.0, 5.0, 0.0, 0.0])
    keys = jax.random.split(jax.random.key(6), 20_000)
    weights, beyond = jax.jit(jax.vmap(lambda key: posterior_weights(key, counts, Process(jnp.array(alpha)))))(keys)
    rest = np.sum(weights[:, [1, 3, 4]], axis=1) + beyond[:, -1]
    shares = np.asarray(weights[:, [1, 3]]) / np.stack([rest, rest - weights[:, 1]], axis=1)
    assert min(stats.kstest(share, stats.beta(1, alpha).cdf).pvalue for share in shares.T) > 1e-4
    assert stats.kstest(rest, stats.beta(alpha, 7).cdf).pvalue > 1e-4


@pytest.mark.parametrize("size", [1, 3])
def test_new_clusters_come_with_their_densities(size: int) -> None:
    """Whether one is drawn given the value or several from the base measure."""
    values = jnp.array([0.3, -2.0])
    component = dpjax.mixture.NormalInverseGamma(0.5, 0.2, 3.0, 2.0)
    problem = MixtureProblem(values, None, component, jnp.array(0.4))
    labels = jnp.zeros(2, jnp.int32)
    state = Neal2().start(problem, Slots(4), jax.random.key(1), labels, values)
    marginal = stats.t(6.0, 0.5, np.sqrt(2.0 / 3.0 * (1 + 1 / 0.2)))
    drawn = posterior_cluster(problem, jax.random.key(2), state)
    np.testing.assert_allclose(drawn.log_densities[:, 0], marginal.logpdf(values), rtol=1e-4)
    fresh = prior_clusters(size, problem, jax.random.key(3), state)
    density = stats.norm.logpdf(values[:, None], fresh.theta["mean"], np.sqrt(fresh.theta["variance"]))
    np.testing.assert_allclose(fresh.log_densities, density, rtol=1e-4)
