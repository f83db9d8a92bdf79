"""Cells of uniforms: each uniform finds its own, and none an impossible one."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dpjax.numerics.cells import all_edges, cell_edges, cells_at, uniforms_within


@pytest.mark.parametrize("size", [2, 5, 64, 65, 300])
def test_every_uniform_finds_its_cell(size: int) -> None:
    probabilities = np.arange(1.0, size + 1)
    probabilities /= probabilities.sum()
    edges = cell_edges(jnp.asarray(probabilities))
    uniforms = jnp.concatenate([jnp.zeros(1), edges, (all_edges(edges)[1:] + all_edges(edges)[:-1]) / 2])
    expected = [0, *range(1, size), *range(size)]
    np.testing.assert_array_equal(cells_at(uniforms, edges), expected)


@pytest.mark.parametrize(
    ("probabilities", "first", "last"),
    [([0.3, 0.7], 0, 1), ([0.0, 0.3, 0.7], 1, 2), ([0.1, 0.2, 0.7, 0.0, 0.0], 0, 2), ([0.1] * 10 + [0.0], 0, 9)],
)
def test_extreme_uniforms_never_choose_an_impossible_cell(probabilities: list, first: int, last: int) -> None:
    edges = cell_edges(jnp.asarray(probabilities))
    ends = jnp.array([0.0, np.nextafter(jnp.ones((), float), jnp.zeros((), float))])
    np.testing.assert_array_equal(cells_at(ends, edges), [first, last])


def test_uniforms_stay_below_the_upper_end_of_a_narrow_interval() -> None:
    lower = jnp.full(10_000, 0.7)
    upper = jnp.nextafter(lower, jnp.ones_like(lower))
    uniforms = uniforms_within(jax.random.key(32), lower, upper)
    assert np.all((np.asarray(uniforms) >= lower) & (np.asarray(uniforms) < upper))
