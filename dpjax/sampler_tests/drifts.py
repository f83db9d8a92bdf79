"""How far the law of parameters at the ends of chains is from that of the draws at which they began."""

from collections.abc import Callable
from typing import Literal

import numpy as np
import scipy

from dpjax.diagnostics import convergence
from dpjax.posterior.posterior import merge

TAIL = 0.1
"""The probability of each of the two tails that are compared."""

FIFTH = 0.2
"""The share of draws in each of the two ends whose ranks are compared."""

FEW = 200
"""Of more starts the spread of the ends is well known."""

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
    """The drifts of four bounded functions of ranks over their errors [test, row], as arguments of `compare`.

    The functions of u, the share of draws below a number, are the normal score, its square (van der Waerden 1952, Klotz
    1962), and how far u is within the lowest and the highest fifth. However long the tails of a parameter are, those
    of such means are short. Scores are cut off where a start in four would be beyond them by chance, and no error is
    smaller than the draws' own spread would have it: few ends may happen to be alike.
    """
    cut = scipy.stats.norm.isf(1 / (4 * len(before)))
    ordered = np.sort(draws.reshape(-1, draws.shape[-1]), axis=0)

    def functions(numbers: np.ndarray) -> tuple[np.ndarray, ...]:
        shares = shares_below(ordered, numbers)
        normal = np.clip(scipy.stats.norm.ppf(shares), -cut, cut)
        return normal, normal**2, np.clip(1 - shares / FIFTH, 0, 1), np.clip(1 - (1 - shares) / FIFTH, 0, 1)

    drifts, errors = drifts_of(functions, draws, before, after, floor=True)
    return ratio(drifts, errors)


def shares_below(ordered: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """The share of ordered draws [draw, row] below each number [..., row]; equal ones count half."""
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
    """The covariance of starts and ends [start, row] over a unit [row]; 1 where nothing has moved."""
    covariance = np.mean((before - before.mean(axis=0)) * (after - after.mean(axis=0)), axis=0)
    return np.where(np.all(before == after, axis=0), 1.0, covariance / np.where(unit > 0, unit, 1.0))


def drift_of(
    draws: np.ndarray, before: np.ndarray, after: np.ndarray, *, floor: bool = False
) -> tuple[np.ndarray, np.ndarray]:
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
    floor
        Whether the ends' error is at least what the variance of the draws makes it, if their law is the same; of many
        starts, at least about that.
    """
    kept = np.clip(covariance_over(np.var(before, axis=0), before, after), 0.0, 1.0)
    rest = after - kept * before
    drift = rest.mean(axis=0) - (1 - kept) * draws.mean(axis=(0, 1))
    spread = rest.std(axis=0, ddof=2)
    if floor:
        share = 1.0 if len(rest) < FEW else 1 - 4 / np.sqrt(len(rest))
        spread = np.maximum(spread, share * np.sqrt(draws.var(axis=(0, 1)) * (1 - kept**2)))
    # Draws that are all one have no error.
    error = np.hypot(spread / np.sqrt(len(rest)), (1 - kept) * np.nan_to_num(convergence.mcse_mean(draws)))
    return drift, error


def ratio(drift: np.ndarray, error: np.ndarray) -> np.ndarray:
    """A drift over its standard error; 0 where there is no drift."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(drift == 0, 0.0, drift / error)
