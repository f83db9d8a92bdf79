"""Noisy tables of three columns of two levels, and posterior means by every data set of five people, by NumPy alone."""

from itertools import product

import numpy as np
from scipy.special import gammaln, logsumexp

import dpjax
from dpjax import diagnostics, statistics

SIZES = {"a": 2, "b": 2, "c": 2}
EVERY = np.array(list(product(range(2), repeat=3)))
N, SCALE = 5, 1.0
TABLES = [("a", "b"), ("c", "b"), ("a",)]
VALUE = np.array([3.0, 1.0, -1.0, 2.0, 2.0, 0.0, 1.0, 3.0, 4.0, 1.0])


def release_of(value: np.ndarray, n: int, scale: float = SCALE) -> dpjax.Release:
    """Noisy tables of the three columns, joined from releases of one table each."""
    parts, start = [], 0
    for table in TABLES:
        statistic = statistics.cells(table, [SIZES[column] for column in table])
        end = start + statistic.dimension
        parts.append(dpjax.Release(value[start:end], dpjax.DiscreteGaussian(scale), statistic, n))
        start = end
    return dpjax.joint(*parts)


def contributions() -> np.ndarray:
    """What each combination of levels adds to the tables [8, 10]."""
    hot = [np.eye(4)[2 * EVERY[:, 0] + EVERY[:, 1]], np.eye(4)[2 * EVERY[:, 2] + EVERY[:, 1]], np.eye(2)[EVERY[:, 0]]]
    return np.concatenate(hot, axis=1)


def exact_means(log_shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Posterior means [8] of the probabilities of all combinations and their errors, for prior draws of their logs."""
    every = np.array([counts for counts in product(range(N + 1), repeat=8) if sum(counts) == N])
    ways = gammaln(N + 1) - gammaln(every + 1).sum(axis=1)
    log_noise = -0.5 * np.square((VALUE - every @ contributions()) / SCALE).sum(axis=1)
    parts = np.split(log_shares, 20)
    weight = np.concatenate([logsumexp(part @ every.T + ways + log_noise, axis=1) for part in parts])
    weight = np.exp(weight - logsumexp(weight))
    mean = weight @ np.exp(log_shares)
    return mean, np.sqrt(np.square(weight) @ np.square(np.exp(log_shares) - mean))


def check_means(draws: np.ndarray, log_shares: np.ndarray) -> None:
    """Raise unless draws [chain, draw, 8] of the probabilities have these means."""
    mean, error = exact_means(log_shares)
    for place in range(8):
        spread = np.hypot(diagnostics.mcse_mean(draws[..., place]), error[place])
        assert abs(draws[..., place].mean() - mean[place]) < 4 * spread, place
