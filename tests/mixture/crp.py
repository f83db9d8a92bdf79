"""The exact laws behind Dirichlet and Pitman–Yor processes: of the number of clusters, and of partitions."""

from itertools import combinations, product
from math import gamma, prod

import numpy as np


def partitions(n: int) -> tuple[tuple[int, ...], ...]:
    """All partitions of n records, by labels in order of appearance: as many as Bell's number."""
    rows = product(range(n), repeat=n)
    return tuple(row for row in rows if all(row[i] <= max((-1, *row[:i])) + 1 for i in range(n)))


PARTITIONS = partitions(3)
"""All partitions of three records."""


def number_of_clusters(n: int, concentration: float, discount: float = 0.0) -> np.ndarray:
    """P(K = 1), ..., P(K = n): beside k clusters record i + 1 opens one with probability (α + d k) / (α + i)."""
    number, law = np.arange(n + 1), np.eye(1, n + 1)[0]
    for i in range(n):
        opens = (concentration + discount * number) / (concentration + i) if i else number == 0
        law = law * (1 - opens) + np.append(0, (law * opens)[:-1])
    return law[1:]


def partition_probability(sizes: list[int], concentration: float, discount: float = 0.0) -> float:
    """The probability of one partition into clusters of these sizes: Pitman and Yor (1997)."""
    opened = prod(concentration + discount * i for i in range(1, len(sizes)))
    within = prod(gamma(size - discount) / gamma(1 - discount) for size in sizes)
    return opened * within * gamma(concentration + 1) / gamma(concentration + sum(sizes))


def partition_posterior(
    evidence: np.ndarray, prior: np.ndarray, concentration: float, discount: float = 0.0
) -> np.ndarray:
    """P(partition | values) of n records, for a base measure on finitely many parameters.

    Parameters
    ----------
    evidence : [parameters, n]
        The density of each value under each parameter.
    prior : [parameters]
        The probabilities of the parameters.
    """
    weights = []
    for labels in partitions(evidence.shape[1]):
        blocks = [np.flatnonzero(np.array(labels) == label) for label in set(labels)]
        of_blocks = prod(prior @ evidence[:, block].prod(axis=1) for block in blocks)
        weights.append(partition_probability([len(block) for block in blocks], concentration, discount) * of_blocks)
    return np.array(weights) / np.sum(weights)


def number_partition(labels: np.ndarray) -> np.ndarray:
    """Which of `partitions` the labels [..., n] are."""
    pairs = np.array(list(combinations(range(labels.shape[-1]), 2))).T
    codes = 2 ** np.arange(pairs.shape[1])
    same, known = ((rows[..., pairs[0]] == rows[..., pairs[1]]) @ codes for rows in (labels, list_partitions(labels)))
    return np.argmax(same[..., None] == known, axis=-1)


def list_partitions(labels: np.ndarray) -> np.ndarray:
    """The partitions of as many records [partitions, n]."""
    return np.array(partitions(labels.shape[-1]))
