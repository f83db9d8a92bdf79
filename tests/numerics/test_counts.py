"""Binomial and multinomial draws against SciPy's probabilities, also where counts are beyond float32."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from dpjax.numerics.counts import divergence, draw_binomial, draw_multinomial, mean_of

DRAWS = 200_000
PROBABILITIES = (1e-8, 1e-4, 0.03, 0.3, 0.5, 0.8, 1 - 1e-4)
TRIALS = (10, 1_000, 10**6, 10**8, 2**31 - 1)


def known(probability: float) -> float:
    """The probability as rounded to the floats in use, exactly."""
    return float(np.float64(jnp.asarray(probability, float)))


@jax.jit
def draw(key: jax.Array, n: jax.Array, probability: jax.Array) -> jax.Array:
    return draw_binomial(key, jnp.broadcast_to(n, DRAWS), probability)


def p_value(counts: np.ndarray, law: stats.rv_discrete) -> float:
    """Of a chi-square test between quantiles, tails included; 1 where the law has but one value."""
    edges = np.unique(law.ppf(np.r_[1e-4, 1e-3, np.linspace(0.02, 0.98, 33), 0.999, 0.9999]))
    expected = np.diff(np.r_[0.0, law.cdf(edges), 1.0]) * counts.size
    found = np.bincount(np.searchsorted(edges, counts), minlength=edges.size + 1)
    rare = expected < 5
    groups = [(found[~rare], expected[~rare]), ([found[rare].sum()], [expected[rare].sum()])]
    found, expected = (np.concatenate(parts) for parts in zip(*groups, strict=True))
    return (
        stats.poisson.sf(found[-1] - 1, expected[-1])
        if expected.size == 2
        else stats.chisquare(
            found[expected > 1], expected[expected > 1], sum_check=False, ddof=-1 + (expected > 1).all()
        ).pvalue
    )


@pytest.mark.x32
@pytest.mark.parametrize("n", TRIALS)
def test_binomial_draws_have_their_law(n: int) -> None:
    keys = jax.random.split(jax.random.key(n % 1009), len(PROBABILITIES))
    for key, probability in zip(keys, PROBABILITIES, strict=True):
        exact = known(probability)
        drawn = np.asarray(draw(key, jnp.asarray(n), jnp.asarray(probability, float)))
        assert drawn.dtype == np.asarray(jnp.zeros((), int)).dtype
        mean, variance, _, excess = map(float, stats.binom.stats(n, exact, moments="mvsk"))
        change = drawn.astype(np.float64) - mean
        error = np.sqrt(variance / DRAWS)
        assert abs(change.mean()) < 5 * error
        assert abs(np.mean(change**2) - variance) < 5 * error * np.sqrt(variance * (2 + excess))
        assert p_value(drawn, stats.binom(n, exact)) > 1e-5


def test_a_method_for_smaller_counts_is_found_out() -> None:
    """A mutation: JAX's own method in float32, whose log-factorials cancel from a million trials on."""
    n = 10**8
    wrong = jax.jit(
        lambda key: jax.random.binomial(key, jnp.float32(n), jnp.full(DRAWS, 0.25, jnp.float32), dtype=jnp.float32)
    )
    assert p_value(np.asarray(wrong(jax.random.key(3)), np.float64), stats.binom(n, 0.25)) < 1e-9


def test_certain_results() -> None:
    n = jnp.array([0, 7, 2**31 - 1, 0, 5, 2**31 - 1])
    drawn = draw_binomial(jax.random.key(0), n, jnp.array([0.3, 0.0, 0.0, 1.0, 1.0, 1.0]))
    np.testing.assert_array_equal(drawn, [0, 0, 0, 0, 5, 2**31 - 1])


