"""The ρ that follows from a pure ε, against divergences of every order."""

import numpy as np
import pytest

from dpjax.mechanisms.promises import narrow, pure


def largest_divergence(epsilon: float) -> float:
    """The largest Rényi divergence, divided by its order, of answers by randomized response, the hardest to hide."""
    above = np.logspace(-8, 3, 400)  # of the order above 1
    above = above[above * epsilon < 600]
    kept = 1 / (1 + np.exp(-epsilon))
    moments = kept * np.expm1(above * epsilon) + (1 - kept) * np.expm1(-above * epsilon)
    return float(np.max(np.log1p(moments) / (above * (1 + above))))


@pytest.mark.x64
@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 3.0, 8.0, 40.0])
def test_no_order_exceeds_the_rho_of_pure_privacy(epsilon: float) -> None:
    """Nor is it less: orders near 1 reach it, so that a smaller multiple of ε tanh(ε / 2) would be refuted."""
    assert largest_divergence(epsilon) == pytest.approx(pure(epsilon).rho, rel=1e-6)
    assert largest_divergence(epsilon) <= pure(epsilon).rho * (1 + 1e-9)
    assert pure(epsilon).rho < epsilon**2 / 2


def test_independent_answers_add_up() -> None:
    """The ρ of three answers is three times that of one, and less than that of one answer of three times the ε."""
    assert pure(0.5, 3) == pytest.approx((1.5, 3 * pure(0.5).rho))
    assert pure(0.5, 3).rho < pure(1.5).rho


@pytest.mark.parametrize("epsilon", [1e-200, 1.0, 7.9, 20.0, 1e200])
def test_narrow_log_ratios_promise_no_less_than_pure_privacy(epsilon: float) -> None:
    """Catches ε² / 8 where ε tanh(ε / 2) is less, and an overflow of the square."""
    assert narrow(epsilon).rho <= min(pure(epsilon).rho, epsilon * epsilon / 8)
