"""Test statistics of the invariance test: differences between the distributions of ends and draws."""

from collections.abc import Callable
from typing import Literal

import numpy as np
import scipy

from dpjax.diagnostics import convergence
from dpjax.posterior.posterior import merge

TAIL = 0.1
"""Probability of each of the two tails that are compared."""

TAIL_SHARE = 0.2
"""Fraction of draws in each of the two tails whose ranks are compared."""

MANY_STARTS = 200
"""Number of starts from which the sd of the ends is well known."""

ROUNDING = 32.0
"""Largest difference of numbers that are taken to be equal, in units of the last place."""


def columns(parameters: dict[str, np.ndarray], axes: int) -> np.ndarray:
    """All scalar parameters as columns, float64 [..., row], after `axes` leading axes."""
    flat = [leaf.reshape(*leaf.shape[:axes], -1).astype(np.float64) for leaf in parameters.values()]
    return np.concatenate(flat, axis=-1)


def merge_chains(draws: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The draws of all chains on one axis, by name."""
    return {name: merge(leaf) for name, leaf in draws.items()}


def are_constant(draws: dict[str, np.ndarray], after: dict[str, np.ndarray]) -> np.ndarray:
    """Which columns are equal at all draws [chain, draw, ...] and ends [start, ...], up to rounding [row]."""
    ends = columns(after, 1)
    spread = np.ptp(np.concatenate([columns(merge_chains(draws), 1), ends]), axis=0)
    return spread <= ROUNDING * rounding(draws) * np.max(np.abs(ends), axis=0)


def rounding(parameters: dict[str, np.ndarray]) -> np.ndarray:
    """The relative precision of each column [row]; 0 for whole numbers."""

    def precision(leaf: np.ndarray) -> float:
        return float(np.finfo(leaf.dtype).eps) if np.issubdtype(leaf.dtype, np.floating) else 0.0

    return np.concatenate([np.full(leaf[0, 0].size, precision(leaf)) for leaf in parameters.values()])


def score_drifts(draws: np.ndarray, before: np.ndarray, after: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The drifts of four functions and their standard errors, each [test, row]; see `InvarianceTestResult.comparison`.

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

    return drifts_of(functions, draws, before, after)


def rank_scores(draws: np.ndarray, before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """The drifts of four bounded functions of ranks over their errors [test, row]; arguments as for `score_drifts`.

    The functions of u, the fraction of draws below a number, are three. They are the normal score, its square (van der
    Waerden 1952, Klotz 1962), and how far u is within the lowest and the highest fifth. Their means are light-tailed
    even if the parameter is not. Scores are clipped at the quantile that one of the starts exceeds with probability
    1/4. Errors are at least those implied by the variance of the draws: few ends may be similar by chance.
    """
    cut = scipy.stats.norm.isf(1 / (4 * len(before)))
    ordered = np.sort(draws.reshape(-1, draws.shape[-1]), axis=0)

    def functions(numbers: np.ndarray) -> tuple[np.ndarray, ...]:
        shares = shares_below(ordered, numbers)
        normal = np.clip(scipy.stats.norm.ppf(shares), -cut, cut)
        return normal, normal**2, np.clip(1 - shares / TAIL_SHARE, 0, 1), np.clip(1 - (1 - shares) / TAIL_SHARE, 0, 1)

    drifts, errors = drifts_of(functions, draws, before, after, floor=True)
    return ratio(drifts, errors)


def shares_below(ordered: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """The fraction of ordered draws [draw, row] below each number [..., row]; ties count half."""
    flat = numbers.reshape(-1, numbers.shape[-1])
    sides: list[Literal["left", "right"]] = ["left", "right"]
    counts = [
        np.stack([np.searchsorted(column, own, side) for column, own in zip(ordered.T, flat.T, strict=True)], axis=-1)
        for side in sides
    ]
    return ((counts[0] + counts[1]) / (2 * len(ordered))).reshape(numbers.shape)


def drifts_of(
    functions: Callable[[np.ndarray], tuple[np.ndarray, ...]],
    draws: np.ndarray,
    before: np.ndarray,
    after: np.ndarray,
    floor: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """The drifts of functions and their errors [test, row]."""
    each = zip(*map(functions, (draws, before, after)), strict=True)
    drifts, errors = zip(*(drift_of(*values, floor=floor) for values in each), strict=True)
    return np.stack(drifts), np.stack(errors)


def covariance_over(unit: np.ndarray, before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """The covariance of starts and ends [start, row] divided by a unit [row]; 1 if nothing has moved."""
    covariance = np.mean((before - before.mean(axis=0)) * (after - after.mean(axis=0)), axis=0)
    return np.where(np.all(before == after, axis=0), 1.0, covariance / np.where(unit > 0, unit, 1.0))


def drift_of(draws: np.ndarray, before: np.ndarray, after: np.ndarray, *, floor: bool) -> tuple[np.ndarray, np.ndarray]:
    """The difference between the means of ends and draws [row], and its standard error.

    A regression estimate: the known difference between starts and all draws, times the regression coefficient of ends
    on starts, is subtracted. With a coefficient of 1 it is the mean of the paired differences.

    Parameters
    ----------
    draws
        Values of a function at the draws [chain, draw, row].
    before
        Values at the starts [start, row].
    after
        Values at the ends [start, row].
    floor
        Whether the error is at least that implied by the variance of the draws if the distributions are the same; for
        many starts, at least about that.
    """
    kept = np.clip(covariance_over(np.var(before, axis=0), before, after), 0.0, 1.0)
    rest = after - kept * before
    drift = rest.mean(axis=0) - (1 - kept) * draws.mean(axis=(0, 1))
    spread = rest.std(axis=0, ddof=2)
    if floor:
        share = 1.0 if len(rest) < MANY_STARTS else 1 - 4 / np.sqrt(len(rest))
        spread = np.maximum(spread, share * np.sqrt(draws.var(axis=(0, 1)) * (1 - kept**2)))
    # Constant draws have no error.
    error = np.hypot(spread / np.sqrt(len(rest)), (1 - kept) * np.nan_to_num(convergence.mcse_mean(draws)))
    return drift, error


def ratio(drift: np.ndarray, error: np.ndarray) -> np.ndarray:
    """A drift over its standard error; 0 if there is no drift."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(drift == 0, 0.0, drift / error)
