"""Streaming summaries of draws that are not kept: the same estimates however the draws are split."""

import jax
import numpy as np
import pytest

from dpjax import diagnostics
from dpjax.diagnostics.streaming import (
    BLOCK,
    LEVEL_SIZE,
    MAX_BATCHES,
    Sketch,
    batch_width,
    empty_summary,
    streaming_estimates,
)

LEVELS = (0.025, 0.25, 0.5, 0.75, 0.975)
NUM_DRAWS, CORRELATION = 20_000, 0.8


def autoregressive(seed: int, num_draws: int = NUM_DRAWS) -> np.ndarray:
    """Draws [draw, 4 chains, 2] of a stationary chain with standard normal law."""
    rng = np.random.default_rng(seed)
    draws = np.empty((num_draws, 4, 2))
    draws[0] = rng.normal(size=(4, 2))
    for step in range(1, num_draws):
        draws[step] = CORRELATION * draws[step - 1] + np.sqrt(1 - CORRELATION**2) * rng.normal(size=(4, 2))
    return draws


@pytest.fixture(scope="module")
def draws():
    return autoregressive(1)


def summary_of(draws, cuts=()):
    summary = empty_summary(*draws.shape[1:])
    for part in np.split(draws, cuts):
        summary = summary.add(part)
    return summary


@pytest.fixture(scope="module")
def summary(draws):
    return summary_of(draws)


@pytest.mark.parametrize("cuts", [range(1, 70), range(0, NUM_DRAWS, 999), [5, 5, 17_003]])
def test_a_summary_does_not_depend_on_how_draws_are_split(draws, summary, cuts):
    for one, other in zip(jax.tree.leaves(summary_of(draws, list(cuts))), jax.tree.leaves(summary), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("number", [0, 1, BLOCK, 500, BLOCK * MAX_BATCHES, 2 * BLOCK * MAX_BATCHES + 5, 13_000])
def test_the_number_of_draws_determines_the_shapes(draws, number):
    made, expected = summary_of(draws[:number]), empty_summary(4, 2, number)
    assert jax.tree.structure(made) == jax.tree.structure(expected)
    assert [np.shape(leaf) for leaf in jax.tree.leaves(made)] == [np.shape(leaf) for leaf in jax.tree.leaves(expected)]
    assert len(made.means) < MAX_BATCHES


def test_means_and_spreads_are_exact(draws, summary):
    figures = streaming_estimates(summary, LEVELS)
    np.testing.assert_allclose(figures["mean"], draws.mean(axis=(0, 1)), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(figures["sd"], draws.std(axis=(0, 1), ddof=1), rtol=1e-12)
    np.testing.assert_allclose(summary.chains().means, draws.mean(axis=0), atol=1e-13)
    shifted = streaming_estimates(summary_of(draws + 1e6), LEVELS)
    np.testing.assert_allclose(shifted["sd"], figures["sd"], rtol=1e-7)


def test_ranks_of_quantiles_are_within_the_bound(draws, summary):
    values = draws.reshape(-1, 2)
    bound = np.ceil(np.log2(len(values) / LEVEL_SIZE)) / (2 * LEVEL_SIZE) + 1 / len(values)
    for level, row in zip(LEVELS, streaming_estimates(summary, LEVELS)["quantiles"], strict=True):
        assert np.all(np.abs(np.mean(values < row, axis=0) - level) <= bound)


@pytest.mark.parametrize("order", ["sorted", "reversed", "alternating"])
def test_the_bound_holds_for_values_in_any_order(order):
    values = np.arange(100.0 * LEVEL_SIZE)
    values = {"sorted": values, "reversed": values[::-1], "alternating": np.ravel([values, -values], "F")}[order]
    sketch = Sketch(0, np.zeros((0, 1)), ()).add(values[:, None])
    ranks = np.mean(values[:, None] < sketch.quantiles(LEVELS).T, axis=0)
    assert np.all(np.abs(ranks - LEVELS) <= np.ceil(np.log2(len(values) / LEVEL_SIZE)) / (2 * LEVEL_SIZE))


def test_a_sketch_that_keeps_one_half_only_is_found_out():
    """The bound tells a wrong sketch, which throws away the upper half where two sets become one."""
    values = np.arange(32.0 * LEVEL_SIZE)
    sketch = Sketch(0, np.zeros((0, 1)), ()).add(values[:, None])
    wrong = sketch._replace(levels=(sketch.levels[0] / 2,))
    assert np.abs(np.mean(values < wrong.quantiles((0.5,))[0, 0]) - 0.5) > 5 / (2 * LEVEL_SIZE)


def test_few_values_have_their_very_quantiles(draws):
    few = draws[: LEVEL_SIZE // 4 - 1]
    figures = streaming_estimates(summary_of(few), LEVELS)
    np.testing.assert_allclose(figures["quantiles"], np.quantile(few, LEVELS, axis=(0, 1)), rtol=1e-12)


def test_effective_sizes_and_r_hat_are_near_those_of_all_draws(draws, summary):
    """The variance of some 300 to 500 batch means is known to 2 / sqrt(2 * 300) = 8 %, twice; batches cost a little."""
    figures, chains = streaming_estimates(summary, LEVELS), np.swapaxes(draws, 0, 1)
    np.testing.assert_allclose(figures["ess_mean"], diagnostics.ess_mean(chains), rtol=0.35)
    np.testing.assert_allclose(figures["r_hat"], diagnostics.split_r_hat(chains), atol=2e-3)
    np.testing.assert_allclose(figures["mcse_mean"], figures["sd"] / np.sqrt(figures["ess_mean"]), rtol=1e-12)


def test_chains_apart_and_chains_that_drift_are_seen(draws):
    apart = draws + np.arange(4.0)[:, None]
    drifting = draws + np.linspace(0, 3, NUM_DRAWS)[:, None, None]
    for bad in (apart, drifting):
        figures = streaming_estimates(summary_of(bad), LEVELS)
        assert np.all(figures["r_hat"] > 1.1)
        assert np.all(figures["ess_mean"] < 1_000)


def test_what_is_not_finite_has_no_figures_and_constants_no_error_that_could_be_told(draws):
    some = draws[:4_000].copy()
    some[77, 1, 0], some[..., 1] = np.inf, 2.5
    figures = streaming_estimates(summary_of(some), LEVELS)
    assert np.all(np.isnan([column[..., 0] for column in figures.values() if column.ndim == 1]))
    assert figures["sd"][1] == 0
    assert np.isnan(figures["mcse_mean"][1])
    assert figures["mean"][1] == 2.5


def test_too_few_draws_have_no_effective_size(draws):
    figures = streaming_estimates(summary_of(draws[: 3 * BLOCK]), LEVELS)
    assert np.all(np.isnan(figures["ess_mean"]))
    assert np.all(np.isfinite(figures["sd"]))


def test_batches_are_as_many_as_promised():
    counts = [blocks // batch_width(blocks) for blocks in range(MAX_BATCHES, 5_000)]
    assert (min(counts), max(counts)) == (MAX_BATCHES // 2, MAX_BATCHES - 1)
