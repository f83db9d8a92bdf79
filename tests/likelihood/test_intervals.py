"""Ends of intervals: of a parabola, and by standard errors."""

import numpy as np
import pytest
from scipy import stats

from dpjax.likelihood.intervals import find_ends, wald_ends
from dpjax.likelihood.newton import jackknife


def test_ends_of_a_parabola() -> None:
    """With slope −(x − 1) / 4 the log-likelihood has fallen by 2 at 1 ± 4."""
    held = np.array([-6.0, -3.0, 0.0, 2.0, 4.0, 7.0])
    np.testing.assert_allclose(find_ends(1.0, held, -(held - 1) / 4, 2.0), (-3.0, 5.0), atol=1e-6)
    assert find_ends(1.0, held, -(held - 1) / 400, 2.0) == (-np.inf, np.inf)
    # A slope of another sign would be noticed.
    assert find_ends(1.0, held, (held - 1) / 4, 2.0) == (-np.inf, np.inf)


def test_wald_ends_have_the_errors_of_both_parts() -> None:
    replicates = np.array([[1.0], [1.2], [0.8]]), np.array([[0.5], [0.6], [0.4]])
    ends = wald_ends(np.ones(1), np.full(1, 0.5), replicates, 0.9)
    factor = stats.norm.ppf(0.95)
    assert ends.lower == pytest.approx(1 - factor * 0.5)
    assert ends.mcse_upper == pytest.approx(jackknife(np.array([1.0, 1.2, 0.8]) + factor * np.array([0.5, 0.6, 0.4])))
