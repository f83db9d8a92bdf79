"""Noisy sums that follow from published numbers lie on the atoms of their noise, whatever was rounded."""

import jax
import numpy as np
import pytest

import dpjax
from dpjax import statistics
from dpjax.release.releases.linear import solve_sums
from dpjax.release.releases.moments import noisy_sums

TABLE = statistics.cells("cell", 3)
BOUNDED = dpjax.Censored(dpjax.Laplace(2.0), lower=0.0, upper=5.0)
MIXED = dpjax.Independent(
    (dpjax.Rounded(dpjax.Laplace(2.0), 0.1), dpjax.DiscreteLaplace(2.0), dpjax.Exact()), (1, 1, 1)
)
DIFFERENCES = np.array([[1.0, -1.0, 0.3], [0.1, 1.0, -1.0], [0.7, 0.0, 0.9]])


def released(rng: np.random.Generator) -> np.ndarray:
    """Laplace noise on three sums, clamped from 0 to 5."""
    return np.clip(rng.integers(0, 5, 3) + rng.laplace(0.0, 2.0, 3), 0.0, 5.0)


@pytest.mark.parametrize("decimals", [None, 4])
def test_sums_at_a_bound_are_found_at_it(decimals: int | None) -> None:
    """Nearly half of all random matrices led to an interior density, or to a refusal."""
    rng, off, seen = np.random.default_rng(1), 0, 0
    for _ in range(500):
        rows, sums = rng.integers(-3, 4, (3, 3)).astype(float), released(rng)
        if np.linalg.matrix_rank(rows) < 3:
            continue
        value = rows @ sums
        found = solve_sums(rows, value if decimals is None else np.round(value, decimals), BOUNDED)
        is_atom = (sums == 0) | (sums == 5)
        off += int(np.sum(found[is_atom] != sums[is_atom])) + int(np.any((found < 0) | (found > 5)))
        seen += int(is_atom.sum())
    assert seen > 500
    assert off == 0


@pytest.mark.parametrize("x64", [True, False])
def test_each_kind_of_noise_has_its_own_atoms(x64: bool) -> None:
    """A multiple of 0.1, a whole number beside real noise, and a known total; other sums were refused."""
    sums = np.array([0.1 * 17, 4.0, 9.0])
    with jax.enable_x64(x64):
        value = np.asarray(DIFFERENCES @ sums, np.float64 if x64 else np.float32)
        release = dpjax.releases.linear(value, MIXED, TABLE, DIFFERENCES, 20)
        assert np.all(np.asarray(release.value) == np.asarray(sums, release.value.dtype))
        assert float(release.log_density(np.asarray(sums))) > -6


def test_numbers_that_follow_are_consistent_to_their_print() -> None:
    """Contrasts of two decimals, of which one follows from the others, were said to contradict each other."""
    rows, sums = np.vstack([DIFFERENCES, DIFFERENCES.sum(axis=0)]), np.array([0.0, 3.123, 5.0])
    found = solve_sums(rows, np.round(rows @ sums, 2), BOUNDED)
    assert found[[0, 2]].tolist() == [0.0, 5.0]
    np.testing.assert_allclose(found[1], 3.123, atol=0.02)
    with pytest.raises(ValueError, match=r"^value: given numbers that contradict each other"):
        solve_sums(rows, rows @ sums + np.array([0.0, 0.0, 0.0, 0.2]), BOUNDED)


def test_sums_far_from_a_bound_stay_where_they_are() -> None:
    """Only what print or floats can have moved is taken to be at a bound."""
    rows = np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0], [1.0, 0.0, 1.0]])
    sums = np.array([0.004, 1.5, 4.996])
    np.testing.assert_allclose(solve_sums(rows, rows @ sums, BOUNDED), sums, rtol=1e-12)


def test_means_over_counts_give_whole_and_clamped_sums() -> None:
    """A mean of 3 records over 7 printed as 0.43 is a sum of 3, and one of 0 / 7 is at the bound."""
    whole, clamped = dpjax.DiscreteLaplace(1.0), dpjax.Censored(dpjax.Laplace(0.2), lower=0.0, upper=7.0)
    noise = dpjax.Independent((whole, clamped, whole), (2, 2, 2))
    sums, squares, count = np.array([3.0, 22.0]), np.array([0.0, 7.0]), np.array([7, 49])
    mean = sums / count
    for decimals in (15, 3):
        printed = np.round(mean, decimals), np.round(squares / count - mean**2, decimals)
        assert noise._to_atoms(*noisy_sums(*printed, count)).tolist() == [*sums, *squares, *count]
