"""Lagged pairs on a target small enough to enumerate: bounds above the exact distance, honest caps."""

import jax
import numpy as np
import pytest

from dpjax.coupling import (
    Meetings,
    UnbiasedEstimates,
    convergence_rate,
    meeting_times,
    suggest_k_m,
    total_variation_bounds,
    unbiased_estimates,
)
from dpjax.coupling.pool import LONGEST, enough_lanes
from tests.coupling.enumerated import STATES, exact_law, kernel, ones, soma_matrix

BATCH = 100  # fewer lanes than are worth moving at the end


def meet(key: jax.Array, *, num_pairs: int, lag: int = 1, max_steps: int = 4_000, batch_size: int = BATCH) -> Meetings:
    """Meeting times; calls of one lag, cap and batch share their programs."""
    return meeting_times(key, kernel(), lag=lag, num_pairs=num_pairs, max_steps=max_steps, batch_size=batch_size)


def test_the_enumeration_is_that_of_a_reversible_chain() -> None:
    flow = exact_law()[:, None] * soma_matrix()
    np.testing.assert_allclose(flow, flow.T, atol=1e-12)


@pytest.mark.x32
@pytest.mark.parametrize("lags", [(1,), pytest.param((1, 8), marks=pytest.mark.slow)])
def test_bounds_lie_above_the_exact_distance(lags: tuple[int, ...]) -> None:
    times = np.array([0, 1, 2, 4, 8, 16])
    law, distances = np.eye(len(STATES))[0], []
    for time in range(times[-1] + 1):
        counts = [np.bincount(STATES.sum(axis=1), weights) for weights in (law, exact_law())]
        distances.append(np.abs(counts[0] - counts[1]).sum() / 2)
        law = law @ soma_matrix()
        del time
    tight = []
    for lag in lags:
        meetings = meet(jax.random.key(2), num_pairs=2_000, lag=lag)
        bounds, errors = total_variation_bounds(meetings, times)
        assert np.all(bounds + 5 * errors >= np.array(distances)[times])
        assert np.all(np.diff(bounds) <= 0)
        tight.append(bounds)
    assert tight[-1][0] < tight[0][0] or len(lags) == 1  # a larger lag is sharper


def test_bounds_of_made_up_meetings_count_lags_from_above() -> None:
    """A bound that counts whole lags alone is below this one, and may still be above the distance of small chains."""
    meetings = Meetings(np.array([3, 5, 9]), np.ones(3, bool), lag=2, max_steps=20)
    bounds, errors = total_variation_bounds(meetings, np.array([0, 2, 7]))
    counts = np.array([[1, 2, 4], [0, 1, 3], [0, 0, 0]])
    np.testing.assert_allclose(bounds, counts.mean(axis=1))
    np.testing.assert_allclose(errors, counts.std(axis=1) / np.sqrt(3))


@pytest.mark.parametrize(("lanes", "pairs", "steps", "expected"), [
    (100, 1, 8, 100),  # few lanes in a short run: no new program
    (1_024, 129, 8, 1_024),
    (1_024, 128, 8, 128),
    (100, 51, LONGEST, 100),
    (101, 51, LONGEST, 51),
    (2, 1, LONGEST, 1),
    (1, 1, LONGEST, 1),
])  # fmt: skip
def test_the_last_pairs_move_to_fewer_lanes(lanes: int, pairs: int, steps: int, expected: int) -> None:
    assert enough_lanes(lanes, pairs, steps) == expected


@pytest.mark.slow
@pytest.mark.parametrize("size", [37, 300])
def test_draws_do_not_depend_on_the_batch(size: int) -> None:
    """Neither when pairs wait for lanes, nor when the last ones are moved to fewer."""
    runs = [meet(jax.random.key(3), num_pairs=300, batch_size=size) for size in (BATCH, size)]
    np.testing.assert_array_equal(runs[0].times, runs[1].times)


@pytest.mark.x64
def test_a_cap_is_reported_and_blocks_what_it_would_bias() -> None:
    meetings = meet(jax.random.key(3), num_pairs=300, max_steps=5)
    assert 0 < meetings.num_censored < 300
    assert np.all(meetings.times[~meetings.met] == 5)
    with pytest.raises(ValueError, match="max_steps"):
        total_variation_bounds(meetings, np.arange(3))
    with pytest.raises(ValueError, match="quantile"):
        suggest_k_m(meetings, quantile=0.999)
    with pytest.raises(ValueError, match="unbiased"):
        UnbiasedEstimates(np.zeros(300), np.zeros(300), np.ones(300, int), meetings).estimate()


def test_numbers_of_the_run_are_checked() -> None:
    for wrong in ({"lag": 0}, {"num_pairs": 0}, {"max_steps": 1}, {"batch_size": 0}):
        options = {"lag": 1, "num_pairs": 2, "max_steps": 10} | wrong
        with pytest.raises(ValueError, match=next(iter(wrong))):
            meeting_times(jax.random.key(0), kernel(), **options)
    with pytest.raises(ValueError, match="m: "):
        unbiased_estimates(jax.random.key(0), kernel(), ones, k=3, m=2, num_pairs=2, max_steps=10)


def test_the_rate_of_geometric_meetings_is_found() -> None:
    rng = np.random.default_rng(0)
    times = rng.geometric(0.1, 20_000)
    meetings = Meetings(times, np.ones(len(times), bool), 1, 10_000)
    rate = convergence_rate(meetings, rng, num_bootstrap=200)
    assert rate.lower < 0.9 < rate.upper
    assert rate.upper - rate.lower < 0.01
    capped = Meetings(np.minimum(times, 15), times <= 15, 1, 15)
    assert abs(convergence_rate(capped, rng, num_bootstrap=50).rate - 0.9) < 0.01


def test_the_suggested_window_begins_where_most_pairs_have_met() -> None:
    meetings = Meetings(np.arange(1, 101), np.ones(100, bool), 1, 1000)
    assert suggest_k_m(meetings, quantile=0.9, multiple=5) == (89, 445)  # 90 less the lag


def test_a_window_starts_before_no_censored_pair_met_and_is_less_the_lag() -> None:
    """Of a hundred pairs 95 met: the quantile of 95 % once took the cap for a meeting time."""
    times, met = np.append(np.arange(11, 106), np.full(5, 1_000)), np.arange(100) < 95
    meetings = Meetings(times, met, lag=10, max_steps=1_000)
    assert suggest_k_m(meetings) == (95, 950)
    with pytest.raises(ValueError, match=r"^quantile: given 0.96"):
        suggest_k_m(meetings, quantile=0.96)
