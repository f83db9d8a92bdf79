"""What a clipped function adds."""

import jax.numpy as jnp
import numpy as np
import pytest

from dpjax import statistics


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_clipped_function_that_is_not_finite_adds_nothing(value):
    """The infinite over its infinite length would be no number."""
    half = statistics.clipped(lambda record: record["x"], 2.0)
    assert half({"x": jnp.array([value, 1.0])}).tolist() == [0, 0]
