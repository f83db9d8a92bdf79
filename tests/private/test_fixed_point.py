"""Sums on a grid: exactly those of the integers, and moved by one record by no more than its bound, exactly."""

from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dpjax import private
from dpjax.private.fixed_point import FixedPoint, Limbs, steps_of
from dpjax.private.sums.clipped import clip_numbers, clip_rows, clipped_gradients, clipped_ratios
from tests.private.neighbours import linear, numbers, sum_of_floats

PRECISIONS = [jnp.float32, pytest.param(jnp.float64, marks=pytest.mark.x64)]


ONE, NOUGHT = jnp.ones((1,), jnp.float32), jnp.zeros((1,), jnp.float32)


def steps(total: Limbs) -> int:
    """A sum as an integer of any size."""
    return int(Fraction(total.high.item()) + Fraction(total.low.item()))


def test_a_million_records_in_float32_move_by_what_one_of_them_moves() -> None:
    gradients = jax.jit(lambda target: clipped_gradients(target, NOUGHT, 1.0).total)
    ratios = jax.jit(lambda target: clipped_ratios(target, NOUGHT, ONE, jnp.asarray(1.0, jnp.float32)).total)
    data = [numbers(1.0), numbers(-1.0)]
    one, other = (steps(gradients(linear(records))) for records in data)
    assert 2**23 * (1 - 1e-5) < one - other <= 2**23
    one, other = (steps(ratios(linear(records))) for records in data)
    assert one - other == 2**23
    assert one == np.rint(data[0].astype(float) * 2**22).astype(np.int64).sum()


def test_the_same_sum_in_floats_moves_by_far_more() -> None:
    """A mutation: what was wrong before."""
    one, other = (float(sum_of_floats(jnp.asarray(numbers(first)))) for first in (1.0, -1.0))
    assert one - other > 20


@pytest.mark.parametrize("dtype", PRECISIONS)
def test_integers_are_added_exactly(dtype) -> None:
    adder, rng = FixedPoint(1.0, dtype), np.random.default_rng(1)
    most = int(steps_of(dtype))

    @jax.jit
    def twice(values: jax.Array) -> Limbs:
        return adder.floats(adder.add(adder.sum(values), adder.sum(values)))

    for size in (1, 511, 512, 70_000):
        values = np.stack([np.full(size, most), np.full(size, -most), rng.integers(-most, most, size, endpoint=True)])
        found = twice(jnp.asarray(values, dtype))
        for place, row in enumerate(values):
            assert steps(jax.tree.map(lambda part, place=place: part[place], found)) == 2 * sum(map(int, row))
    assert found.high.dtype == dtype


@pytest.mark.parametrize("dtype", PRECISIONS)
def test_the_clip_holds_after_rounding(dtype) -> None:
    """A vector scaled to the bound itself is longer than that after rounding; one scaled to the limit never is."""
    rng, worst = np.random.default_rng(2), 0.0
    most = int(steps_of(dtype))
    for dimension, bound in ((2, 3.0), (40, 1e-12), (1_000, 1e9)):
        vectors = rng.normal(size=(dimension, 500)) * 10.0 ** rng.uniform(-3, 3, 500)
        lengths = np.linalg.norm(vectors, axis=0)
        vectors[:, ::2] *= np.nextafter(1, [0, 2])[rng.integers(0, 2, 250)] / lengths[::2]  # next to the bound
        clip = jax.jit(lambda gradients, bound=bound: clip_rows(gradients, jnp.ones(500, dtype), bound)[0])
        rows = clip(jnp.asarray(vectors * bound, dtype))
        squares = [sum(int(x) ** 2 for x in column) for column in np.asarray(rows, float).T]
        assert max(squares) <= most**2
        assert max(squares) >= (most * (1 - 1e-3)) ** 2
        scaled = np.rint(vectors / np.maximum(np.linalg.norm(vectors, axis=0), 1) * most)
        worst = max(worst, *(sum(int(x) ** 2 for x in column) / most**2 for column in scaled.T))
    assert worst > 1


@pytest.mark.parametrize("dtype", PRECISIONS)
def test_a_gradient_within_the_bound_is_rounded_and_nothing_else(dtype) -> None:
    gradients = np.random.default_rng(3).normal(size=(3, 50))
    clip = jax.jit(lambda gradients: clip_rows(gradients, jnp.ones(50, dtype), 10.0))
    rows, longer = clip(jnp.asarray(gradients, dtype))
    expected = np.asarray(jnp.asarray(gradients, dtype), float) / 10 * steps_of(dtype)
    np.testing.assert_allclose(rows, expected, rtol=4 * np.finfo(dtype).eps, atol=0.5)
    assert longer == 0


@pytest.mark.parametrize("bound", [1e-38, 1.0, 1e30, np.inf])
def test_no_number_is_beyond_the_bound(bound: float) -> None:
    values = jnp.asarray([np.nan, np.inf, -np.inf, 1e38, -1e38, 1e-38, 0.0], jnp.float32)
    found = np.asarray(clip_numbers(values, jnp.asarray(bound, jnp.float32)))
    assert np.all(np.abs(found) <= 2**22)
    assert np.all(found == np.rint(found))
    assert found[0] == -(2**22)


def test_the_order_of_the_records_changes_nothing() -> None:
    rng = np.random.default_rng(4)
    data = rng.normal(size=(1_000, 3))

    def likelihood(theta: jax.Array, record: jax.Array) -> jax.Array:
        return -jnp.logaddexp(0.0, jnp.dot(theta, record)) - jnp.sum((theta - record) ** 2)

    target = private.target(likelihood, lambda theta: -jnp.sum(theta**2), data, jnp.zeros(3))
    total = jax.jit(lambda target: clipped_gradients(target, jnp.asarray([0.3, -0.2, 0.1]), 1.5).total)
    shuffled = private.target(likelihood, target.terms.log_prior, data[rng.permutation(1_000)], jnp.zeros(3))
    one, other = total(target), total(target.__class__(shuffled.records, *list(vars(target).values())[1:]))
    for part in range(2):
        np.testing.assert_array_equal(one[part], other[part])


@pytest.mark.parametrize("number", [2**24 - 1, 2**24, 2**28, -(2**24), -(2**24) - 1, -(2**28)])
@pytest.mark.parametrize("low", [0, 1, 2**23 - 1])
def test_a_sum_beyond_what_float32_holds_is_the_nearest_that_it_does(number: int, low: int) -> None:
    """More than 2^25 records were refused before any charge. Rounded, the sum would move by more than a record does."""
    adder = FixedPoint(1.0, jnp.float32)
    high, rest = adder.floats(Limbs(jnp.asarray(number, jnp.int32), jnp.asarray(low, jnp.int32)))
    assert int(high) + int(rest) == np.clip(number * 2**23 + low, -(2**47), 2**47 - 1)


def test_parameters_of_half_precision_are_refused() -> None:
    with pytest.raises(TypeError, match="float16"):
        private.target(lambda theta, record: theta, lambda theta: theta, np.ones(5), jnp.zeros((), jnp.float16))


@pytest.mark.parametrize("bound", [1e-31, 1e31])
def test_bounds_that_float32_cannot_hold_are_refused(bound: float) -> None:
    with pytest.raises(ValueError, match="ratio_bound"):
        private.dp_penalty(linear(np.ones(5)), private.noise.jax, proposal_scale=1.0, ratio_bound=bound, tau=1.0)
