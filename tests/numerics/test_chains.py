"""Sums along chains, and draws back in time: against enumeration and SciPy, which share no code."""

from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from dpjax.numerics.chains import HiddenNormals, HiddenStates, both_ways

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
    return HiddenStates(jnp.asarray(initial)[None], jnp.asarray(transition)[None], jnp.arange(3)[None])


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
    forward = np.asarray(both_ways(chain.initial, chain.transition, log_seen).forward)[0]
    rng = np.random.default_rng(3)
    weights = np.exp(forward) / np.exp(forward).sum(axis=1, keepdims=True)
    wrong = np.stack([rng.choice(3, NUM_DRAWS, p=one / one.sum()) for one in weights.astype(float)], axis=1)
    assert misfit(wrong, paths) > 20
    no_start = chain._replace(initial=jnp.ones_like(chain.initial))
    assert abs(float(no_start.log_density(log_seen)[0]) - np.log(sum(paths.values()))) > 0.1


def test_impossible_states_have_finite_slopes():
    """Catches the slope of a logarithm of 0, which makes that of everything NaN."""

    def log_density(leave: jax.Array) -> jax.Array:
        transition = jnp.stack([jnp.stack([1 - leave, leave]), jnp.array([0.0, 1.0])])
        chain = HiddenStates(jnp.array([[1.0, 0.0]]), transition[None, None], jnp.arange(2)[None])
        return chain.log_density(jnp.log(jnp.array([[[0.9, 0.1], [0.2, 0.8], [0.1, 0.9]]])))[0]

    value, slope = jax.value_and_grad(log_density)(jnp.array(0.3))

    def by_hand(leave: float) -> float:
        stay = 1 - leave
        return np.log(0.9 * (stay * 0.2 * (stay * 0.1 + leave * 0.9) + leave * 0.8 * 0.9))

    np.testing.assert_allclose(value, by_hand(0.3), rtol=1e-6)
    np.testing.assert_allclose(slope, (by_hand(0.3 + 1e-5) - by_hand(0.3 - 1e-5)) / 2e-5, rtol=1e-4)


RARE = 1e-36


def test_what_scaled_probabilities_lose_is_summed_in_logarithms():
    """Catches paths that vanish beside the likeliest, until what is seen later rules all others out.

    The state moves up by steps of probability 1e-36. In float32 all but the first state vanish beside it, and in
    float64 all but the first eight. What is seen of the last time needs the last state.
    """
    number = 20
    table = np.diag(np.full(number, 1 - RARE)) + np.diag(np.full(number - 1, RARE), 1)
    table[-1, -1] = 1.0
    seen = np.zeros((1, number, number))
    seen[0, -1, :-1] = -np.inf
    initial = jnp.eye(number)[:1]

    def log_density(rate: jax.Array) -> jax.Array:
        chain = HiddenStates(initial, rate * jnp.asarray(table)[None, None], jnp.arange(number)[None])
        return chain.log_density(jnp.asarray(seen))[0]

    with jax.numpy_dtype_promotion("standard"):
        value, slope = jax.jit(jax.value_and_grad(log_density))(jnp.ones(()))
        both = jax.vmap(log_density)(jnp.ones(2))
    # There is one path: it moves each time.
    np.testing.assert_allclose(value, (number - 1) * np.log(RARE), rtol=1e-5)
    np.testing.assert_allclose(both, value, rtol=1e-6)
    assert np.isfinite(slope)
    drawn = HiddenStates(initial, jnp.asarray(table)[None, None], jnp.arange(number)[None]).draw(
        jax.random.key(1), jnp.asarray(seen)
    )
    np.testing.assert_array_equal(np.asarray(drawn)[0], np.arange(number))


@pytest.mark.parametrize("times", [1, 3], ids=["one table", "a table a time"])
def test_slopes_of_states_are_those_of_enumeration(times):
    """Catches moves counted between the wrong times, and slopes of rows that share a table or a start."""
    initial, transition, seen = tables(times, seed=5)
    rng = np.random.default_rng(6)
    along = rng.normal(size=initial.shape), rng.normal(size=transition.shape), rng.normal(size=seen.shape)

    def by_hand(step: float) -> np.ndarray:
        at = initial + step * along[0], transition * (1 + step * along[1]), seen * np.exp(step * along[2])
        return np.array([np.log(sum(enumerate_paths(at[0], at[1], one).values())) for one in at[2]])

    def log_density(step: jax.Array) -> jax.Array:
        at = jnp.asarray(initial + 0.0) + step * along[0], jnp.asarray(transition) * (1 + step * along[1])
        return chain_of(*at).log_density(jnp.log(jnp.asarray(seen)) + step * along[2])

    with jax.numpy_dtype_promotion("standard"):
        _, forth = jax.jvp(log_density, (jnp.zeros(()),), (jnp.ones(()),))
        back = jax.jacrev(log_density)(jnp.zeros(()))
        second = jax.jvp(jax.grad(lambda step: jnp.sum(log_density(step))), (jnp.zeros(()),), (jnp.ones(()),))[1]
    expected = (by_hand(1e-5) - by_hand(-1e-5)) / 2e-5
    np.testing.assert_allclose(forth, expected, rtol=1e-4)
    np.testing.assert_allclose(back, expected, rtol=1e-4)
    np.testing.assert_allclose(
        second, np.sum(by_hand(1e-3) + by_hand(-1e-3) - 2 * by_hand(0.0)) / 1e-6, rtol=1e-2, atol=1e-3
    )


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
