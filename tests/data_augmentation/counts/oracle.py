"""Posteriors of tables without Monte Carlo, in NumPy and SciPy alone: nothing here knows dpjax.

A small table is enumerated: every way to put n records into its cells is weighed by prior, noise and known totals. A
large one whose cells have noise of their own is convolved. A model of two free parameters is laid on a grid.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from scipy import special, stats

LogNoise = Callable[[np.ndarray], np.ndarray]


def lattice_law(log_weight: LogNoise, reach: int) -> LogNoise:
    """The log-probabilities of an integer law from weights that are negligible beyond the reach."""
    log_total = special.logsumexp(log_weight(np.arange(-reach, reach + 1)))
    return lambda noise: log_weight(noise) - log_total


def discrete_gaussian(scale: float) -> LogNoise:
    return lattice_law(lambda noise: -0.5 * (noise / scale) ** 2, int(np.ceil(40 * scale)))


def discrete_laplace(scale: float) -> LogNoise:
    return lattice_law(lambda noise: -np.abs(noise) / scale, int(np.ceil(800 * scale)))


def exact(noise: np.ndarray) -> np.ndarray:
    """No noise: the released number is the true one."""
    return np.where(noise == 0, 0.0, -np.inf)


class Seen(NamedTuple):
    """A released vector [d]: a matrix [d, c] times the counts [c], and noise of this law."""

    matrix: np.ndarray
    value: np.ndarray
    log_noise: LogNoise

    def log_likelihood(self, tables: np.ndarray) -> np.ndarray:
        """The log-probability [t] of the value given each table [t, c]."""
        return self.log_noise(self.value - tables @ self.matrix.T).sum(axis=1)


@cache
def compositions(n: int, num_cells: int) -> np.ndarray:
    """Every way to put n records into the cells [t, c]."""
    if num_cells == 1:
        return np.array([[n]])
    parts = [compositions(n - first, num_cells - 1) for first in range(n + 1)]
    firsts = np.repeat(np.arange(n + 1), [len(part) for part in parts])
    return np.column_stack([firsts, np.concatenate(parts)])


def log_ways(tables: np.ndarray) -> np.ndarray:
    """The logarithm [t] of how many orders of the records give each table: n! / Π c!."""
    return special.gammaln(tables.sum(axis=1) + 1) - special.gammaln(tables + 1).sum(axis=1)


def log_dirichlet(tables: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """E Π p^c for p of a Dirichlet law, in logarithms [t]."""
    alpha = np.asarray(alpha, float)
    sizes = tables.sum(axis=1)
    total = special.gammaln(alpha.sum()) - special.gammaln(alpha.sum() + sizes)
    return total + (special.gammaln(alpha + tables) - special.gammaln(alpha)).sum(axis=1)


@dataclass(frozen=True)
class Tables:
    """A law on tables [t, c], their log-probabilities [t], and the log-probability of what was released."""

    tables: np.ndarray
    log_weights: np.ndarray
    log_evidence: float

    @cached_property
    def weights(self) -> np.ndarray:
        """The probabilities [t]."""
        return np.exp(self.log_weights)

    @cached_property
    def places(self) -> dict[tuple[int, ...], int]:
        """The row of each table."""
        return {tuple(table): row for row, table in enumerate(self.tables.tolist())}

    def log_weight_of(self, tables: np.ndarray) -> np.ndarray:
        """The log-probability [...] of each table [..., c]; −∞ for what is no table."""
        rows = [self.places.get(tuple(table), -1) for table in tables.reshape(-1, tables.shape[-1]).tolist()]
        return np.append(self.log_weights, -np.inf)[rows].reshape(tables.shape[:-1])

    def moments(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation of a quantity [t, ...] of the tables."""
        mean = np.tensordot(self.weights, values, 1)
        return mean, np.sqrt(np.tensordot(self.weights, (values - mean) ** 2, 1))

    def counts(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation [c] of the counts."""
        return self.moments(self.tables)

    def num_records(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation [] of the number of records."""
        return self.moments(self.tables.sum(axis=1))

    def marginal(self, cell: int) -> np.ndarray:
        """The probability of each count 0, 1, ... of a cell."""
        return np.bincount(self.tables[:, cell], self.weights)

    def shares(self, alpha: np.ndarray, sums: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation [c] of probabilities that are Dirichlet(alpha + sums) given the table."""
        first = np.asarray(alpha) + (self.tables if sums is None else sums)
        total = first.sum(axis=1, keepdims=True)
        mean = self.weights @ (first / total)
        square = self.weights @ (first * (first + 1) / (total * (total + 1)))
        return mean, np.sqrt(square - mean**2)

    def share_below(self, alpha: np.ndarray, cell: int, points: np.ndarray) -> np.ndarray:
        """P(probability of the cell ≤ point) [points], a mixture of Beta laws."""
        alpha = np.asarray(alpha)
        pairs = np.column_stack([self.tables[:, cell], self.tables.sum(axis=1)])
        pairs, place = np.unique(pairs, axis=0, return_inverse=True)
        weights = np.bincount(place.ravel(), self.weights)
        count, n = pairs.T
        law = stats.beta(alpha[cell] + count, alpha.sum() - alpha[cell] + n - count)
        return weights @ law.cdf(np.asarray(points)[:, None]).T


def condition(tables: np.ndarray, log_prior: np.ndarray, seen: list[Seen]) -> Tables:
    """The posterior of tables [t, c] with prior log-probabilities [t] that are normalised."""
    log_joint = log_prior + sum(one.log_likelihood(tables) for one in seen)
    log_evidence = special.logsumexp(log_joint)
    return Tables(tables, log_joint - log_evidence, float(log_evidence))


def enumerate_tables(n: int, alpha: np.ndarray, seen: list[Seen]) -> Tables:
    """The posterior of a table of n records whose probabilities are Dirichlet(alpha)."""
    tables = compositions(n, len(alpha))
    return condition(tables, log_ways(tables) + log_dirichlet(tables, alpha), seen)


def enumerate_sizes(log_size: Callable[[np.ndarray], np.ndarray], sizes: range, alpha: Any, seen: list[Seen]) -> Tables:
    """As `enumerate_tables` with the number of records of this law, negligible outside these sizes."""
    tables = np.concatenate([compositions(n, len(alpha)) for n in sizes])
    log_prior = log_size(tables.sum(axis=1)) + log_ways(tables) + log_dirichlet(tables, alpha)
    return condition(tables, log_prior, seen)


def uniform_size(low: int, high: int) -> Callable[[np.ndarray], np.ndarray]:
    return stats.randint(low, high + 1).logpmf


def poisson_size(mean: float) -> Callable[[np.ndarray], np.ndarray]:
    return stats.poisson(mean).logpmf


def negative_binomial_size(mean: float, size: float) -> Callable[[np.ndarray], np.ndarray]:
    """Of variance mean + mean² / size: a Poisson law whose mean is Gamma of this shape."""
    return stats.nbinom(size, size / (size + mean)).logpmf


class BayesTable(NamedTuple):
    """The sums of a naive-Bayes table that its parameters have, and the posterior of the table.

    classes
        Records by class [t, i].
    features
        By feature, class and level [t, k, i, j].
    """

    posterior: Tables
    classes: np.ndarray
    features: np.ndarray


def enumerate_naive_bayes(n: int, class_alpha: np.ndarray, feature_alpha: np.ndarray, seen: list[Seen]) -> BayesTable:
    """Records (class, feature 0, feature 1, ...) in C order, Dirichlet(class_alpha), Dirichlet(feature_alpha[k, i])."""
    class_alpha, feature_alpha = np.asarray(class_alpha, float), np.asarray(feature_alpha, float)
    num_features, num_classes, num_levels = feature_alpha.shape
    support = np.array(list(product(range(num_classes), *[range(num_levels)] * num_features)))
    tables = compositions(n, len(support))
    in_class = (support[:, 0] == np.arange(num_classes)[:, None]).astype(int)
    at_level = (support[:, 1:].T[:, None] == np.arange(num_levels)[:, None]).astype(int)
    classes = tables @ in_class.T
    features = np.einsum("tc,ic,kjc->tkij", tables, in_class, at_level, optimize=True)
    log_prior = log_ways(tables) + log_dirichlet(classes, class_alpha)
    for feature, level in product(range(num_features), range(num_classes)):
        log_prior = log_prior + log_dirichlet(features[:, feature, level], feature_alpha[feature, level])
    return BayesTable(condition(tables, log_prior, seen), classes, features)


class GridPosterior(NamedTuple):
    """The posterior of parameters [p] on a grid, and of the tables with them summed out."""

    mean: np.ndarray
    sd: np.ndarray
    tables: Tables


def grid_tables(
    n: int,
    log_probabilities: Callable[[np.ndarray], np.ndarray],
    axes: list[np.ndarray],
    scale: float,
    seen: list[Seen],
) -> GridPosterior:
    """Parameters Normal(0, scale²) each, cells of log-probabilities [g, c] at the points [g, p] of an even grid.

    The trapezoid rule is exact to rounding for a smooth density that vanishes at the ends of the grid.
    """
    points = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, len(axes))
    volume = np.prod([axis[1] - axis[0] for axis in axes])
    log_prior = stats.norm.logpdf(points, 0.0, scale).sum(axis=1) + np.log(volume)
    log_cells = log_probabilities(points)
    tables = compositions(n, log_cells.shape[1])
    log_joint = log_ways(tables)[:, None] + tables @ log_cells.T + log_prior
    posterior = condition(tables, special.logsumexp(log_joint, axis=1), seen)
    given = log_joint + sum(one.log_likelihood(tables) for one in seen)[:, None]
    weights = special.softmax(special.logsumexp(given, axis=0))
    mean = weights @ points
    return GridPosterior(mean, np.sqrt(weights @ (points - mean) ** 2), posterior)


def convolve_cells(n: int, log_cells: list[tuple[int, np.ndarray]]) -> list[np.ndarray]:
    """The laws of counts that are independent but for their sum n.

    Each cell is given as its least count and the log-weights of this count and the following ones; each law has the
    probabilities of the same counts. Sums of positive numbers lose nothing to rounding.
    """
    weights = [np.exp(values - values.max()) for _, values in log_cells]
    laws = []
    for cell, (low, _) in enumerate(log_cells):
        others, lows = np.ones(1), 0
        for place, (least, _) in enumerate(log_cells):
            if place != cell:
                others, lows = np.convolve(others, weights[place]), lows + least
        rest = n - (low + np.arange(len(weights[cell]))) - lows
        inside = (rest >= 0) & (rest < len(others))
        law = weights[cell] * np.where(inside, others[np.clip(rest, 0, len(others) - 1)], 0.0)
        laws.append(law / law.sum())
    return laws


def large_table(
    n: int, alpha: np.ndarray, value: np.ndarray, log_noise: LogNoise, reach: int
) -> list[tuple[np.ndarray, np.ndarray]]:
    """The law of each count as (counts, probabilities), with noise on each cell that is negligible beyond the reach.

    Given n the Dirichlet-multinomial law is a product of Γ(α + c) / c! on the tables of n records, so that only their
    sum ties the cells together.
    """
    cells = []
    for a, released in zip(alpha, value, strict=True):
        count = np.arange(max(0, released - reach), released + reach + 1)
        log_weight = special.gammaln(a + count) - special.gammaln(count + 1) + log_noise(released - count)
        cells.append((int(count[0]), log_weight))
    laws = convolve_cells(n, cells)
    return [(low + np.arange(len(law)), law) for (low, _), law in zip(cells, laws, strict=True)]
