"""Draws against exact figures: within four standard errors of their chains, standard deviations within 5 %."""

import numpy as np

from dpjax import diagnostics

MOST_ERRORS = 4.0
MOST_SD_ERROR = 0.05
LEAST_DRAWS = 1_500
"""Effective draws, below which standard deviations are not known to 5 %."""


def as_columns(draws: np.ndarray) -> np.ndarray:
    """Draws [chain, draw, k] in float64."""
    draws = np.asarray(draws, np.float64)
    return draws.reshape(*draws.shape[:2], -1)


def check_figures(draws: np.ndarray, moments: tuple[np.ndarray, np.ndarray]) -> None:
    """Raise unless draws [chain, draw, ...] have these means and standard deviations; constants must be met exactly."""
    draws, mean, sd = as_columns(draws), *(np.atleast_1d(figure) for figure in moments)
    fixed = sd < 1e-9
    np.testing.assert_array_equal(np.ptp(draws[..., fixed], axis=(0, 1)), 0)
    np.testing.assert_allclose(draws[0, 0, fixed], mean[fixed], atol=1e-6)
    draws, mean, sd = draws[..., ~fixed], mean[~fixed], sd[~fixed]
    assert diagnostics.ess_mean(draws).min() > LEAST_DRAWS
    errors = (draws.mean(axis=(0, 1)) - mean) / diagnostics.mcse_mean(draws)
    assert np.abs(errors).max() < MOST_ERRORS, errors
    spread = draws.std(axis=(0, 1), ddof=1)
    errors = (spread - sd) / diagnostics.mcse_sd(draws)
    assert np.abs(errors).max() < MOST_ERRORS, errors
    assert np.abs(spread / sd - 1).max() < MOST_SD_ERROR, spread / sd


def check_below(draws: np.ndarray, points: np.ndarray, probabilities: np.ndarray) -> None:
    """Raise unless draws [chain, draw] are at most each point as often as its probability says."""
    below = np.asarray(draws, np.float64)[..., None] <= points
    inside = (probabilities > 0.01) & (probabilities < 0.99)
    below, probabilities = below[..., inside].astype(float), probabilities[inside]
    errors = (below.mean(axis=(0, 1)) - probabilities) / diagnostics.mcse_mean(below)
    assert np.abs(errors).max() < MOST_ERRORS, errors
