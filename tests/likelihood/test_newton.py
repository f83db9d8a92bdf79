"""Steps of Newton, free and held, and the jackknife."""

import numpy as np
import pytest
from scipy import stats

from dpjax.likelihood.newton import Constraint, LastStep, Moments, jackknife, leave_one_out, solve

RNG = np.random.default_rng(3)


def moments(size: int = 3) -> Moments:
    """Moments [2, ...] of two releases with positive definite information."""
    curvature = np.stack([np.eye(size) * 4 + 0.3 * np.ones((size, size))] * 2)
    score = RNG.normal(size=(2, size))
    square = curvature * 0.4 + score[:, :, None] * score[:, None]
    return Moments(score, square, curvature, curvature, np.zeros(2))


def test_a_free_step_is_newtons() -> None:
    mean = moments()
    found = solve(mean, Constraint(np.zeros((2, 3)), np.zeros(2)), np.full(2, 1e-6))
    information = 0.6 * mean.curvature
    np.testing.assert_allclose(found.covariance, np.linalg.inv(information), atol=1e-10)
    np.testing.assert_allclose(found.change, np.linalg.solve(information, mean.score[..., None])[..., 0], atol=1e-10)
    np.testing.assert_allclose(found.shares, 0.6, atol=1e-10)
    np.testing.assert_allclose(np.swapaxes(found.steps, 1, 2) @ found.steps, found.covariance, atol=1e-10)


def test_a_step_that_holds_a_quantity_solves_its_equations() -> None:
    """A δ + λ a = S and a'δ = r, solved as one system."""
    mean, gradient, missing = moments(), RNG.normal(size=(2, 3)), np.array([0.3, -0.2])
    found = solve(mean, Constraint(gradient, missing), np.full(2, 1e-6))
    for row in range(2):
        system = np.block(
            [[0.6 * mean.curvature[row], gradient[row][:, None]], [gradient[row][None], np.zeros((1, 1))]]
        )
        exact = np.linalg.solve(system, np.append(mean.score[row], missing[row]))
        np.testing.assert_allclose(found.change[row], exact[:3], atol=1e-10)
        np.testing.assert_allclose(found.multiplier[row], exact[3], atol=1e-10)


def test_a_bound_keeps_the_step_short_where_nothing_is_known() -> None:
    mean = moments()
    mean = mean._replace(square=mean.curvature + mean.score[:, :, None] * mean.score[:, None])
    found = solve(mean, Constraint(np.zeros((2, 3)), np.zeros(2)), np.full(2, 0.5))
    expected = 2 * np.linalg.solve(mean.curvature, mean.score[..., None])[..., 0]
    np.testing.assert_allclose(found.change, expected, atol=1e-10)


def test_a_step_too_far_is_cut_where_the_slope_is_zero() -> None:
    """On a parabola of curvature 2 with a step four times too long, the next one ends at the maximum."""
    origin, change = np.zeros((1, 1)), np.full((1, 1), 4.0)
    trail = LastStep(origin, change, np.array([4.0 * 2.0]))
    solution = solve(moments(1), Constraint(np.zeros((2, 1)), np.zeros(2)), np.full(2, 1e-6))
    solution = solution._replace(slope=np.full((1, 1), 2.0 - 2 * 4.0), change=np.full((1, 1), -9.0))
    assert trail.next(origin + change, solution, np.array([True])).end() == pytest.approx(1.0)
    assert trail.next(origin + change, solution, np.array([False])).end() == pytest.approx(-5.0)


def test_the_jackknife_of_a_mean_is_its_standard_error() -> None:
    groups = RNG.normal(size=(1, 12, 2))
    zero = np.zeros((1, 12, 2, 2))
    replicates = leave_one_out(Moments(groups, zero, zero, zero, np.zeros((1, 12)))).score
    np.testing.assert_allclose(jackknife(replicates)[0], stats.sem(groups[0], axis=0), atol=1e-12)
    assert jackknife(np.ones((1, 3))).tolist() == [0.0, 0.0, 0.0]
