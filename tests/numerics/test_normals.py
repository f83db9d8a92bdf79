"""Standard Normal draws against numpy and scipy: the points on the circle, the distribution and its tails."""

import os

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from dpjax.numerics.normals import points_on_circle, standard_normals
from dpjax.numerics.tails import normal_inverse, normal_tail
from tests.tools.perfect_start import REJECT

x64 = pytest.mark.x64


@x64
def test_points_lie_on_the_circle_at_their_angle():
    bits = np.random.default_rng(1).integers(0, 2**64, 10_000, dtype=np.uint64)
    bits[:3] = 0, 2**64 - 1, 2**63
    first, second = points_on_circle(jnp.asarray(bits))
    angle = ((bits >> np.uint64(12)).astype(float) / 2**52 - 0.5) * np.pi / 2
    exchanged, signs = (
        bits & np.uint64(1) == 1,
        [1 - 2 * ((bits >> np.uint64(k)) & np.uint64(1)).astype(float) for k in (1, 2)],
    )
    np.testing.assert_allclose(first, signs[0] * np.where(exchanged, np.sin(angle), np.cos(angle)), atol=4e-16)
    np.testing.assert_allclose(second, signs[1] * np.where(exchanged, np.cos(angle), np.sin(angle)), atol=4e-16)


@x64
def test_angles_are_uniform_over_the_whole_circle():
    bits = jax.random.bits(jax.random.key(2), (40_000,), jnp.uint64)
    first, second = points_on_circle(bits)
    angle = np.arctan2(np.asarray(second), np.asarray(first))
    assert stats.kstest(angle, stats.uniform(-np.pi, 2 * np.pi).cdf).pvalue > REJECT


@pytest.mark.keys
@pytest.mark.parametrize("shape", [(), (1,), (7,), (3, 5), (0, 2)])
def test_shapes_and_types_are_those_asked_for(shape):
    draws = standard_normals(jax.random.key(3), shape)
    assert draws.shape == shape
    assert draws.dtype == jnp.zeros(()).dtype
    assert standard_normals(jax.random.key(3), shape, jnp.float32).dtype == jnp.float32


def test_draws_are_standard_normal_and_the_two_of_a_pair_independent():
    num = 1_000_000
    draws = np.asarray(standard_normals(jax.random.key(4), (2, num // 2)), float)
    assert stats.kstest(draws.ravel(), stats.norm.cdf).pvalue > REJECT
    first, second = draws
    for power in (1, 2):
        score = np.corrcoef(first**power, second**power)[0, 1] * np.sqrt(num / 2)
        assert abs(score) < 4
    for bound in (3.0, 4.0, 4.5):
        expected = 2 * num * stats.norm.sf(bound)
        assert abs(np.sum(np.abs(draws) > bound) - expected) < 4 * np.sqrt(expected) + 1


@pytest.mark.skipif(os.environ.get("DPJAX_TEST_FLOAT32") != "1", reason="about single precision")
def test_in_single_precision_they_are_those_of_jax():
    key = jax.random.key(5)
    np.testing.assert_array_equal(standard_normals(key, (4, 3)), jax.random.normal(jax.random.clone(key), (4, 3)))


@x64
def test_far_tails_are_exact_to_their_last_digits():
    """Where probabilities underflow: an error of a thousandth of their logarithm is lost in tests of nearer values."""
    places = np.array([-1e3, -100.0, -45.0, -38.5, -36.0, -30.0, -5.0])
    tails = stats.norm.logcdf(places)
    np.testing.assert_allclose(normal_tail(jnp.asarray(places)), tails, rtol=1e-10)
    np.testing.assert_allclose(normal_inverse(jnp.asarray(tails)), places, rtol=1e-10)
