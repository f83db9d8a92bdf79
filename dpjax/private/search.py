"""The largest number of rounds that a budget allows."""

from collections.abc import Callable
from math import exp, log

from scipy.optimize import brentq

LARGEST_COUNT = 2**62  # a bound on counts that no run reaches
GROWTH = 8
PRECISION = 1e-3  # of a count whose cost takes long to compute
FAR_BELOW = 100.0  # stands for -inf in root finding


def largest_count(fits: Callable[[int], bool]) -> int:
    """The largest count for which `fits` holds, where it holds up to some count and no further; 0 if for none."""
    if not fits(1):
        return 0
    low, high = 1, 2
    while fits(high):
        low, high = high, 2 * high
        if high > LARGEST_COUNT:
            return low
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def nearly_largest_count(excess: Callable[[int], float]) -> int:
    """A count with `excess` <= 0, an increasing function, at most two in a thousand below the largest one.

    Each evaluation may take seconds, so there are few of them: root finding instead of bisection.
    """
    if excess(1) > 0:
        return 0
    low, high = 1, GROWTH
    while excess(high) <= 0:
        low, high = high, GROWTH * high
        if high > LARGEST_COUNT:
            return low

    def bounded(log_count: float) -> float:
        return max(excess(round(exp(log_count))), -FAR_BELOW)

    count = round(exp(brentq(bounded, log(low), log(high), xtol=PRECISION / 4, rtol=1e-12)))
    while excess(count) > 0:
        count -= max(1, round(count * PRECISION / 2))
    return max(count, low)
