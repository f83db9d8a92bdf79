"""The largest number of rounds that a budget allows."""

from collections.abc import Callable
from math import inf

LARGEST_COUNT = 2**62  # a bound on counts that no run reaches
GROWTH = 4
PRECISION = 1e-3  # of a count whose cost takes long to compute
EDGE = 0.02  # the least share of a bracket that a step cuts off


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
    """A count with `excess` <= 0, an increasing function, at most one in a thousand below the largest such count.

    Each evaluation may take seconds, so there are few of them: regula falsi in the logarithm of the count, with the
    Illinois rule against one end staying where it is.
    """
    low, high, above, below = 1, 1, excess(1), -inf
    while above <= 0:
        low, high, below = high, GROWTH * high, above
        if high > LARGEST_COUNT:
            return low
        above = excess(high)
    if high == 1:
        return 0
    last = 0
    while high - low > max(1, low * PRECISION):
        share = min(max(below / (below - above), EDGE), 1 - EDGE) if below > -inf else 0.5
        middle = min(max(round(low * (high / low) ** share), low + 1), high - 1)
        value = excess(middle)
        side = 1 if value > 0 else -1
        weight = 0.5 if side == last else 1.0
        low, high = (low, middle) if side > 0 else (middle, high)
        below, above = (below * weight, value) if side > 0 else (value, above * weight)
        last = side
    return low
