"""Posteriors of published synthetic data sets, mixed: against a posterior in closed form."""

import numpy as np
import pytest

import dpjax

N, SPREAD, NOISE, RELEASED = 80, 2.0, 12.0, 100.0
"""A sum of 80 numbers y ~ N(mean, 2²) with Gaussian noise, and a flat prior of the mean."""

MEAN, SD = RELEASED / N, np.sqrt(N * SPREAD**2 + NOISE**2) / N
"""Of the exact posterior."""


def sets(num_sets: int, rows: int, *, fitted_once: bool = False, seed: int = 1) -> list[dict[str, np.ndarray]]:
    """Draws of the posterior of the mean by each of several synthetic data sets, whose rows alone are seen."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(num_sets):
        mean = MEAN if fitted_once else rng.normal(MEAN, SD)
        average = rng.normal(mean, SPREAD / np.sqrt(rows))  # of rows y ~ N(mean, 2²), which is sufficient
        found.append({"mean": rng.normal(average, SPREAD / np.sqrt(rows), 400)})
    return found


@pytest.mark.x64
def test_large_sets_from_a_noise_aware_posterior_give_that_posterior():
    """Catches a mixture weighted by precision, as of estimates that are independent given the parameter."""
    mixed = dpjax.combine_synthetic(sets(400, 100 * N), n=N, sizes=100 * N)
    row = mixed.summary(quantiles=(0.05, 0.95))["mean"]
    assert abs(row["mean"] - MEAN) < 4 * row["mcse_mean"]
    assert abs(row["sd"] / SD - 1) < 4 / np.sqrt(2 * 400)
    assert abs(row["5%"] - (MEAN - 1.645 * SD)) < 0.25 * SD
    # What one set by itself says is far too certain, about a center of its own.
    assert mixed.draws["mean"][0].std() < 0.2 * SD


@pytest.mark.x64
def test_the_widening_is_that_of_the_sampling_of_rows():
    """Catches W counted once, as in the rule for completed data."""
    with pytest.warns(UserWarning, match=r"intervals up to 1.16 times too wide"):
        mixed = dpjax.combine_synthetic(sets(2_000, 4 * N, seed=2), n=N, sizes=[4 * N] * 2_000)
    extra = SPREAD**2 / (4 * N)
    np.testing.assert_allclose(mixed.widening["mean"], np.sqrt(1 + 2 * extra / SD**2), rtol=0.03)
    classical = mixed.combined("mean")
    np.testing.assert_allclose(classical.standard_errors, SD, rtol=0.06)
    np.testing.assert_allclose(classical.estimate, MEAN, atol=4 * SD / np.sqrt(2_000))


@pytest.mark.x64
def test_sets_of_one_fitted_generator_are_refused():
    """Catches rows that say nothing of how uncertain their generator is, and are taken for a posterior."""
    for seed in range(5):
        with pytest.raises(ValueError, match="differ no more than by chance among rows"):
            dpjax.combine_synthetic(sets(40, N, fitted_once=True, seed=seed))


@pytest.mark.x64
def test_few_or_small_sets_are_warned_of_or_refused():
    """Catches conditions that the docstring states and nothing checks."""
    with pytest.warns(UserWarning, match="6 sets give standard deviations to 32 %"):
        dpjax.combine_synthetic(sets(6, 1_000 * N, seed=3))
    with pytest.raises(ValueError, match="40 rows for n = 80 people"):
        dpjax.combine_synthetic(sets(30, 40), n=N, sizes=40)
    with pytest.raises(ValueError, match="1 sets"):
        dpjax.combine_synthetic(sets(1, N))
    with pytest.raises(ValueError, match=r"draws\[1\]"):
        dpjax.combine_synthetic([{"mean": np.arange(3.0)}, {"other": np.arange(3.0)}])


@pytest.mark.x64
def test_vectors_and_posteriors_are_read_as_draws_by_name():
    """Catches chains that are taken for draws, and sets with more draws that weigh more."""
    rng = np.random.default_rng(4)
    centers = rng.normal(size=(30, 2))
    first = [{"coef": center + 0.01 * rng.normal(size=(100 + 10 * place, 2))} for place, center in enumerate(centers)]
    mixed = dpjax.combine_synthetic(first)
    assert mixed.draws["coef"].shape == (30, 100, 2)
    np.testing.assert_allclose(mixed.mean["coef"], centers.mean(axis=0), atol=0.002)
    assert mixed.combined("coef").covariance.shape == (2, 2)
    assert list(mixed.summary()) == ["coef[0]", "coef[1]"]

    class Result:
        def __init__(self, draws):
            self.draws = draws

    chains = [Result({"coef": np.tile(one["coef"][None, :100], (2, 1, 1))}) for one in first]
    assert dpjax.combine_synthetic(chains).draws["coef"].shape == (30, 200, 2)
