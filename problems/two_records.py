"""The exact posterior of two records given their noisy mean."""

from typing import NamedTuple

import numpy as np
from scipy import stats

PRIORS = {"beta": stats.beta(10, 10), "exponential": stats.expon()}
"""The laws of a record in `problems.two_records`; the released value is their mean."""


class TwoRecords(NamedTuple):
    """Values of a record [k] and the joint posterior probabilities [k, k] of two of them."""

    values: np.ndarray
    probabilities: np.ndarray

    @property
    def mean(self) -> float:
        """The posterior mean of a record."""
        return float(self.probabilities.sum(axis=1) @ self.values)

    @property
    def covariances(self) -> tuple[float, float]:
        """The posterior variance of a record and the covariance of the two."""
        centred = self.values - self.mean
        return float(self.probabilities.sum(axis=1) @ centred**2), float(centred @ self.probabilities @ centred)

    @property
    def correlation(self) -> float:
        """The posterior correlation of the two records."""
        variance, covariance = self.covariances
        return covariance / variance


def two_records_posterior(prior: str, epsilon: float, value: float | None = None, size: int = 1000) -> TwoRecords:
    """The posterior given that the mean with Laplace noise of scale 1 / ε is `value`, by default the prior's mean.

    The midpoint rule in the prior's quantiles, so that every value has the same prior probability.
    """
    law = PRIORS[prior]
    values = law.ppf((np.arange(size) + 0.5) / size)
    mean = (values[:, None] + values[None]) / 2
    weights = np.exp(-epsilon * np.abs((law.mean() if value is None else value) - mean))
    return TwoRecords(values, weights / weights.sum())
