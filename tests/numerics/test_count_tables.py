"""Counts by tables: cells, inversion, draws and sums, against SciPy's distributions from tiny to huge parameters."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from dpjax.numerics import count_tables
from dpjax.numerics.count_tables import (
    CountDistribution,
    cells_of,
    count_below,
    counts_at,
    draw_counts,
    invert_tails,
    is_covered,
    is_reached,
    negative_binomial_counts,
    poisson_counts,
    sort_uniforms,
    sum_over_counts,
)
from tests.conftest import FLOAT32

TOLERANCE = 5e-6 if FLOAT32 else 1e-9
REJECT, NUM_DRAWS = 1e-4, 8_000
MEANS = np.array([1e-8, 0.3, 3.0, 60.0, 1e3, 1e6])
PAIRS = np.array([[1e-8, 1.0], [3.0, 2.0], [3.0, 1e-3], [3.0, 1e8], [40.0, 1e-2], [1e4, 0.5], [1e6, 1e4]])
UNIFORMS = np.array([0.0, 1e-6, 0.01, 0.2, 0.5, 0.7, 0.95, 0.999, 1 - 1e-6])


def poisson(parameters: Any, zeros: Any = 0.0) -> CountDistribution:
    return poisson_counts(jnp.asarray(parameters, float), jnp.asarray(zeros, float))


def negative_binomial(parameters: Any, zeros: Any = 0.0) -> CountDistribution:
    mean, size = jnp.asarray(parameters, float)
    return negative_binomial_counts(mean, size, jnp.asarray(zeros, float))


def scipys_poisson(mean: np.ndarray) -> Any:
    return stats.poisson(mean)


def scipys_negative_binomial(pair: np.ndarray) -> Any:
    return stats.nbinom(pair[1], pair[1] / (pair[0] + pair[1]))


FAMILIES = {"Poisson": (poisson, scipys_poisson, MEANS), "negative binomial": (
    negative_binomial, scipys_negative_binomial, PAIRS
)}  # fmt: skip
family = pytest.mark.parametrize("name", FAMILIES)


def rounded(parameters: np.ndarray) -> np.ndarray:
    """The parameters that floats of the present type stand for."""
    return np.asarray(jnp.asarray(parameters, float), np.float64)


@family
def test_counts_are_where_their_cells_are(name: str) -> None:
    """P(X < x) ≤ u < P(X ≤ x) by SciPy, and both ends of the cell are SciPy's."""
    law, scipys, parameters = FAMILIES[name]

    @jax.jit
    @jax.vmap
    def compute(parameters: jax.Array) -> tuple:
        found = counts_at(law(parameters), jnp.asarray(UNIFORMS, float))
        return found, *cells_of(law(parameters), found)

    for each, found, lower, upper in zip(rounded(parameters), *map(np.asarray, compute(parameters)), strict=True):
        exact = scipys(each)
        u = np.asarray(jnp.asarray(UNIFORMS, float), np.float64)
        assert np.all(is_reached(found)), each
        assert np.all(exact.cdf(found - 1) <= u + TOLERANCE), each
        assert np.all(u < exact.cdf(found) + TOLERANCE), each
        np.testing.assert_allclose(lower, exact.cdf(found - 1), atol=TOLERANCE, err_msg=str(each))
        np.testing.assert_allclose(upper, exact.cdf(found), atol=TOLERANCE, err_msg=str(each))


@pytest.mark.keys
@family
@pytest.mark.parametrize("zeros", [0.0, 0.3])
def test_draws_follow_their_law(name: str, zeros: float) -> None:
    """By χ² on some twenty cells, with the added zeros in the first."""
    law, scipys, parameters = FAMILIES[name]
    keys = jax.random.split(jax.random.key(3), len(parameters))
    draw = jax.jit(jax.vmap(lambda key, parameters: draw_counts(key, law(parameters, zeros), NUM_DRAWS)))
    for each, draws in zip(rounded(parameters), np.asarray(draw(keys, parameters)), strict=True):
        exact = scipys(each)
        ends = np.unique(np.concatenate([[0], exact.ppf(np.linspace(0, 1, 21)[1:-1])]))
        below = (1 - zeros) * exact.cdf(ends) + zeros
        expected = np.diff(np.concatenate([[0.0], below, [1.0]])) * NUM_DRAWS
        observed = np.bincount(np.searchsorted(ends, draws), minlength=len(expected))
        rare = expected < 5
        assert observed[rare].sum() <= expected[rare].sum() + 5 * np.sqrt(expected[rare].sum()) + 1, each
        if np.sum(~rare) > 1:
            scaled = expected[~rare] * observed[~rare].sum() / expected[~rare].sum()
            assert stats.chisquare(observed[~rare], scaled).pvalue > REJECT, each


