"""The parts of the invariance test: what it computes, when records have settled, what is refused, and the figure."""

import dataclasses

import jax
import numpy as np
import pytest
from scipy import stats
from scipy.signal import lfilter

import dpjax
from dpjax import models, statistics
from dpjax.data_augmentation.problem import augment
from dpjax.posterior.posterior import Posterior
from dpjax.sampler_tests import InvarianceTestResult
from dpjax.sampler_tests.invariance_test import choose_problem, spaced
from dpjax.sampler_tests.record_warmup import is_decorrelated
from dpjax.sampler_tests.unbiased import CoupledPairs, coupled_pairs, round_up
from tests.sampler_tests import cases

KEY = jax.random.key(0)
RNG = np.random.default_rng(0)


def make_result(draws: np.ndarray, after: np.ndarray, **more: bool) -> InvarianceTestResult:
    """Of draws [chain, draw, ...] and the ends of chains that began at the first of them."""
    before = draws.reshape(-1, *draws.shape[2:])[: len(after)]
    return InvarianceTestResult(
        {"theta": draws}, {"theta": before}, {"theta": after}, 10, 8, **{"settled": True} | more
    )


def test_a_drift_is_how_far_ends_are_from_all_draws_less_what_they_remember() -> None:
    """The line of ends on starts, where starts are at the mean of all draws."""
    draws = RNG.normal(size=(4, 100, 2))
    after = 0.6 * draws.reshape(400, 2)[:150] + 0.8 * RNG.normal(size=(150, 2)) + np.array([0.0, 0.7])
    result = make_result(draws, after)
    all_draws, before, after = result.standardised
    low, high = np.quantile(all_draws, (0.1, 0.9), axis=(0, 1))
    functions = (lambda x: x, lambda x: x**2, lambda x: (x < low) * 1.0, lambda x: (x > high) * 1.0)
    for function, drift in zip(functions, result.comparison[0], strict=True):
        for row in range(2):
            mean = np.mean(function(all_draws)[..., row])
            slope, start = np.polyfit(function(before)[:, row], function(after)[:, row], 1)
            assert drift[row] == pytest.approx(start + np.clip(slope, 0, 1) * mean - mean, abs=0.02)
    assert result.p_value == pytest.approx(8 * np.min(result.p_values), abs=0)
    assert result.outcome == "wrong"
    assert "the mean of theta[1] moved by" in repr(result)


def test_table() -> None:
    draws = RNG.normal(2.0, 3.0, size=(4, 100))
    table = make_result(draws, draws.ravel() + RNG.normal(size=400)).table
    assert table.rows == ("theta",)
    assert table["theta"]["mean"] == pytest.approx(np.mean(draws))
    assert table["theta"]["correlation"] == pytest.approx(0.95, abs=0.03)
    assert table["theta"]["detectable"] > 5 * table["theta"]["se_drift"] / 0.1


@pytest.mark.x32
def test_a_shift_of_the_size_reported_is_seen_nine_times_in_ten() -> None:
    """Starts are off by it, and a share of 0.3 of that is left at the ends."""
    seen = []
    for _ in range(400):
        draws, noise = RNG.normal(size=(4, 200)), np.sqrt(1 - 0.3**2) * RNG.normal(size=200)
        shift = make_result(draws, 0.3 * draws[0] + noise).detectable[0]
        result = make_result(draws + shift, 0.3 * (draws[0] + shift) + noise)
        seen.append(result.p_values[0, 0] * 4 < 0.01)
    assert abs(np.mean(seen) - 0.9) < 5 * np.sqrt(0.09 / 400)


@pytest.mark.x32
def test_p_values_of_a_law_that_stays_are_uniform() -> None:
    """Whatever share of the start is kept; draws of a chain are correlated, and starts are taken apart."""
    for share in (0.0, 0.5, 0.95):
        p_values = []
        for _ in range(300):
            draws = lfilter([np.sqrt(1 - 0.5**2)], [1.0, -0.5], RNG.normal(size=(4, 1_200)), axis=1)[:, 200:]
            before = draws[:, ::10].ravel()
            after = share * before + np.sqrt(1 - share**2) * RNG.normal(size=400)
            p_values.append(
                InvarianceTestResult({"theta": draws}, {"theta": before}, {"theta": after}, 1, 1, True).p_values[:, 0]
            )
        for column in np.stack(p_values, axis=1):
            assert stats.kstest(column, "uniform").pvalue > 1e-4


def test_outcomes() -> None:
    draws, after = RNG.normal(size=(4, 100)), RNG.normal(size=400)
    assert make_result(draws, after).outcome == "no drift"
    assert make_result(draws, after, settled=False).outcome == "inconclusive"
    assert make_result(draws, draws.ravel()).outcome == "inconclusive"
    assert make_result(draws, draws.ravel() + 0.01).outcome == "wrong"
    assert make_result(np.ones((4, 100)), after).outcome == "wrong"
    assert make_result(np.ones((4, 100)), np.ones(400)).outcome == "inconclusive"


def test_entries_that_are_one_number_by_their_nature_are_left_out() -> None:
    """The diagonal of a correlation matrix, one entry of it with rounding errors."""
    draws, after = RNG.normal(size=(4, 100, 3)), RNG.normal(size=(400, 3))
    draws[..., :2] = after[:, :2] = 1.0
    draws[0, :50, 1] = 1.0 - 1e-16
    result = make_result(draws, after)
    assert result.outcome == "no drift"
    assert np.isnan(result.correlation).tolist() == [True, True, False]
    np.testing.assert_array_equal(result.scores[0, :2], 0.0)


