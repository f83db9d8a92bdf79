"""Least squares for counts of which noisy and exact sums were published."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy import linalg, sparse

from dpjax.validation import fail

__all__ = ["Estimate", "solve_blocks"]

MAX_BLOCK = 4_096
"""Unknowns that are solved for at once: their matrix takes up to 128 MiB."""

TOLERANCE = 1e-9


class Estimate(NamedTuple):
    """Estimates of unknowns, and their variances.

    Attributes
    ----------
    value
        The estimates [c].
    variance
        Their variances [c], infinite where the sums leave an estimate open.

    Examples
    --------
    >>> import dpjax, numpy as np
    >>> release = dpjax.Release([4.0, 9.0], dpjax.Gaussian(2.0), dpjax.statistics.cells("cell", 2), n=11)
    >>> dpjax.least_squares(release, dpjax.models.categorical(np.ones(2))).variance
    array([2., 2.])
    """

    value: np.ndarray
    variance: np.ndarray


def solve_blocks(
    matrix: sparse.csr_array, value: np.ndarray, variance: np.ndarray, total: float | None = None
) -> Estimate:
    """The minimizer of Σ (value − matrix c)² / variance over real c with the exact sums and total that are known.

    It is the best linear unbiased estimate, negative counts included; of several minimizers a short one.

    Parameters
    ----------
    matrix : [d, c]
        The sums.
    value : [d]
        What was published.
    variance : [d]
        The variance of its noise; 0 of exact sums.
    total
        Σ c, where it is known. It is used where the sums leave nothing open.

    Raises
    ------
    ValueError
        If more than 4,096 unknowns hang together.

    Notes
    -----
    Unknowns that share a sum are solved for together, by dense matrices, and apart from others. The total, which all
    share, is put in afterwards: c + V 1 (total − 1ᵀ c) / 1ᵀ V 1 with V the covariance without it. Cumings-Menon et al.
    (2024, arXiv:2404.13164) use the structure of a tree instead.
    """
    estimate, variances, with_total = (np.zeros(matrix.shape[1]) for _ in range(3))
    for rows, unknowns in blocks_of(matrix):
        block = matrix[rows][:, unknowns].toarray()
        estimate[unknowns], covariance, is_open = solve(block, value[rows], variance[rows])
        variances[unknowns] = np.where(is_open, np.inf, np.diag(covariance))
        with_total[unknowns] = covariance.sum(axis=1)
    spread = with_total.sum()
    if total is None or not np.all(np.isfinite(variances)) or spread <= TOLERANCE * (1 + variances.sum()):
        return Estimate(estimate, variances)
    return Estimate(
        estimate + with_total * (total - estimate.sum()) / spread,
        np.maximum(variances - with_total**2 / spread, 0.0),
    )


def blocks_of(matrix: sparse.csr_array) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The rows and columns of the blocks into which a matrix falls apart."""
    num_rows = matrix.shape[0]
    graph = sparse.block_array([[None, matrix], [matrix.T, None]], format="csr")
    number, labels = sparse.csgraph.connected_components(graph, directed=False)
    sizes = np.bincount(labels, minlength=number)
    for members in np.split(np.argsort(labels, kind="stable"), np.cumsum(sizes)[:-1]):
        rows, columns = members[members < num_rows], members[members >= num_rows] - num_rows
        if len(columns) > MAX_BLOCK:
            given = f"{len(columns)} counts that hang together"
            fail("matrix", given, f"at most {MAX_BLOCK:,}", "Leave out sums of all counts, or coarsen the table.")
        if len(columns):
            yield rows, columns


def solve(matrix: np.ndarray, value: np.ndarray, variance: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The estimate [c], its covariance [c, c] in the directions that are determined, and which are open [c]."""
    exact = variance == 0
    start = np.zeros(matrix.shape[1])
    free = np.eye(matrix.shape[1])
    if np.any(exact):
        start = linalg.lstsq(matrix[exact], value[exact])[0]
        free = linalg.null_space(matrix[exact])
    weighted = (matrix[~exact] / np.sqrt(variance[~exact])[:, None]) @ free
    residual = (value - matrix @ start)[~exact] / np.sqrt(variance[~exact])
    precision, directions = linalg.eigh(weighted.T @ weighted) if free.size else (np.zeros(0), np.zeros((0, 0)))
    known = precision > TOLERANCE * np.max(precision, initial=0.0)
    moves = free @ directions
    covariance = (moves[:, known] / precision[known]) @ moves[:, known].T
    is_open = np.sum(moves[:, ~known] ** 2, axis=1) > TOLERANCE
    return start + covariance @ (free @ (weighted.T @ residual)), covariance, is_open
