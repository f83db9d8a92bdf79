"""What two samples disprove of a promise.

If a release is (ε, δ)-differentially private, P(T > t) under one data set is at most e^ε P(T > t) + δ under the other.
Frequencies of such events, with their confidence limits, bound ε from below.
"""

from math import log

import numpy as np
from scipy import stats

DRAWS, DELTA, RISK = 400_000, 1e-2, 1e-5


def disproved(one: np.ndarray, other: np.ndarray) -> float:
    """The largest ε that two samples [draws] disprove at `DELTA`, right but for a chance of `RISK`.

    The event is chosen on one half of the draws and judged on the other.
    """
    found = []
    for more, less in ((one, other), (other, one), (-one, -other), (-other, -one)):
        (chosen, judged), (chosen_less, judged_less) = (np.split(sample, 2) for sample in (more, less))
        levels = np.quantile(chosen_less, 1 - np.geomspace(1e-4, 0.5, 200))
        best = levels[np.argmax([bound(chosen, chosen_less, level) for level in levels])]
        found.append(bound(judged, judged_less, best))
    return max(found)


def bound(more: np.ndarray, less: np.ndarray, level: float) -> float:
    """ε from below by the event T > level, with Clopper and Pearson's limits of both of its probabilities."""
    successes, failures = np.sum(more > level), np.sum(less > level)
    lowest = stats.beta.ppf(RISK / 8, successes, len(more) - successes + 1) if successes else 0.0
    highest = stats.beta.ppf(1 - RISK / 8, failures + 1, len(less) - failures) if failures < len(less) else 1.0
    return log((lowest - DELTA) / highest) if lowest > DELTA else 0.0