@pytest.mark.parametrize(("mean", "covered"), [(1e-8, True), (3.0, True), (60.0, True), (1e3, False), (1e6, False)])
def test_a_table_covers_what_it_can(mean: float, covered: bool) -> None:
    law = poisson(mean)
    assert bool(is_covered(law, law.table(law.first, count_tables.DRAWN))) == covered


@pytest.mark.parametrize(("law", "exact"), [
    (poisson(3.0), stats.poisson(3.0)),
    (poisson(60.0), stats.poisson(60.0)),
    (negative_binomial((3.0, 2.0)), scipys_negative_binomial(np.array([3.0, 2.0]))),
])  # fmt: skip
def test_tails_are_drawn_to_their_last_digit(law: CountDistribution, exact: Any) -> None:
    """Counts of probability 1e-15, which no uniform of float32 near 1 would give."""
    tails = np.array([0.4, 1e-3, 1.03e-8, 1.01e-12, 1.01e-15])
    for upper, quantile in ((True, exact.isf), (False, exact.ppf)):
        found = law.first + invert_tails(law.table(law.first, 256), jnp.full(5, upper), jnp.asarray(tails, float))
        np.testing.assert_array_equal(found, quantile(tails))


@pytest.mark.x64
def test_what_is_neglected() -> None:
    """The bounds of the tails, over a grid of means and sizes."""
    for mean in 10.0 ** np.arange(-8, 7):
        for size in (1e-2, 0.3, 1.0, 7.0, 1e3, 1e9):
            law, exact = negative_binomial((mean, size)), scipys_negative_binomial(np.array([mean, size]))
            assert exact.cdf(int(law.first) - 1) <= 3e-16
            if int(law.last) < int(law.first) + count_tables.WIDTH * count_tables.MAX_TABLES - 2:
                assert exact.sf(int(law.last)) <= 3e-16


@pytest.mark.parametrize("strictly", [True, False])
@pytest.mark.parametrize("size", [1, 2, 7, 8])
def test_entries_below_values(size: int, strictly: bool) -> None:
    table = np.sort(np.random.default_rng(size).integers(0, 6, size)).astype(float)
    values = np.arange(-1.0, 8.0, 0.5)
    expected = np.searchsorted(table, values, side="left" if strictly else "right")
    np.testing.assert_array_equal(count_below(jnp.asarray(table), jnp.asarray(values), strictly), expected)


def terms(counts: jax.Array) -> jax.Array:
    """Numbers of counts, of which the last is not finite at 0."""
    return jnp.stack([counts.astype(float), (counts == 2).astype(float), jnp.log(counts.astype(float))])


@family
@pytest.mark.parametrize("zeros", [0.0, 0.25])
def test_sums_over_counts_are_those_of_the_records(name: str, zeros: float) -> None:
    law, _, parameters = FAMILIES[name]
    uniforms = sort_uniforms(jax.random.uniform(jax.random.key(5), (300,), float))
    assert np.all(np.diff(uniforms) >= 0)

    @jax.jit
    @jax.vmap
    def compute(parameters: jax.Array) -> tuple:
        found = law(parameters, zeros)
        return *sum_over_counts(found, uniforms, terms), counts_at(found, uniforms)

    for summed, possible, counts in zip(*map(np.asarray, compute(parameters)), strict=True):
        assert possible
        expected = np.sum(np.asarray(terms(counts), np.float64), axis=1)
        np.testing.assert_allclose(summed, expected, rtol=1e-5 if FLOAT32 else 1e-12)


def test_what_no_table_reaches_has_no_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(count_tables, "MAX_TABLES", 2)
    wide, uniforms = negative_binomial((100.0, 0.5)), jnp.array([0.1, 0.5, 0.999], float)
    np.testing.assert_array_equal(is_reached(counts_at(wide, uniforms)), [True, True, False])
    assert not sum_over_counts(wide, uniforms, terms)[1]
    assert sum_over_counts(wide, uniforms[:2], terms)[1]


@pytest.mark.parametrize("law", [poisson(np.nan), poisson(np.inf), poisson(1e12), negative_binomial((np.nan, 1.0))])
def test_parameters_that_give_no_counts(law: CountDistribution) -> None:
    assert np.all(draw_counts(jax.random.key(0), law, 3) == -1)
    assert not np.any(is_reached(counts_at(law, jnp.array([0.2, 0.9]))))
    assert not sum_over_counts(law, jnp.array([0.2, 0.9]), terms)[1]


def test_noise_that_is_no_number_has_no_sum() -> None:
    noise = sort_uniforms(jnp.array([jnp.nan, 0.3, 0.9]))
    assert not sum_over_counts(poisson(3.0), noise, terms)[1]
