"""Choices of one place of many for each of several records."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dpjax.numerics import select_index, select_indices
from dpjax.numerics.selection import UNROLLED


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
