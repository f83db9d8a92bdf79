"""The noise of the non-centred forms: its law, and that it does not depend on the parameters."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from dpjax.numerics.cells import all_edges, cell_edges, cells_at, uniforms_within
from tests.models.cases import FREE_NOISE, LEARNED
from tests.models.replicates import NUM_REPLICATES, WRONG_NOISES, noises

NAMES = [name for name in FREE_NOISE if name in LEARNED]

LAWS = {"normal": stats.norm, "regression": stats.norm, "exponential": stats.expon}
REJECT = 1e-4


def noise_p_value(name: str, noise: jax.Array) -> float:
    """The smallest p-value that the noise has its law and no correlation with the parameters, corrected."""
    law = LAWS.get(name.split(",")[0], stats.uniform)
    values, points = np.asarray(noise, np.float64), np.asarray(noises(name).points, np.float64)
    ranks = law.cdf(values) - 0.5
    # Means over a replicate's records of the ranks and of their squares, scaled to unit variance.
    scores = np.sqrt(values.shape[1]) * np.stack([ranks * np.sqrt(12), (ranks**2 - 1 / 12) * np.sqrt(180)]).mean(axis=2)
    standardized = (points - points.mean(axis=0)) / points.std(axis=0)
    correlations = scores @ standardized / np.sqrt(NUM_REPLICATES)
    p_values = [stats.kstest(column, law.cdf).pvalue for column in values.T]
    p_values += [*2 * stats.norm.sf(np.abs(correlations)).ravel()]
    return min(p_values) * len(p_values)


@pytest.mark.x32
@pytest.mark.parametrize("name", NAMES)
def test_noise_is_free_of_the_parameters(name: str) -> None:
    assert noise_p_value(name, noises(name).noise) > REJECT


@pytest.mark.parametrize("name", WRONG_NOISES)
def test_wrong_noise_is_found(name: str) -> None:
    assert noise_p_value(name, noises(name).wrong_noise) < REJECT


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