@pytest.mark.parametrize(("share", "forgotten"), [(0.95, False), (0.6, False), (0.1, True), (0.0, True)])
def test_forgetting(share: float, forgotten: bool) -> None:
    """Of two numbers watched, one keeps a share of its difference."""
    former, fresh = RNG.normal(size=(2, 200, 2))
    kept = np.array([share, 0.0])
    assert is_decorrelated(former, kept * former + np.sqrt(1 - kept**2) * fresh) is forgotten


def test_numbers_that_stand_still_are_not_watched_unless_they_begin_to_move() -> None:
    still, fresh = np.zeros((50, 1)), RNG.normal(size=(50, 1))
    assert is_decorrelated(still, still)
    assert not is_decorrelated(still, fresh)
    assert is_decorrelated(np.hstack([still, RNG.normal(size=(50, 1))]), np.hstack([still, fresh]))


def test_draws_are_evenly_spaced() -> None:
    np.testing.assert_array_equal(spaced(10, 5), [0, 2, 4, 6, 8])
    np.testing.assert_array_equal(spaced(3, 3), [0, 1, 2])


@pytest.mark.slow
def test_a_number_of_records_that_is_unknown() -> None:
    """Records are added and deleted while the parameters are held."""
    number = dpjax.UnknownCount(models.UniformCount(2, 8))
    release = dpjax.Release([4.0], dpjax.Laplace(1.0), statistics.total("y", -2.0, 2.0), number)
    posterior = cases.weighted(cases.NORMAL, release)
    assert (
        dpjax.invariance_test(KEY, posterior, num_samples=200, num_sweeps=20, imputation=dpjax.imwg()).outcome
        == "no drift"
    )


def test_the_plan_is_that_of_the_draws_unless_another_is_chosen() -> None:
    posterior, plan = cases.local(), dpjax.data_augmentation.SweepPlan(dpjax.imwg(), False, None)
    planned, nothing = dataclasses.replace(posterior, plan=plan), dict.fromkeys(("imputation", "interweave"))
    assert choose_problem(planned, nothing).plan is plan
    assert choose_problem(planned, nothing | {"interweave": True}).plan.interweave
    assert choose_problem(posterior, nothing).plan.interweave


def with_draws(**draws: np.ndarray) -> Posterior:
    return dataclasses.replace(cases.local(), draws=draws)


def without_parameters() -> Posterior:
    return dataclasses.replace(impossible(), model=models.exponential(1.0))


def impossible() -> Posterior:
    draws = np.where(np.arange(400) == 200, -1.0, 1 + RNG.random(400))
    return cases.posterior_of(cases.RATE, cases.SHORT_SUM, {"rate": draws})


SLOW = np.cumsum(RNG.normal(size=(4, 200)), axis=1)


@pytest.mark.parametrize(
    ("choices", "error", "message"),
    [
        ({"key": 3}, TypeError, "key: given 3; expected one typed key"),
        ({"posterior": cases.NORMAL}, TypeError, r"posterior: given \w+; expected a Posterior"),
        ({"posterior": without_parameters()}, ValueError, "posterior: given a model without parameters"),
        ({"posterior": with_draws()}, ValueError, r"posterior.draws: given a dict of \[\]; expected .*mean"),
        ({"posterior": with_draws(mean=np.full((2, 50), np.nan))}, ValueError, r"posterior.draws\['mean'\]: given"),
        ({"posterior": with_draws(mean=SLOW)}, ValueError, "posterior: given .* effective draws of mean; expected at"),
        ({"posterior": impossible()}, ValueError, "posterior: given 1 of .* draws of zero prior density"),
        ({"num_samples": 10}, ValueError, "num_samples: given 10; expected a whole number >= 20"),
        ({"num_samples": 7_000}, ValueError, "num_samples: given 7000; expected at most"),
        ({"num_samples": 2.5}, TypeError, "num_samples: given 2.5"),
        ({"num_sweeps": 0}, ValueError, "num_sweeps: given 0"),
        ({"unbiased": 1}, TypeError, "unbiased: given 1; expected True or False"),
        ({"unbiased": True}, TypeError, "release: given a LocalRelease"),
        ({"num_warmup": -1}, ValueError, "num_warmup: given -1"),
        ({"imputation": dpjax.soma()}, TypeError, "imputation: given soma"),
        ({"interweave": "yes"}, TypeError, "interweave: given 'yes'"),
        ({"parameter_kernel": "gibbs"}, ValueError, "parameter_kernel: given 'gibbs'"),
    ],
)
def test_bad_input(choices: dict, error: type, message: str) -> None:
    arguments = {"key": KEY, "posterior": cases.local()} | choices
    with pytest.raises(error, match=message):
        dpjax.invariance_test(**arguments)


def test_pairs_of_a_posterior_are_built_once() -> None:
    """Programs are compiled for them, and for windows that do not differ by chance."""
    posterior, other = (cases.summed(cases.MEAN, cases.SD)() for _ in range(2))
    first, again, third = (pairs_of(one) for one in (posterior, posterior, other))
    assert again is first
    assert third.kernel is not first.kernel
    assert [round_up(steps) for steps in (1, 2, 3, 130)] == [1, 2, 4, 256]


def pairs_of(posterior: Posterior) -> CoupledPairs:
    starts = {"mean": posterior.draws["mean"][0, :50]}
    return coupled_pairs(posterior, augment(posterior.model, posterior.release), starts, posterior.draws)


def test_plot() -> None:
    own = pytest.importorskip("matplotlib.figure").Figure().subplots()
    axes = make_result(RNG.normal(size=(4, 25, 3)), RNG.normal(size=(100, 3))).plot(axes=own)
    assert axes is own
    assert [label.get_text() for label in axes.get_yticklabels()] == ["theta[0]", "theta[1]", "theta[2]"]
    assert "no drift" in axes.get_title()
