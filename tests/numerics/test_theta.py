"""The theta function and its derivative."""

import jax
import numpy as np
import pytest

from dpjax.numerics.theta import log_theta

JACOBI_JOIN = 1 / np.sqrt(2 * np.pi)


@pytest.mark.x64
@pytest.mark.parametrize("scale", [0.2, JACOBI_JOIN * (1 - 1e-9), JACOBI_JOIN, JACOBI_JOIN * (1 + 1e-9), 1.5])
def test_theta_has_the_derivative_of_the_sum(scale):
    """d log θ / dσ is the second moment over σ³, also where the two series meet."""
    integers = np.arange(-60, 61)
    weights = np.exp(-(integers**2) / (2 * scale**2))
    expected = np.sum(weights * integers**2) / np.sum(weights) / scale**3
    np.testing.assert_allclose(jax.grad(log_theta)(scale), expected, rtol=1e-10)
