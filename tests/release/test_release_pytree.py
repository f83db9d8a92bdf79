"""Releases under transformations: batches, retracing and trees that hold no numbers."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dpjax import statistics
from dpjax.mechanisms import Censored, Gaussian, Laplace, RandomizedResponse
from dpjax.release import LocalRelease, Release

TOTAL = statistics.total("y", [-1, -1], [1, 1])


class PlainMechanism:
    """A user's mechanism that JAX cannot look into."""

    def log_density(self, value, statistic):
        return -jnp.sum((value - statistic) ** 2)

    def sample(self, key, statistic):
        return statistic + jax.random.normal(key, statistic.shape)


def density(release, statistic):
    return release.log_density(statistic)


def test_a_grid_of_scales_compiles_once():
    traced = jax.jit(jax.vmap(chex.assert_max_traces(density, 1), in_axes=(0, None)))
    chex.clear_trace_counter()

    def grid(scales):
        return jax.vmap(lambda scale: Release([0.5, 1.5], Laplace(scale), TOTAL, 10))(scales)

    for factor in (1.0, 2.0):
        scales = factor * jnp.array([0.5, 1.0, 2.0])
        expected = [Laplace(scale).log_density(jnp.array([0.5, 1.5]), jnp.zeros(2)) for scale in scales]
        np.testing.assert_allclose(traced(grid(scales), jnp.zeros(2)), expected, rtol=1e-6)


def test_new_values_and_scales_never_retrace():
    traced = jax.jit(chex.assert_max_traces(density, 1))
    chex.clear_trace_counter()
    for value, scale in [([0.5, 1.0], 1.0), (np.array([2, 3]), 2.0), (jnp.array([-1.0, 0.0]), 0.1)]:
        # An equal statistic, built again, finds the same program.
        statistic = statistics.total("y", [-1, -1], [1, 1])
        traced(Release(value, Gaussian(scale), statistic, 10), jnp.zeros(2))


@pytest.mark.parametrize("mechanism", [Laplace(1.0), Censored(Laplace(jnp.ones(2)), lower=0), PlainMechanism()])
def test_a_batch_of_releases(mechanism):
    release = Release([0.5, 1.0], mechanism, TOTAL, 10)
    records = {"y": jnp.ones((10, 2)) / 2}
    batch = jax.jit(jax.vmap(lambda key: release.sample(key, records)))(jax.random.split(jax.random.key(1), 4))
    assert batch.value.shape == (4, 2)
    densities = jax.vmap(density, in_axes=(0, None))(batch, jnp.zeros(2))
    expected = [mechanism.log_density(value, jnp.zeros(2)) for value in batch.value]
    np.testing.assert_allclose(densities, expected, rtol=1e-5)


def test_releases_are_built_while_a_program_is_traced():
    def log_density(value, scale):
        return Release(value, Laplace(scale), TOTAL, 10).log_density(jnp.zeros(2))

    values = jnp.array([[0.5, 1.0], [2.0, -3.0]])
    np.testing.assert_allclose(
        jax.jit(jax.vmap(log_density))(values, jnp.ones(2)), -jnp.abs(values).sum(1) - 2 * np.log(2)
    )


@pytest.mark.parametrize(
    "release",
    [
        Release([0.5, 1.0], Laplace(1.0), TOTAL, 10),
        Release([0.5, 1.0], PlainMechanism(), TOTAL, 10),
        LocalRelease([0.5, 1.0], Laplace(1.0), "y"),
        LocalRelease([0, 1], RandomizedResponse(keep=0.7, num_categories=2)),
    ],
)
def test_transformations_do_not_check(release):
    assert type(jax.tree.map(lambda _: object(), release)) is type(release)
    leaves, structure = jax.tree.flatten(release)
    rebuilt = jax.tree.unflatten(structure, leaves)
    assert jax.tree.structure(rebuilt) == structure
    assert jax.tree.structure(jax.eval_shape(lambda given: given, release)) == structure


def test_paths_name_the_fields():
    paths = [
        jax.tree_util.keystr(path)
        for path, _ in jax.tree_util.tree_leaves_with_path(Release([0.5, 1.0], Laplace(1.0), TOTAL, 10))
    ]
    assert paths == [".value", ".mechanism.scale"]


def test_a_mechanism_of_plain_attributes_is_static():
    release = Release([0.5, 1.0], PlainMechanism(), TOTAL, 10)
    assert len(jax.tree.leaves(release)) == 1
    assert jax.jit(density)(release, jnp.array([0.5, 0.0])) == -1
