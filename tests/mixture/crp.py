"""The exact laws behind a Dirichlet process: of the number of clusters, and of partitions of three records."""

from math import factorial, gamma, prod

import numpy as np

PARTITIONS = ((0, 0, 0), (0, 0, 1), (0, 1, 0), (0, 1, 1), (0, 1, 2))
"""All partitions of three records, by labels in order of appearance."""


def number_of_clusters(n: int, concentration: float) -> np.ndarray:
    """P(K = 1), ..., P(K = n): record i + 1 opens a cluster with probability α / (α + i)."""
    law = np.ones(1)
    for i in range(n):
        fresh = concentration / (concentration + i)
        law = np.convolve(law, [1 - fresh, fresh])
    return law[1:]


def partition_posterior(evidence: np.ndarray, prior: np.ndarray, concentration: float) -> np.ndarray:
    """P(partition | values) of three records, for a base measure on finitely many parameters.

    Parameters
    ----------
    evidence : [parameters, 3]
        The density of each value under each parameter.
    prior : [parameters]
        The probabilities of the parameters.
    """
    weights = []
    for labels in PARTITIONS:
        blocks = [[i for i in range(3) if labels[i] == label] for label in set(labels)]
        of_blocks = [factorial(len(block) - 1) * prior @ evidence[:, block].prod(axis=1) for block in blocks]
        weights.append(concentration ** len(blocks) * prod(of_blocks) / gamma(concentration + 3))
    return np.array(weights) / np.sum(weights)


def number_partition(labels: np.ndarray) -> np.ndarray:
    """Which of `PARTITIONS` the labels [..., 3] are."""
    same = np.stack([labels[..., i] == labels[..., j] for i, j in ((0, 1), (0, 2), (1, 2))], axis=-1)
    known = np.array([[row[i] == row[j] for i, j in ((0, 1), (0, 2), (1, 2))] for row in PARTITIONS])
    return np.argmax(np.all(same[..., None, :] == known, axis=-1), axis=-1)
