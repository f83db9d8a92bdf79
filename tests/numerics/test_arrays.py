"""Trees are chosen between as a whole or row by row."""

import jax.numpy as jnp
import numpy as np
import pytest

from dpjax.numerics import tree_where


@pytest.mark.parametrize("condition", [True, [True, False, True]])
def test_trees_are_taken_as_a_whole_or_row_by_row(condition: object) -> None:
    new, old = ({"a": jnp.full(3, value), "b": jnp.full((3, 2), value)} for value in (1.0, 0.0))
    taken = tree_where(jnp.asarray(condition), new, old)
    for leaf in taken.values():
        np.testing.assert_array_equal(leaf.reshape(3, -1)[:, 0], np.broadcast_to(condition, 3))
