"""Which of many candidates wins: ties, which are as likely as each other, and a leader, by closed form or quadrature.

Tests of the mechanisms have up to a few dozen candidates, where one rule for all of them would do.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from dpjax.numerics.winners import log_win_by_exponential, log_win_by_laplace

WINS = [log_win_by_exponential, log_win_by_laplace]


@pytest.mark.x64
@pytest.mark.parametrize("size", [2, 33, 200, 20_000])
@pytest.mark.parametrize("log_win", WINS)
def test_ties_are_as_likely_as_each_other(log_win, size) -> None:
    assert size * np.exp(log_win(jnp.zeros(size), 1)) == pytest.approx(1, rel=1e-9)


@pytest.mark.x64
@pytest.mark.parametrize("log_win", WINS)
def test_ties_have_equal_slopes(log_win) -> None:
    """Values alone do not tell that the ends of pieces, which meet at ties, have no share in slopes."""
    slope = jax.grad(log_win)(jnp.array([0.0, 0.0, -1.0, -1.0]), 3)
    assert slope[0] == pytest.approx(slope[1])
    assert slope.sum() == pytest.approx(0, abs=1e-9)


def leader_by_exponential(gap: float, others: int) -> float:
    share = np.exp(-gap)
    return -np.expm1((others + 1) * np.log1p(-share)) / (share * (others + 1))


def leader_by_laplace(gap: float, others: int) -> float:
    ends = np.array([-gap - 40, *np.linspace(-gap, 0, 20), *np.linspace(2, 40, 20)])
    x, weights = np.polynomial.legendre.leggauss(40)
    points = (ends[:-1, None] + np.diff(ends)[:, None] * (1 + x) / 2).ravel()
    density = np.exp(stats.laplace.logpdf(points) + others * stats.laplace.logcdf(points + gap))
    return float(density @ (np.diff(ends)[:, None] * weights / 2).ravel())


@pytest.mark.x64
@pytest.mark.parametrize(("gap", "others"), [(0.5, 60), (9.0, 1_000), (30.0, 200)])
@pytest.mark.parametrize(("log_win", "exact"), list(zip(WINS, [leader_by_exponential, leader_by_laplace], strict=True)))
def test_a_leader_among_near_and_far_ties(log_win, exact, gap, others) -> None:
    utility, expected = jnp.append(jnp.full(others, -gap), 0.0), exact(gap, others)
    assert np.exp(log_win(utility, others)) == pytest.approx(expected, rel=1e-8)
    rest = np.exp(log_win(utility, 0)) * others
    assert np.exp(log_win(utility, others)) + rest == pytest.approx(1, rel=1e-9)
