"""The best linear unbiased estimate of a table, for comparison: it may be negative and is not whole."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg, sparse

from dpjax._util.spelling import names_arguments
from dpjax._util.validation import fail, name_of
from dpjax.base import Model, Records
from dpjax.data_augmentation.counts.sums import contributions_of_cells
from dpjax.mechanisms.base import parts_of, variance_of
from dpjax.models.checks import check_fit
from dpjax.release import Release
from dpjax.release.summed import noisy_sum_of
from dpjax.release.unknown_count import is_unknown
from dpjax.statistics.base import statistic_at

__all__ = ["estimate_counts", "least_squares", "solve_blocks", "sums_of", "variances_of"]

MAX_BLOCK = 4_096
"""Largest number of unknowns solved for at once: their matrix takes up to 128 MiB."""

TOLERANCE = 1e-9


class LeastSquaresEstimate(NamedTuple):
    """Estimates of unknowns, and their variances.

    Attributes
    ----------
    value
        The estimates [c].
    variance
        Their variances [c], infinite if the sums leave an estimate open.

    Examples
    --------
    >>> import dpjax, numpy as np
    >>> release = dpjax.Release([4.0, 9.0], dpjax.Gaussian(2.0), dpjax.statistics.cells("cell", 2), n=11)
    >>> dpjax.data_augmentation.least_squares(dpjax.models.categorical(np.ones(2)), release).variance
    array([2., 2.])
    """

    value: np.ndarray
    variance: np.ndarray


@names_arguments
def least_squares(model: Model, release: Release) -> LeastSquaresEstimate:
    """The best linear unbiased estimate of how many records take each possible value, and its variance.

    It minimizes the sum of squared residuals over their variances, with exact sums and a known number of records held.
    Estimates may be negative and are not whole. Compare them with `sample` and `counts`.

    Parameters
    ----------
    model
        A model whose records take finitely many values, `Model.support`, in the order of the estimate.
    release
        Noisy sums of a table, or several of them by `dpjax.joint`, with noise of known variance.

    Returns
    -------
    Estimate
        ``value`` [c] and ``variance`` [c], which is infinite if the sums leave a count open.

    Raises
    ------
    TypeError, ValueError
        If model and release do not fit, the release is no noisy sum, or more than 4,096 counts hang together.

    Examples
    --------
    >>> import dpjax, numpy as np
    >>> cells = dpjax.Release([3, -1, 7, 41], dpjax.DiscreteGaussian(4.0), dpjax.statistics.cells("cell", 4), n=50)
    >>> rows = dpjax.Release([5, 45], dpjax.Exact(), dpjax.statistics.grouped("cell", [0, 0, 1, 1]), n=50)
    >>> found = dpjax.data_augmentation.least_squares(dpjax.models.categorical(np.ones(4)), dpjax.joint(cells, rows))
    >>> found.value.round(3)
    array([ 4.5,  0.5,  5.5, 39.5])
    """
    check_fit(model, release)
    if noisy_sum_of(release) is None:
        given = f"a {type(release).__name__} of {name_of(release.mechanism)}"
        fail("release", given, "a noisy sum", "Use tables, histograms and joint releases of them.", error=TypeError)
    domain = model.domain
    if not domain.is_finite:
        given = "a model whose records are not of finitely many kinds"
        fail("model", given, "a model with a support", "Use dpjax.sample.")
    variance = variances_of(release.mechanism, release.value.size)
    if np.any(np.isnan(variance)):
        given = f"a release by {name_of(release.mechanism)}"
        fail("release", given, "noise of known variance, such as Laplace noise", "Use dpjax.sample.")
    return estimate_counts(release, sums_of(release, domain()), variance)


def estimate_counts(release: Release, matrix: sparse.csr_array, variance: np.ndarray) -> LeastSquaresEstimate:
    """Least squares [c] on those sums, rows of the matrix [d, c], whose variance [d] is known."""
    usable = np.isfinite(variance)
    total = None if is_unknown(release) else release.n
    return solve_blocks(matrix[usable], np.asarray(release.value, float)[usable], variance[usable], total)


def sums_of(release: Release, support: Records) -> sparse.csr_array:
    """The matrix [d, c] of what a record of each possible kind adds to each released number."""
    size = len(release.value)
    statistic = statistic_at(release.statistic, release.value)
    return contributions_of_cells(statistic, support, size, release.value.dtype).matrix


def variances_of(mechanism: Any, size: int) -> np.ndarray:
    """The variance [d] of the noise of each released number; NaN where it is not known."""
    variances = np.full(size, np.nan)
    for part, where in parts_of(mechanism, size):
        variance = variance_of(part)
        if variance is not None:
            variances[where] = variance
    return variances


def solve_blocks(
    matrix: sparse.csr_array, value: np.ndarray, variance: np.ndarray, total: float | None = None
) -> LeastSquaresEstimate:
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
        Σ c, if it is known. It is used if the sums leave nothing open.

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
        return LeastSquaresEstimate(estimate, variances)
    return LeastSquaresEstimate(
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