def test_arguments_are_broadcast_and_batched() -> None:
    keys = jax.random.split(jax.random.key(1), 3)
    assert draw_binomial(keys[0], jnp.array([[4], [5]]), jnp.array([0.1, 0.2, 0.3])).shape == (2, 3)
    batched = jax.jit(jax.vmap(draw_multinomial, in_axes=(0, 0, None)))(keys, jnp.array([0, 5, 70]), jnp.ones(5))
    np.testing.assert_array_equal(batched.sum(axis=1), [0, 5, 70])
    one_by_one = draw_multinomial(keys[2], 70, jnp.ones(5))
    np.testing.assert_array_equal(batched[2], one_by_one)


def test_a_table_of_few_trials_has_its_law() -> None:
    """All 21 tables of 5 trials in 3 cells that can be reached, of probabilities that sum to 2."""
    probabilities = np.array([0.5, 0.0, 0.3, 1.2])
    keys = jax.random.split(jax.random.key(5), 100_000)
    drawn = np.asarray(jax.jit(jax.vmap(lambda key: draw_multinomial(key, 5, jnp.asarray(probabilities, float))))(keys))
    assert drawn[:, 1].max() == 0
    tables, found = np.unique(drawn, axis=0, return_counts=True)
    assert len(tables) == 21
    expected = stats.multinomial.pmf(tables, 5, probabilities / 2) * len(keys)
    assert stats.chisquare(found, expected).pvalue > 1e-4


@pytest.mark.x32
@pytest.mark.parametrize(("cells", "n"), [(1, 9), (2, 9), (17, 3_000), (252, 2**31 - 1)])
def test_totals_are_kept_and_cells_have_binomial_laws(cells: int, n: int) -> None:
    rng = np.random.default_rng(cells)
    weights = rng.gamma(0.3, size=cells).astype(np.float32)
    weights[rng.random(cells) < 0.2] = 0
    weights[0] = 1e-6  # beside a far larger cell
    keys = jax.random.split(jax.random.key(6), 2_000)
    drawn = np.asarray(jax.jit(jax.vmap(lambda key: draw_multinomial(key, n, jnp.asarray(weights, float))))(keys))
    assert drawn.shape == (2_000, cells)
    np.testing.assert_array_equal(drawn.sum(axis=1, dtype=np.int64), n)
    np.testing.assert_array_equal(drawn[:, weights == 0], 0)
    shares = weights.astype(np.float64) / weights.sum(dtype=np.float64)
    variance = n * shares * (1 - shares)
    scores = (drawn - n * shares).mean(axis=0) / np.sqrt(np.maximum(variance, 1e-9) / len(keys))
    assert np.abs(scores[variance > 0.1]).max(initial=0) < 5
    some = np.flatnonzero(variance > 0.1)[:8]
    assert all(p_value(drawn[:, cell], stats.binom(n, shares[cell])) > 1e-5 for cell in some)


@pytest.mark.parametrize("probability", [0.5, 0.1234567, 3.3e-5, 1e-9])
def test_means_are_exact(probability: float) -> None:
    n = jnp.array([1, 2_047, 123_456_789, 2**31 - 1])
    whole, part = jax.jit(mean_of)(n, jnp.full(4, probability))
    expected = [int(trials) * int(known(probability) * 2**80) for trials in n]
    np.testing.assert_array_equal(whole, [product >> 80 for product in expected])
    np.testing.assert_allclose(part, [(product & (2**80 - 1)) / 2**80 for product in expected], atol=1e-6)


@pytest.mark.parametrize("ratio", [-1.0, -0.5, -0.1, -1e-3, 1e-12, 1e-5, 0.0999, 0.1001, 3.0])
def test_divergences_do_not_cancel(ratio: float) -> None:
    exact = known(ratio)
    terms = [(-exact) ** power / (power * (power - 1)) for power in range(2, 60)]
    expected = sum(terms) if abs(exact) < 0.5 else (1 + exact) * np.log1p(exact) - exact if exact > -1 else 1.0
    tolerance = 1e-5 if jnp.zeros(()).dtype == jnp.float32 else 1e-13
    np.testing.assert_allclose(jax.jit(divergence)(jnp.asarray(ratio, float)), expected, rtol=tolerance)
