"""Distances against closed forms, all pairings, and double sums; and whether their errors are honest."""

from itertools import permutations

import numpy as np
import pytest

from dpjax.coupling import mean_wasserstein, median_width, squared_mmd, wasserstein


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(5)


def test_in_one_dimension_a_growing_map_is_the_best_pairing(rng: np.random.Generator) -> None:
    values = rng.normal(size=40)
    moved = 2.0 + 0.5 * values
    expected = np.sqrt(np.mean((values - moved) ** 2))
    assert abs(wasserstein({"y": values}, {"y": rng.permutation(moved)}) - expected) < 1e-12
    assert wasserstein({"y": values}, {"y": rng.permutation(values)}) == 0.0


def test_in_more_dimensions_the_gradient_of_a_convex_function_is_the_best_pairing(rng: np.random.Generator) -> None:
    points = rng.normal(size=(30, 3))
    factor = rng.normal(size=(3, 3))
    moved = points @ (factor @ factor.T) + np.array([1.0, -2.0, 0.5])
    expected = np.sqrt(np.mean(np.sum((points - moved) ** 2, axis=1)))
    shuffled = rng.permutation(moved)
    assert abs(wasserstein(points, shuffled) - expected) < 1e-12
    # A mutation: records paired by their places.
    assert np.sqrt(np.mean(np.sum((points - shuffled) ** 2, axis=1))) > 1.1 * expected


@pytest.mark.parametrize("shape", [(5,), (5, 2)])
def test_no_pairing_is_better(rng: np.random.Generator, shape: tuple[int, ...]) -> None:
    one, other = rng.normal(size=shape), rng.normal(size=shape)
    costs = [np.sum((one - other[list(order)]) ** 2) / 5 for order in permutations(range(5))]
    assert abs(wasserstein(one, other) - np.sqrt(min(costs))) < 1e-12


def test_pairs_are_averaged_and_all_fields_are_coordinates(rng: np.random.Generator) -> None:
    one = {"a": rng.integers(0, 3, size=(6, 4)), "b": rng.normal(size=(6, 4, 2))}
    shift = np.arange(6.0)[:, None, None]
    other = {"a": one["a"], "b": one["b"] + 10 * shift}
    distance = mean_wasserstein(one, other)
    expected = 10 * np.sqrt(2.0) * np.arange(6)
    assert abs(distance.value - expected.mean()) < 1e-10
    assert abs(distance.standard_error - expected.std(ddof=1) / np.sqrt(6)) < 1e-10


def test_multisets_of_other_sizes_are_refused() -> None:
    with pytest.raises(ValueError, match="second"):
        wasserstein(np.zeros(3), np.zeros(4))


def kernel(one: np.ndarray, other: np.ndarray, width: float) -> float:
    return np.exp(-np.sum((one - other) ** 2) / (2 * width**2))


def test_the_discrepancy_and_its_jackknife_are_those_of_double_sums(rng: np.random.Generator) -> None:
    one, other, width = rng.normal(size=(5, 2)), rng.normal(size=(4, 2)) + 1, 1.3

    def double_sums(one: np.ndarray, other: np.ndarray) -> float:
        inside = [
            np.mean([kernel(x, y, width) for i, x in enumerate(rows) for j, y in enumerate(rows) if i != j])
            for rows in (one, other)
        ]
        return sum(inside) - 2 * np.mean([kernel(x, y, width) for x in one for y in other])

    without = [double_sums(np.delete(one, i, 0), other) for i in range(5)]
    without_other = [double_sums(one, np.delete(other, i, 0)) for i in range(4)]
    variance = 4 * np.var(without) + 3 * np.var(without_other)
    found = squared_mmd(one, other, width)
    np.testing.assert_allclose([found.value, found.standard_error], [double_sums(one, other), np.sqrt(variance)])


def repeats(rng: np.random.Generator, shift: float, width: float, num: int = 400) -> tuple[np.ndarray, np.ndarray]:
    found = [squared_mmd(rng.normal(size=(60, 2)), rng.normal(size=(80, 2)) + shift, width) for _ in range(num)]
    return np.array([distance.value for distance in found]), np.array([d.standard_error for d in found])


@pytest.mark.parametrize("shift", [0.0, 0.8])
def test_the_discrepancy_of_normal_laws_has_no_bias_and_an_honest_error(rng: np.random.Generator, shift: float) -> None:
    width = 1.2
    values, errors = repeats(rng, shift, width)
    spread = width**2 + 2
    exact = 2 * width**2 / spread * (1 - np.exp(-(2 * shift**2) / (2 * spread)))
    assert abs(values.mean() - exact) < 5 * values.std() / np.sqrt(len(values))
    ratio = np.sqrt(np.mean(errors**2)) / values.std()
    assert 0.85 < ratio < (1.2 if shift else 2.0)  # wide where the laws are the same
    # A mutation: with the points' kernels with themselves the estimate is too large.
    biased = values + (1 - width**2 / spread) * (1 / 60 + 1 / 80)
    assert abs(biased.mean() - exact) > 5 * values.std() / np.sqrt(len(values))


def test_the_kernel_sums_do_not_depend_on_the_block(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = rng.normal(size=(50, 2)), rng.normal(size=(40, 2))
    whole = squared_mmd(one, other, 1.0)
    monkeypatch.setattr("dpjax.coupling.distances.BLOCK", 7)
    parts = squared_mmd(one, other, 1.0)
    np.testing.assert_allclose([parts.value, parts.standard_error], [whole.value, whole.standard_error])


def test_the_width_is_the_median_distance_of_seeded_draws(rng: np.random.Generator) -> None:
    draws = rng.normal(size=(3000, 2))
    width = median_width(draws, np.random.default_rng(1))
    assert width == median_width(draws, np.random.default_rng(1))
    assert abs(width - np.sqrt(2 * 2 * np.log(2))) < 0.05  # the median of a Rayleigh law of scale √2
    assert median_width(np.array([0.0, 1.0, 3.0]), np.random.default_rng(1)) == 2.0
    with pytest.raises(ValueError, match="width"):
        squared_mmd(draws, draws, 0.0)
