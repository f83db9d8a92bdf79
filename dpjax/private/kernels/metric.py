"""The mass of Hamiltonian dynamics: scalar, diagonal or dense."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dpjax.base import Array
from dpjax.private.arguments import check_numbers
from dpjax.validation import check_array, check_positive, fail

__all__ = ["Metric", "metric"]


class Metric(NamedTuple):
    """The kinetic energy ½ pᵀM⁻¹p.

    Attributes
    ----------
    momentum
        From standard Normal numbers [d] to a momentum N(0, M).
    velocity
        ``p -> M⁻¹p``.
    """

    momentum: Callable[[Array], Array]
    velocity: Callable[[Array], Array]

    def kinetic(self, momentum: Array) -> Array:
        """½ pᵀM⁻¹p []."""
        return 0.5 * jnp.dot(momentum, self.velocity(momentum))


def metric(mass: Any, dimension: int) -> Metric:
    """The metric of a mass matrix M given as a number, a diagonal [d] or a matrix [d, d].

    Raises
    ------
    ValueError
        If it has another shape or is not positive definite.
    """
    check_numbers("mass", mass)
    shape = np.shape(mass)
    if shape not in ((), (dimension,), (dimension, dimension)):
        fail("mass", f"shape {shape}", f"a number, [{dimension}] or [{dimension}, {dimension}]", "Pass one of these.")
    if len(shape) < 2:
        check_positive("mass", mass)
        masses = jnp.asarray(mass, float)
        return Metric(lambda normals: jnp.sqrt(masses) * normals, lambda momentum: momentum / masses)
    check_array("mass", mass, lambda matrix: np.allclose(matrix, matrix.T), "a symmetric matrix", "Symmetrize it.")
    try:
        factor = jnp.asarray(np.linalg.cholesky(np.asarray(mass, float)), float)
    except np.linalg.LinAlgError:
        fail("mass", "a matrix without a Cholesky factor", "a positive definite matrix", "Add to its diagonal.")
    return Metric(
        lambda normals: factor @ normals, lambda momentum: jax.scipy.linalg.cho_solve((factor, True), momentum)
    )
