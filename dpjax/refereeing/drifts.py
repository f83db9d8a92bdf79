"""How far the law of parameters at the ends of chains is from that of the draws at which they began."""

import numpy as np

from dpjax import diagnostics
from dpjax.posterior import merge

TAIL = 0.1
"""The probability of each of the two tails that are compared."""

ROUNDING = 32.0
"""Numbers that differ by no more than so many units in their last place are taken for one."""


def columns(parameters: dict[str, np.ndarray], axes: int) -> np.ndarray:
    """All scalar parameters side by side, float64 [..., row], behind so many leading axes."""
    flat = [leaf.reshape(*leaf.shape[:axes], -1).astype(np.float64) for leaf in parameters.values()]
    return np.concatenate(flat, axis=-1)


def merged(draws: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The draws of all chains on one axis, by name."""
    return {name: merge(leaf) for name, leaf in draws.items()}


def are_one(draws: dict[str, np.ndarray], after: dict[str, np.ndarray]) -> np.ndarray:
    """Which columns are one number at all draws [chain, draw, ...] and ends [start, ...], up to rounding [row]."""
    ends = columns(after, 1)
    spread = np.ptp(np.concatenate([columns(merged(draws), 1), ends]), axis=0)
    return spread <= ROUNDING * rounding(draws) * np.max(np.abs(ends), axis=0)


def rounding(parameters: dict[str, np.ndarray]) -> np.ndarray:
    """The relative precision of each column [row]; 0 of whole numbers."""

    def precision(leaf: np.ndarray) -> float:
        return float(np.finfo(leaf.dtype).eps) if np.issubdtype(leaf.dtype, np.floating) else 0.0

    return np.concatenate([np.full(leaf[0, 0].size, precision(leaf)) for leaf in parameters.values()])


def compare(draws: np.ndarray, before: np.ndarray, after: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The drifts of four functions and their standard errors, each [test, row]; see `Verdict.comparison`.

    Parameters
    ----------
    draws
        Standardised, [chain, draw, row].
    before
        Starts [start, row].
    after
        Ends [start, row], on the same scale.
    """
    low, high = np.quantile(draws, (TAIL, 1 - TAIL), axis=(0, 1))

    def functions(scores: np.ndarray) -> tuple[np.ndarray, ...]:
        return scores, scores**2, (scores < low).astype(float), (scores > high).astype(float)

    each = zip(*map(functions, (draws, before, after)), strict=True)
    drifts, errors = zip(*(drift_of(*values) for values in each), strict=True)
    return np.stack(drifts), np.stack(errors)


def covariance_over(unit: np.ndarray, before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """The covariance of starts and ends [start, row] over a unit [row]; 1 where nothing has moved."""
    covariance = np.mean((before - before.mean(axis=0)) * (after - after.mean(axis=0)), axis=0)
    return np.where(np.all(before == after, axis=0), 1.0, covariance / np.where(unit > 0, unit, 1.0))


def drift_of(draws: np.ndarray, before: np.ndarray, after: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How far the mean at the ends is from that of the draws [row], and its standard error.

    By how much the starts happen to be off all draws is told by these, and the ends are corrected for as much of it as
    they remember: a regression estimate. Where they remember all, the mean of the paired differences is left.

    Parameters
    ----------
    draws
        A function of the draws [chain, draw, row].
    before
        The same of starts [start, row].
    after
        The same of ends [start, row].
    """
    kept = np.clip(covariance_over(np.var(before, axis=0), before, after), 0.0, 1.0)
    rest = after - kept * before
    drift = rest.mean(axis=0) - (1 - kept) * draws.mean(axis=(0, 1))
    error = np.hypot(rest.std(axis=0, ddof=2) / np.sqrt(len(rest)), (1 - kept) * diagnostics.mcse_mean(draws))
    return drift, error


def ratio(drift: np.ndarray, error: np.ndarray) -> np.ndarray:
    """A drift over its standard error; 0 where there is no drift."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(drift == 0, 0.0, drift / error)
