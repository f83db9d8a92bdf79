"""How far values are from a law: uniform ranks by SciPy's distribution function, and tests of them in both tails."""

from typing import Any

import numpy as np
from scipy import stats

TAIL = 0.005


def ranks(oracle: Any, values: np.ndarray, discrete: bool) -> np.ndarray:
    """F(x) [n]; for discrete laws a uniform between F(x - 1) and F(x)."""
    values = np.asarray(values, np.float64)
    if not discrete:
        return oracle.cdf(values)
    share = np.random.default_rng(1).random(values.shape)
    return oracle.cdf(values) - share * oracle.pmf(values)


def p_value(oracle: Any, values: np.ndarray, discrete: bool = False) -> float:
    """The smallest p-value of Kolmogorov and Smirnov's test and of the counts in both tails, corrected; 0 for NaN."""
    if not np.all(np.isfinite(values)):
        return 0.0
    rank = ranks(oracle, values, discrete)
    tests = [stats.kstest(rank, "uniform").pvalue]
    tests += [
        stats.binomtest(int(count), rank.size, TAIL).pvalue for count in (np.sum(rank < TAIL), np.sum(rank > 1 - TAIL))
    ]
    return min(1.0, 3 * min(tests))


def scores(oracle: Any, values: np.ndarray) -> np.ndarray:
    """Normal scores of values, from the smaller tail; none beyond ±4.5."""
    values = np.asarray(values, np.float64)
    below, above = oracle.cdf(values), oracle.sf(values)
    return np.clip(np.where(below < above, stats.norm.ppf(below), stats.norm.isf(above)), -4.5, 4.5)
