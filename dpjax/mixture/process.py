"""The Pitman–Yor process, from which the mixing measure is drawn: its urn, its sticks, and how many atoms matter."""

from math import lgamma, log, sqrt
from typing import NamedTuple

import numpy as np

from dpjax.base import Array

__all__ = ["Process"]

LEAST_DISCOUNT = 1e-6
"""A smaller discount counts as none where only a number of slots is estimated."""

LARGEST_EXPONENT = 50.0
"""For a number of slots that is beyond all bounds anyway."""

MARGIN = 1.5
"""How many more atoms are held than leave the remainder on average."""


class Process(NamedTuple):
    """PY(d, α, G0), the Pitman–Yor process (Pitman and Yor 1997); without a discount the Dirichlet process DP(α, G0).

    A discount of 0 is no discount: it gives the same distributions by longer computations.

    Attributes
    ----------
    concentration
        The concentration α [].
    discount
        The discount d [] in [0, 1), or None.
    """

    concentration: Array
    discount: Array | None = None

    def joining(self, sizes: Array) -> Array:
        """The weights n_h - d with which a record joins clusters of these sizes [...]."""
        return sizes if self.discount is None else sizes - self.discount

    def opening(self, num_clusters: Array) -> Array:
        """The weight α + d k [...] with which a record opens a cluster beside k others."""
        if self.discount is None:
            return self.concentration
        return self.concentration + self.discount * num_clusters.astype(self.discount.dtype)

    def beyond(self, num_clusters: Array) -> "Process":
        """The process PY(d, α + d k) of the atoms that none of k clusters has, once their mass is divided out."""
        return self._replace(concentration=self.opening(num_clusters))

    def sticks(self, places: Array) -> tuple[float | Array, Array]:
        """The parameters of the Beta(1 - d, α + d j) sticks at these places j = 1, 2, ...: one for all, and [...]."""
        return 1 if self.discount is None else 1 - self.discount, self.opening(places)

    def mean_clusters(self, n: int) -> float:
        """The mean number of clusters of n records (Pitman 2006, section 3.3); about that without a discount."""
        alpha, d = self.numbers()
        if d < LEAST_DISCOUNT:
            return float(alpha * np.log1p(n / alpha))
        grown = lgamma(alpha) - lgamma(alpha + d) + lgamma(alpha + n + d) - lgamma(alpha + n)
        return float(alpha / d * np.expm1(grown))

    def slots_for(self, n: int, remainder: float) -> float:
        """About how many slots hold the clusters of n records and all but a remainder of the other atoms' mass."""
        alpha, d = self.numbers()
        clusters = self.mean_clusters(n)
        if d < LEAST_DISCOUNT:
            return float(clusters - alpha * log(remainder) + 3 * sqrt(7 * alpha))
        rest = (alpha + d * clusters) / (alpha + n)
        exponent = d / (1 - d) * log(max(rest / remainder, 1))
        return float(clusters + MARGIN * (alpha / d + clusters) * np.expm1(min(exponent, LARGEST_EXPONENT)))

    def mean_remainder(self, num_atoms: int) -> float:
        """The mean mass of all atoms after the first in the order of sticks: Π_j (α + d j) / (α + d j + 1 - d)."""
        alpha, d = self.numbers()
        return float(np.exp(-np.sum(np.log1p((1 - d) / (alpha + d * np.arange(1, num_atoms + 1))))))

    def numbers(self) -> tuple[float, float]:
        """Concentration and discount, 0 for none."""
        return float(self.concentration), 0.0 if self.discount is None else float(self.discount)
