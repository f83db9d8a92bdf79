"""Triangles of Wishart matrices."""

import jax
import jax.numpy as jnp
import numpy as np

from dpjax.numerics.linear_algebra import draw_bartlett


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
