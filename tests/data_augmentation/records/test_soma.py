"""One SOMA attempt as a function of its weights: the law of the index, and the theorems' acceptance bounds."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from dpjax.data_augmentation.records.soma import choose_place, window_starts
from dpjax.numerics import select_index

SIZES = st.sampled_from([1, 2, 7, 40])  # few sizes, each compiled once
LOG_WEIGHTS = SIZES.flatmap(lambda size: st.lists(st.floats(-30.0, 30.0), min_size=size, max_size=size))

choose_each = jax.jit(jax.vmap(choose_place, (None, None, 0, None)))


def acceptance(log_weights: np.ndarray, log_current: float) -> np.ndarray:
    """α_i of equation (8) for every i, by the code under test: the uniform is set to the middle of i's share."""
    shares = np.exp(log_weights - np.logaddexp.reduce(log_weights))
    middles = np.cumsum(shares) - shares / 2
    _, _, ratio = choose_each(
        jnp.asarray(log_weights), jnp.asarray(log_current), jnp.asarray(middles), jnp.asarray(0.5)
    )
    return np.minimum(1.0, np.asarray(ratio))


@pytest.mark.x64
@settings(max_examples=50, deadline=None)
@given(LOG_WEIGHTS, st.floats(0.0, 1.0, exclude_max=True))
def test_index_inverts_the_cumulative_sum(log_weights: list[float], uniform: float) -> None:
    weights = np.exp(np.asarray(log_weights) - max(log_weights))
    ends = np.cumsum(weights)
    index, log_total = jax.jit(select_index)(jnp.asarray(log_weights), jnp.asarray(uniform))
    expected = min(np.searchsorted(ends, uniform * ends[-1], side="right"), len(ends) - 1)
    gap = np.min(np.abs(ends - uniform * ends[-1])) / ends[-1]
    assert int(index) == expected or gap < 1e-12
    np.testing.assert_allclose(log_total, np.logaddexp.reduce(log_weights), atol=1e-10)


@pytest.mark.parametrize("size", [1, 2, 9, 10, 11, 97])
def test_index_never_falls_on_a_weight_of_zero(size: int) -> None:
    live = np.arange(size) % 3 == size % 3 if size > 2 else np.arange(size) == 0
    log_weights = jnp.asarray(np.where(live, 0.0, -np.inf))
    uniforms = jnp.asarray(
        np.append(np.linspace(0.0, 1.0, 500, endpoint=False), np.nextafter(np.float32(1), np.float32(0)))
    )
    indices, _ = jax.vmap(select_index, (None, 0))(log_weights, uniforms.astype(log_weights.dtype))
    assert live[np.asarray(indices)].all()


@pytest.mark.x64
@settings(max_examples=50, deadline=None)
@given(st.floats(-30.0, 30.0), st.floats(-30.0, 30.0))
def test_one_attempt_is_a_metropolis_step(log_weight: float, log_current: float) -> None:
    expected = np.exp(min(0.0, log_weight - log_current))
    np.testing.assert_allclose(acceptance(np.array([log_weight]), log_current), [expected], rtol=1e-10)


@pytest.mark.x64
@settings(max_examples=100, deadline=None)
@given(LOG_WEIGHTS, st.floats(-30.0, 30.0))
def test_acceptance_is_equation_8_and_at_least_that_of_imwg(log_weights: list[float], log_current: float) -> None:
    """Theorem 8: at the same place SOMA accepts at least as often as IMwG."""
    weights, current = np.exp(np.asarray(log_weights)), np.exp(log_current)
    others = np.array([weights.sum() - w for w in weights])
    expected = np.minimum(1.0, weights.sum() / (others + current))
    chosen = acceptance(np.asarray(log_weights), log_current)
    visible = weights / weights.sum() > 1e-9  # lighter places are not reached by any uniform
    np.testing.assert_allclose(chosen[visible], expected[visible], rtol=1e-6)
    assert np.all(chosen[visible] >= np.minimum(1.0, weights / current)[visible] - 1e-10)


@pytest.mark.x64
@settings(max_examples=100, deadline=None)
@given(st.data(), st.floats(0.01, 8.0), SIZES)
def test_pure_privacy_bounds_the_acceptance(data: st.DataObject, epsilon: float, n: int) -> None:
    """Theorem 12: where all weights are within e^ε of each other, a proposal is accepted at least n / (n + e^ε − 1)."""
    log_weights = np.array(data.draw(st.lists(st.floats(0.0, epsilon), min_size=n, max_size=n)))
    log_current = data.draw(st.floats(0.0, epsilon))
    shares = np.exp(log_weights - np.logaddexp.reduce(log_weights))
    overall = np.sum(shares * acceptance(log_weights, log_current))
    assert overall >= n / (n + np.exp(epsilon) - 1) - 1e-10
    assert np.all(np.minimum(1.0, np.exp(log_weights - log_current)) >= np.exp(-epsilon) - 1e-10)


@pytest.mark.parametrize(("log_weights", "log_current", "accepted"), [
    ([-np.inf, -np.inf], -np.inf, False),
    ([-np.inf, -np.inf], 0.0, False),
    ([-np.inf, 0.0], -np.inf, True),
    ([-800.0, -900.0], -2000.0, True),
])  # fmt: skip
def test_zero_densities_are_decided_without_nan(log_weights: list[float], log_current: float, accepted: bool) -> None:
    index, taken, _ = choose_place(
        jnp.asarray(log_weights), jnp.asarray(log_current), jnp.asarray(0.5), jnp.asarray(0.5)
    )
    assert bool(taken) == accepted
    assert not accepted or log_weights[int(index)] > -np.inf


@pytest.mark.parametrize(("n", "attempts"), [(1, 1), (10, 10), (10, 3), (7, 2), (100, 32)])
def test_windows_cover_all_records_and_stay_inside(n: int, attempts: int) -> None:
    starts = window_starts(n, attempts)
    covered = {start + step for start in starts for step in range(attempts)}
    assert len(starts) == n
    assert covered == set(range(n))
