"""The numbers next to one, as processors that flush the smallest numbers to 0 see them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dpjax.numerics.next_floats import next_above, next_below

NUMBERS = (-3.0, -1e-37, -float(np.finfo(np.float32).tiny), 0.0, float(np.finfo(np.float32).tiny), 1e-37, 0.7, 1e20)


@pytest.mark.parametrize("number", NUMBERS)
def test_they_are_above_and_below_in_compiled_programs(number: float) -> None:
    """Of each float type that programs may have."""
    for dtype in {jnp.dtype(jnp.float32), jnp.result_type(float)}:
        own = float(dtype.type(number))
        below, above = next_below(own, dtype), next_above(own, dtype)
        assert below < own < above
        assert (float(dtype.type(below)), float(dtype.type(above))) == (below, above)
        order = jax.jit(lambda low, middle, high: (low < middle, middle < high))
        assert all(map(bool, order(*(jnp.asarray(one, dtype) for one in (below, own, above)))))


def test_they_are_the_nearest_away_from_zero() -> None:
    assert (next_below(1.0, np.float32), next_above(1.0, np.float64)) == (1 - 2.0**-24, 1 + 2.0**-52)
