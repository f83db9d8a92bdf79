"""One released value per record: densities against tables and scipy, and samples with their shapes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from dpjax.mechanisms import Censored, DiscreteLaplace, Gaussian, Laplace, RandomizedResponse
from dpjax.release import LocalRelease

MATRIX = jnp.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]])
CELLS = jnp.array([0, 2, 1, 1])
TOLERANCE = 1e-5 if jnp.result_type(float) == jnp.float32 else 1e-12


def close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=TOLERANCE, atol=TOLERANCE)


def test_randomized_response():
    release = LocalRelease([2, 2, 0, 1], RandomizedResponse(matrix=MATRIX))
    expected = np.log(np.asarray(MATRIX))[np.asarray(CELLS), [2, 2, 0, 1]]
    close(release.log_densities({"cell": CELLS}), expected)
    close(release.log_likelihood({"cell": CELLS}), expected.sum())
    assert (release.n, release.values.dtype) == (4, jnp.result_type(int))


def test_randomized_response_of_several_coordinates():
    released, true = np.array([[0, 1], [1, 1], [0, 0]]), np.array([[0, 0], [1, 0], [0, 0]])
    release = LocalRelease(released, RandomizedResponse(keep=0.8, num_categories=2), field="answers")
    close(
        release.log_densities({"answers": jnp.asarray(true)}), np.log(np.where(released == true, 0.8, 0.2)).sum(axis=1)
    )


@pytest.mark.parametrize(("channel", "law"), [(Laplace(0.5), stats.laplace), (Gaussian(0.5), stats.norm)])
def test_additive_channels_take_numbers_or_vectors(channel, law):
    generator = np.random.default_rng(3)
    for shape in [(6,), (6, 2)]:
        values, true = generator.normal(size=(2, *shape)).astype(jnp.result_type(float))
        release = LocalRelease(values, channel, field="y")
        expected = law.logpdf(values, true, 0.5).reshape(6, -1).sum(axis=1)
        close(release.log_densities({"y": jnp.asarray(true)}), expected)


def test_density_over_a_support():
    release = LocalRelease([2, 0], RandomizedResponse(matrix=MATRIX))
    close(release.log_densities_of_support({"cell": jnp.arange(3)}), np.log(np.asarray(MATRIX))[:, [2, 0]].T)


@pytest.mark.parametrize(
    ("values", "channel", "records"),
    [
        ([0, 2, 1, 1], RandomizedResponse(keep=0.6, num_categories=3), CELLS),
        ([0, 2, -1, 1], DiscreteLaplace(1.0), CELLS),
        ([0.5, 2, -1, 1], Laplace(1.0), jnp.arange(4.0)),
        (jnp.ones((4, 2)), Gaussian(jnp.array([1.0, 2.0])), jnp.ones((4, 2))),
        ([0.0, 2, 0, 1], Censored(Laplace(1.0), lower=0), jnp.arange(4.0)),
    ],
)
def test_sample_is_a_release_through_the_same_channel(values, channel, records):
    release = LocalRelease(values, channel)
    release.check_records({"cell": records})
    again = jax.jit(LocalRelease.sample)(release, jax.random.key(2), {"cell": records})
    assert again.values.shape == release.values.shape
    assert again.values.dtype == release.values.dtype
    assert np.all(np.isfinite(again.log_densities({"cell": records})))


def test_samples_keep_the_channel_s_frequencies():
    n = 20_000
    release = LocalRelease(jnp.zeros(n, int), RandomizedResponse(matrix=MATRIX))
    drawn = np.asarray(release.sample(jax.random.key(9), {"cell": jnp.zeros(n, int)}).values)
    counts = np.bincount(drawn, minlength=3)
    assert stats.chisquare(counts, n * np.array([0.7, 0.2, 0.1])).pvalue > 1e-4
    assert stats.chisquare(counts, n * np.array([0.7, 0.1, 0.2])).pvalue < 1e-4


def test_truth_values_are_the_categories_0_and_1():
    """Before, answers of True and False were taken for floats, and refused as such."""
    channel = RandomizedResponse(keep=0.8, num_categories=2)
    answers = LocalRelease(np.array([True, False, True]), channel, field="voted")
    np.testing.assert_array_equal(answers.values, [1, 0, 1])
    assert np.issubdtype(answers.values.dtype, np.integer)
