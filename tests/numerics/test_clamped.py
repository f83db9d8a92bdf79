"""Derivatives of the moments of clamped Normal columns are those of the moments."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from jax.test_util import check_grads

from dpjax.numerics.clamped import clamped_moments, product_beyond

PAIRS = (np.array([0, 0, 1]), np.array([1, 2, 2]))
FACTOR = jnp.array([[0.8, 0.0, 0.0], [0.5, 0.6, 0.0], [-0.4, 0.9, 0.3]])
MEAN = jnp.array([0.4, -0.7, 0.2])


def moments(mean: jax.Array, factor: jax.Array, bound: jax.Array) -> jax.Array:
    return jnp.concatenate(clamped_moments(mean, jnp.tril(factor), -bound, bound, PAIRS))


@pytest.mark.x64
def test_derivatives_are_those_of_differences():
    arguments, step = (MEAN, FACTOR, jnp.array([1.0, 0.9, 1.2])), 1e-5
    flat, unravel = ravel_pytree(arguments)
    function = jax.jit(lambda vector: moments(*unravel(vector)))
    exact, run = jax.jit(jax.jacfwd(function))(flat), jax.jit(jax.vmap(function))
    steps = step * jnp.eye(flat.size)
    differences = (run(flat[None] + steps) - run(flat[None] - steps)) / (2 * step)
    np.testing.assert_allclose(exact, differences.T, atol=1e-9)


@pytest.mark.x64
def test_slopes_by_each_argument_are_those_of_differences():
    arguments = [jnp.array(leaf) for leaf in ([[-0.3], [0.2]], [0.1], [0.5], [0.7], [-0.8], [1.1])]
    check_grads(jax.jit(product_beyond), arguments, order=1, modes=["fwd", "rev"], atol=1e-7, rtol=1e-7)
