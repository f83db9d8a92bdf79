"""Randomized response: the channel's probabilities, its sampler and its handling of codes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from dpjax.mechanisms import RandomizedResponse

MATRIX = np.array([[0.6, 0.3, 0.1], [0.05, 0.9, 0.05], [0.0, 0.25, 0.75]])
NUM_DRAWS = 20_000
GATE = 1e-4


def table(channel, size):
    """P(released | true) by the channel's own density."""
    true, released = jnp.meshgrid(jnp.arange(size), jnp.arange(size), indexing="ij")
    return np.exp(channel.log_density_terms(released, true))


def p_value(channel, expected, seed):
    """The smallest chi-square p-value over the true categories, times their number."""
    p_values = []
    for true, (key, row) in enumerate(
        zip(jax.random.split(jax.random.key(seed), len(expected)), expected, strict=True)
    ):
        counts = np.bincount(channel.sample(key, jnp.full(NUM_DRAWS, true)), minlength=len(row))
        possible = row > 0
        if counts[~possible].any():
            return 0.0
        if possible.sum() > 1:
            p_values.append(stats.chisquare(counts[possible], NUM_DRAWS * row[possible] / row.sum()).pvalue)
    return len(expected) * min(p_values, default=1.0)


@pytest.mark.parametrize("keep", [0.1, 0.25, 0.8, 1.0])
def test_keep_is_the_probability_of_the_truth(keep):
    probabilities = table(RandomizedResponse(keep=keep, num_categories=4), 4)
    expected = np.where(np.eye(4, dtype=bool), keep, (1 - keep) / 3)
    np.testing.assert_allclose(probabilities, expected, rtol=1e-6)


def test_rows_of_the_matrix_are_the_true_categories():
    np.testing.assert_allclose(table(RandomizedResponse(matrix=MATRIX), 3), MATRIX, rtol=1e-6)


def test_the_two_forms_agree():
    matrix = np.where(np.eye(3, dtype=bool), 0.7, 0.15)
    by_keep, by_matrix = RandomizedResponse(0.7, 3), RandomizedResponse(matrix=matrix.tolist())
    np.testing.assert_allclose(table(by_keep, 3), table(by_matrix, 3), rtol=1e-6)


def test_log_density_sums_over_coordinates():
    channel = RandomizedResponse(matrix=MATRIX)
    density = channel.log_density(jnp.array([0, 1, 2, 1]), jnp.array([0, 0, 1, 2]))
    np.testing.assert_allclose(density, np.log([0.6, 0.3, 0.05, 0.25]).sum(), rtol=1e-6)
    assert channel.log_density(jnp.array(2), jnp.array(2)).shape == ()


def test_impossible_releases_and_codes_out_of_range_have_density_zero():
    for channel in (RandomizedResponse(matrix=MATRIX), RandomizedResponse(1.0, 3)):
        for released, true in ((0, 2), (3, 0), (-1, 2), (0, 3), (0, -1)):
            assert channel.log_density(jnp.array(released), jnp.array(true)) == -jnp.inf


@pytest.mark.parametrize("keep", [0.3, 0.8, 1.0])
def test_keep_sampler(keep):
    channel = RandomizedResponse(keep, 4)
    assert p_value(channel, table(channel, 4).astype(float), 1) > GATE
    if keep < 1:
        assert p_value(channel, table(RandomizedResponse(keep + 0.05, 4), 4).astype(float), 1) < GATE


def test_matrix_sampler_and_its_transpose():
    assert p_value(RandomizedResponse(matrix=MATRIX), MATRIX, 2) > GATE
    transposed = RandomizedResponse(matrix=MATRIX.T / MATRIX.T.sum(axis=1, keepdims=True))
    assert p_value(transposed, MATRIX, 2) < GATE


@pytest.mark.parametrize(
    "channel", [RandomizedResponse(0.6, 200), RandomizedResponse(matrix=np.full((200, 200), 0.005))]
)
def test_samples_keep_shape_and_small_integer_types(channel):
    true = jnp.full((50, 7), 199, jnp.uint8)
    released = jax.jit(channel.sample)(jax.random.key(3), true)
    assert released.shape == true.shape
    assert released.dtype == jnp.uint8
    assert released.max() <= 199
    assert len(np.unique(released)) > 50


def test_coordinates_are_released_independently():
    """The correlation of two coordinates' errors is within 5 standard errors of zero."""
    channel = RandomizedResponse(0.5, 2)
    released = np.asarray(channel.sample(jax.random.key(4), jnp.zeros((NUM_DRAWS, 2), int)))
    assert abs(np.corrcoef(released.T)[0, 1]) < 5 / np.sqrt(NUM_DRAWS)
