"""Sums of clipped contributions: the same in chunks, bounded in what one record does, and finite everywhere."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from dpjax import private
from dpjax.private.fixed_point import steps_of
from dpjax.private.sums.clipped import clip_rows, clipped_gradients, clipped_ratios
from tests.private.cases import normal_mean

RNG = np.random.default_rng(3)
DATA = RNG.normal(size=(101, 3)) * 2


def quadratic(chunk_size: int, data: np.ndarray = DATA) -> private.Target:
    def log_likelihood(theta: jax.Array, record: jax.Array) -> jax.Array:
        return -0.5 * jnp.sum((record - theta) ** 2) - jnp.sum(record * theta**3)

    return private.target(log_likelihood, lambda theta: -jnp.sum(theta**2), data, jnp.zeros(3), chunk_size=chunk_size)


THETA, OTHER = jnp.array([0.3, -0.2, 0.5]), jnp.array([0.4, 0.1, 0.2])


@pytest.mark.x64
def test_chunks_change_nothing() -> None:
    whole, cut = quadratic(101), quadratic(8)
    for bound in (3.0, np.inf):
        for one, other in (
            (clipped_gradients(whole, THETA, bound), clipped_gradients(cut, THETA, bound)),
            (clipped_ratios(whole, THETA, OTHER, bound), clipped_ratios(cut, THETA, OTHER, bound)),
        ):
            np.testing.assert_allclose(one.value, other.value, rtol=0, atol=1e-10 if bound == np.inf else 0)
            assert one.clipped == other.clipped


@pytest.mark.x64
def test_clipping_is_that_of_optax() -> None:
    target = quadratic(101)
    gradients = jax.vmap(jax.grad(target.log_likelihood), (None, 0))(THETA, jnp.asarray(DATA))
    (expected,), count = optax.per_example_global_norm_clip([gradients], 3.0)
    ours = clipped_gradients(target, THETA, 3.0)
    np.testing.assert_allclose(ours.value, expected, rtol=1e-10)
    assert int(ours.clipped) == int(count)
    assert 0 < count < len(DATA)


def test_one_record_moves_a_sum_by_twice_the_bound_at_most() -> None:
    bound, limit = 0.7, 0.3
    gradient = jax.jit(lambda target: clipped_gradients(target, THETA, bound).value)
    ratio = jax.jit(lambda target: clipped_ratios(target, THETA, OTHER, limit).value)
    before = quadratic(16)
    reached = 0.0
    for outlier in ([1e3, 0.0, 0.0], [-1e3, 1e3, 5.0], [0.0, 0.0, -1e30]):
        changed = DATA.copy()
        changed[5] = outlier
        after = before.__class__(
            quadratic(16, changed).records, before.count, before.terms, before.unravel, 3, len(DATA), before.dtype
        )
        moved = float(jnp.linalg.norm(gradient(after) - gradient(before)))
        assert moved <= 2 * bound * (1 + 1e-4)
        assert abs(float(ratio(after) - ratio(before))) <= 2 * limit * (1 + 1e-4)
        reached = max(reached, moved)
    assert reached > bound


def test_a_gradient_of_zero_stays_zero() -> None:
    target = normal_mean(np.zeros(5), chunk_size=2)
    total = clipped_gradients(target, jnp.zeros(1), 0.1)
    assert total.value == 0
    assert total.clipped == 0


def test_what_is_not_a_number_adds_nothing() -> None:
    gradients = jnp.array([[1.0, jnp.nan, jnp.inf, 6.0], [0.0, 1.0, 0.0, 8.0]])
    values, longer = clip_rows(gradients, jnp.ones(4), 5.0)
    np.testing.assert_allclose(jnp.sum(values, axis=1) * 5.0 / steps_of(values.dtype), [4.0, 4.0], rtol=1e-5)
    assert longer == 3

    def log_likelihood(theta: jax.Array, record: jax.Array) -> jax.Array:
        return jnp.log(theta - record)  # undefined beyond the record

    target = private.target(log_likelihood, lambda theta: -theta, jnp.array([0.0, 1.0, 3.0]), jnp.array(0.0))
    ratio = clipped_ratios(target, jnp.array([2.0]), jnp.array([2.5]), jnp.asarray(10.0))
    np.testing.assert_allclose(ratio.value, np.log(2.5 / 2.0) + np.log(1.5) - 10.0, rtol=1e-6)


BAD = [
    (lambda: private.target(lambda p, r: r, jnp.sum, {"a": np.ones(1), "b": np.ones(2)}, jnp.zeros(1)), "unequal"),
    (lambda: private.target(lambda p, r: r * p, jnp.sum, np.ones(2), jnp.zeros(2)), "one real number"),
    (lambda: private.target(lambda p, r: r, jnp.sum, np.ones(2), jnp.zeros(2, int)), "real numbers"),
    (lambda: private.target(lambda p, r: r, jnp.sum, np.array(["77.25"]), jnp.zeros(2)), "numbers"),
]


@pytest.mark.parametrize(("build", "message"), BAD)
def test_bad_data_and_functions_are_refused(build, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        build()


def test_no_error_shows_a_record() -> None:
    for data in (np.array(["77.25"]), {"a": np.full(3, 77.25), "b": np.full(2, 77.25)}):
        with pytest.raises((TypeError, ValueError)) as caught:
            private.target(lambda p, r: jnp.sum(p), jnp.sum, data, jnp.zeros(1))
        assert "77.25" not in str(caught.value)


def test_no_text_shows_a_record() -> None:
    target = normal_mean(np.full(3, 77.25))
    assert repr(target) == "Target(dimension=1)"
    kernel = private.dp_penalty(target, private.noise.jax, proposal_scale=0.1, ratio_bound=1.0, tau=1.0)
    assert "77.25" not in repr(kernel)


def test_gradients_of_all_records_are_never_held_at_once() -> None:
    data = np.zeros((200_000, 3))
    target = quadratic(1024, data)
    program = jax.jit(lambda target, at: jax.vmap(lambda one: clipped_gradients(target, one, 1.0).value)(at))
    memory = program.lower(target, jnp.zeros((4, 3))).compile().memory_analysis()
    assert memory.temp_size_in_bytes < 0.1 * data.nbytes
