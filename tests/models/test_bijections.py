"""The slope of each bijection is that of its coordinates."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from dpjax.models.bijections import COVARIANCE, POSITIVE, SIMPLEX, Bijection


def simplex_coordinates(value: jax.Array) -> jax.Array:
    return value[..., :-1]


def covariance_coordinates(value: jax.Array) -> jax.Array:
    return value[jnp.tril_indices(len(value))]


@pytest.mark.x64
@pytest.mark.parametrize(
    ("bijection", "coordinates", "shape"),
    [
        (POSITIVE, jnp.ravel, (4,)),
        (SIMPLEX, simplex_coordinates, (3,)),
        (SIMPLEX, simplex_coordinates, (2, 3, 2)),
        (COVARIANCE, covariance_coordinates, (1,)),
        (COVARIANCE, covariance_coordinates, (6,)),
        (COVARIANCE, covariance_coordinates, (10,)),
    ],
)
def test_log_jacobian_is_that_of_the_coordinates_of_the_density(
    bijection: Bijection, coordinates: object, shape: tuple
) -> None:
    point = jax.random.normal(jax.random.key(8), shape)
    flat, unravel = ravel_pytree(point)

    def look(vector: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        jacobian = jax.jacfwd(lambda moved: coordinates(bijection.constrain(unravel(moved))).ravel())(vector)
        back = bijection.unconstrain(bijection.constrain(unravel(vector)))
        return jacobian, bijection.log_jacobian(unravel(vector)), back

    jacobian, log_jacobian, back = jax.jit(look)(flat)
    np.testing.assert_allclose(log_jacobian, np.linalg.slogdet(jacobian)[1], atol=1e-10)
    np.testing.assert_allclose(back, point, atol=1e-10)
