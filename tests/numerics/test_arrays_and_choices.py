"""Choices between arrays, and of one place of many for each of several records."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dpjax.numerics import select_index, select_indices, tree_where
from dpjax.numerics.linear_algebra import draw_bartlett
from dpjax.numerics.selection import UNROLLED


@pytest.mark.parametrize("condition", [True, [True, False, True]])
def test_trees_are_taken_as_a_whole_or_row_by_row(condition: object) -> None:
    new, old = ({"a": jnp.full(3, value), "b": jnp.full((3, 2), value)} for value in (1.0, 0.0))
    taken = tree_where(jnp.asarray(condition), new, old)
    for leaf in taken.values():
        np.testing.assert_array_equal(leaf.reshape(3, -1)[:, 0], np.broadcast_to(condition, 3))


@pytest.mark.parametrize("size", [5, UNROLLED + 1])
def test_many_choices_are_those_made_one_by_one(size: int) -> None:
    rng = np.random.default_rng(0)
    log_weights = jnp.asarray(
        np.where(rng.random((size, 200)) < 0.3, -np.inf, 50 * rng.normal(size=(size, 200))), float
    )
    uniforms = jnp.asarray(rng.random(200), float)
    indices, possible = jax.jit(select_indices)(log_weights, uniforms)
    one_by_one = jax.jit(jax.vmap(select_index, in_axes=(1, 0)))(log_weights, uniforms)[0]
    assert np.mean(np.asarray(indices) == np.asarray(one_by_one)) > 0.99  # sums in another order, rounded
    assert possible.all()
    assert np.isfinite(log_weights[indices, jnp.arange(200)]).all()


def test_a_column_without_weight_chooses_nothing() -> None:
    log_weights = jnp.array([[-jnp.inf, 0.0], [-jnp.inf, -jnp.inf]])
    indices, possible = select_indices(log_weights, jnp.array([0.5, 1 - 1e-7]))
    assert (indices.tolist(), possible.tolist()) == ([0, 0], [False, True])


def test_triangles_of_wishart_matrices_have_their_mean() -> None:
    """E T Tᵀ = ν I for degrees ν, ν - 1, ... down the diagonal; the reverse order has another mean."""
    gamma_key, normal_key = jax.random.split(jax.random.key(0))
    degrees = jnp.broadcast_to(jnp.array([6.0, 5.0, 4.0]), (20_000, 3))
    triangles = np.asarray(jax.jit(draw_bartlett)(gamma_key, normal_key, degrees))
    products = triangles @ triangles.swapaxes(1, 2)
    errors = products.std(axis=0) / np.sqrt(len(products))
    assert np.all(np.abs(products.mean(axis=0) - 6 * np.eye(3)) < 5 * errors)
    other = triangles.swapaxes(1, 2) @ triangles
    assert np.abs(other.mean(axis=0)[0, 0] - 6) > 5 * errors[0, 0]
