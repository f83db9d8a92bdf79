"""Rules have the moments of Normal numbers."""

import jax
import numpy as np
import pytest

from dpjax.numerics.quadrature import make_rule


@pytest.mark.parametrize(("dim", "num_points"), [(1, 5), (1, 64), (2, 100), (3, 1_000), (4, 1_024)])
def test_rules_have_the_moments_of_normal_numbers(dim, num_points):
    points, weights = map(np.asarray, make_rule(jax.random.key(3), dim, num_points))
    assert points.shape == (dim, weights.size)
    tolerance = 2e-2 if dim > 3 else 1e-5
    np.testing.assert_allclose(np.sum(weights), 1, rtol=1e-5)
    np.testing.assert_allclose(points @ weights, 0, atol=tolerance)
    np.testing.assert_allclose((points * weights) @ points.T, np.eye(dim), atol=4 * tolerance)
