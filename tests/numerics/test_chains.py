"""Sums along chains, and draws back in time: against enumeration and SciPy, which share no code."""

from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from dpjax.numerics.chains import HiddenNormals, HiddenStates, log_of

NUM_DRAWS = 40_000


def tables(times: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Initial probabilities [3], transitions [times, 3, 3] with a state that is never left, and densities [2, 4, 3]."""
    rng = np.random.default_rng(seed)
    transition = rng.dirichlet(np.ones(3), size=(times, 3))
    transition[:, 2] = [0.0, 0.0, 1.0]
    return rng.dirichlet(np.ones(3)), transition, rng.uniform(0.05, 1.0, (2, 4, 3))


def enumerate_paths(initial: np.ndarray, transition: np.ndarray, seen: np.ndarray) -> dict[tuple[int, ...], float]:
    """The probability of each path of four states together with what was seen."""
    found = {}
    for path in product(range(3), repeat=4):
        weight = initial[path[0]] * seen[0, path[0]]
        for time in range(1, 4):
            table = transition[min(time - 1, len(transition) - 1)]
            weight = weight * table[path[time - 1], path[time]] * seen[time, path[time]]
        found[path] = weight
    return found


def chain_of(initial: np.ndarray, transition: np.ndarray) -> HiddenStates:
    return HiddenStates(log_of(jnp.asarray(initial)[None]), log_of(jnp.asarray(transition)[None]), jnp.arange(3)[None])


def frequencies(drawn: np.ndarray) -> np.ndarray:
    """How often each path was drawn: [81]."""
    return np.bincount(drawn @ np.array([27, 9, 3, 1]), minlength=81)


def misfit(drawn: np.ndarray, paths: dict[tuple[int, ...], float]) -> float:
    """The largest difference from the probabilities of the paths, in standard errors of ten draws or more."""
    expected = np.array(list(paths.values())) / sum(paths.values())
    errors = np.sqrt(np.maximum(expected * (1 - expected), 10 / len(drawn)) / len(drawn))
    return float(np.max(np.abs(frequencies(drawn) / len(drawn) - expected) / errors))


@pytest.mark.parametrize("times", [1, 3], ids=["one table", "a table a time"])
def test_states_are_summed_and_drawn_as_by_enumeration(times):
    """Catches a dropped initial distribution, a transposed table, and draws from the wrong weights."""
    initial, transition, seen = tables(times, seed=1)
    chain, log_seen = chain_of(initial, transition), jnp.log(jnp.asarray(seen))
    paths = [enumerate_paths(initial, transition, one) for one in seen]
    expected = [np.log(sum(one.values())) for one in paths]
    np.testing.assert_allclose(jax.jit(chain.log_density)(log_seen), expected, rtol=2e-6)
    draw = jax.jit(jax.vmap(lambda key: chain.draw(key, log_seen)))
    drawn = np.asarray(draw(jax.random.split(jax.random.key(2), NUM_DRAWS)))
    assert drawn.shape == (NUM_DRAWS, 2, 4)
    assert max(misfit(drawn[:, place], paths[place]) for place in (0, 1)) < 4.5


def test_draws_from_forward_weights_or_without_a_start_are_noticed():
    """The planted faults: each state drawn from its own forward weight, and no initial distribution."""
    initial, transition, seen = tables(1, seed=1)
    chain, log_seen = chain_of(initial, transition), jnp.log(jnp.asarray(seen))
    paths = enumerate_paths(initial, transition, seen[0])
    forward = np.asarray(chain._forward(log_seen))[:, 0]
    rng = np.random.default_rng(3)
    weights = np.exp(forward) / np.exp(forward).sum(axis=1, keepdims=True)
    wrong = np.stack([rng.choice(3, NUM_DRAWS, p=one / one.sum()) for one in weights.astype(float)], axis=1)
    assert misfit(wrong, paths) > 20
    no_start = chain._replace(log_initial=jnp.zeros_like(chain.log_initial))
    assert abs(float(no_start.log_density(log_seen)[0]) - np.log(sum(paths.values()))) > 0.1


def test_impossible_states_have_finite_slopes():
    """Catches the slope of a logarithm of 0, which makes that of everything NaN."""

    def log_density(leave: jax.Array) -> jax.Array:
        transition = jnp.stack([jnp.stack([1 - leave, leave]), jnp.array([0.0, 1.0])])
        chain = HiddenStates(log_of(jnp.array([[1.0, 0.0]])), log_of(transition)[None, None], jnp.arange(2)[None])
        return chain.log_density(jnp.log(jnp.array([[[0.9, 0.1], [0.2, 0.8], [0.1, 0.9]]])))[0]

    value, slope = jax.value_and_grad(log_density)(jnp.array(0.3))

    def by_hand(leave: float) -> float:
        stay = 1 - leave
        return np.log(0.9 * (stay * 0.2 * (stay * 0.1 + leave * 0.9) + leave * 0.8 * 0.9))

    np.testing.assert_allclose(value, by_hand(0.3), rtol=1e-6)
    np.testing.assert_allclose(slope, (by_hand(0.3 + 1e-5) - by_hand(0.3 - 1e-5)) / 2e-5, rtol=1e-4)


T = 6
MEAN = np.array([1.0, 1.5, 0.5, 0.0, 2.0, 1.0])
SEEN = np.array([[1.8, 2.1, -0.4, 3.0, 2.2, 0.1], [0.0, 0.0, 0.0, 0.5, 9.0, 0.0]])
VARIANCE = np.array([[0.5, 0.5, 0.5, 0.5, 0.5, 0.5], [0.1, np.inf, 0.2, 4.0, np.inf, 0.0]])


def covariance(start: float, coefficient: float, step: float, nugget: float) -> np.ndarray:
    """That of the numbers [t, t], from the loadings of each of their independent parts."""
    loadings = np.zeros((T, T))
    for time in range(T):
        for source in range(time + 1):
            loadings[time, source] = coefficient ** (time - source) * (start if source == 0 else step)
    return loadings @ loadings.T + nugget**2 * np.eye(T)


@pytest.mark.parametrize("numbers", [(1.3, 0.6, 0.8, 0.0), (0.5, 1.0, 0.7, 0.9)], ids=["autoregression", "local level"])
def test_normal_numbers_are_integrated_and_drawn_as_by_scipy(numbers):
    """Catches a missing value that is read, a nugget drawn twice, and a mean that is left out."""
    start, coefficient, step, nugget = numbers
    chain = HiddenNormals(jnp.asarray(MEAN)[None], *(jnp.asarray([one]) for one in numbers))
    seen, variance = jnp.asarray(SEEN), jnp.asarray(VARIANCE)
    total = covariance(start, coefficient, step, nugget)
    drawn = jax.jit(jax.vmap(lambda key: chain.draw(key, seen, variance)))(
        jax.random.split(jax.random.key(4), NUM_DRAWS)
    )
    densities, drawn = chain.log_density(seen, variance), np.asarray(drawn, float)
    for place in (0, 1):
        known = np.isfinite(VARIANCE[place])
        noisy = total[np.ix_(known, known)] + np.diag(VARIANCE[place][known])
        expected = stats.multivariate_normal.logpdf(SEEN[place][known], MEAN[known], noisy)
        np.testing.assert_allclose(densities[place], expected, rtol=2e-5)
        gain = total[:, known] @ np.linalg.inv(noisy)
        mean = MEAN + gain @ (SEEN[place][known] - MEAN[known])
        left = total - gain @ total[known]
        errors = np.sqrt(np.maximum(np.diag(left), 1e-9) / NUM_DRAWS)
        assert np.all(np.abs(drawn[:, place].mean(axis=0) - mean) < 4.5 * errors + 1e-4)
        np.testing.assert_allclose(np.cov(drawn[:, place].T), left, atol=0.03)
