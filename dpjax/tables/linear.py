"""The best linear unbiased estimate of a table: what is compared with, as it knows neither signs nor whole numbers."""

from typing import Any

import numpy as np
from scipy import sparse

from dpjax.base import Model, Records
from dpjax.mechanisms import DiscreteGaussian, DiscreteLaplace, Exact, Gaussian, Laplace
from dpjax.mechanisms.base import parts_of
from dpjax.models.fit import check_fit
from dpjax.numerics.least_squares import Estimate, solve_blocks
from dpjax.release import Release
from dpjax.release.unknown import is_unknown
from dpjax.tables.sums import contributions_of_cells
from dpjax.validation import fail, name_of

__all__ = ["estimate_counts", "least_squares", "sums_of", "variances_of"]

VARIANCES = {
    Exact: lambda mechanism: 0.0,
    Laplace: lambda mechanism: 2 * np.square(mechanism.scale),
    Gaussian: lambda mechanism: np.square(mechanism.scale),
    DiscreteLaplace: lambda mechanism: 0.5 / np.square(np.sinh(0.5 / np.asarray(mechanism.scale))),
    DiscreteGaussian: lambda mechanism: np.square(mechanism.scale),
}
"""The variance of the noise of each mechanism; that of others is not known here."""


def least_squares(release: Release, model: Model) -> Estimate:
    """The best linear unbiased estimate of how many records take each possible value, and its variance.

    It minimizes the sum of squared residuals over their variances, with exact sums and a known number of records held.
    Estimates may be negative and are not whole: it is what `sample` with `counts` is to be compared with.

    Parameters
    ----------
    release
        Noisy sums of a table, or several of them by `dpjax.joint`, with noise of known variance.
    model
        A model whose records take finitely many values, `Model.support`, in the order of the estimate.

    Returns
    -------
    Estimate
        ``value`` [c] and ``variance`` [c], which is infinite where the sums leave a count open.

    Raises
    ------
    TypeError, ValueError
        If model and release do not fit, the release is no noisy sum, or more than 4,096 counts hang together.

    Examples
    --------
    >>> import dpjax, numpy as np
    >>> cells = dpjax.Release([3, -1, 7, 41], dpjax.DiscreteGaussian(4.0), dpjax.statistics.cells("cell", 4), n=50)
    >>> rows = dpjax.Release([5, 45], dpjax.Exact(), dpjax.statistics.grouped("cell", [0, 0, 1, 1]), n=50)
    >>> found = least_squares(dpjax.joint(cells, rows), dpjax.models.categorical(np.ones(4)))
    >>> found.value.round(3)
    array([ 4.5,  0.5,  5.5, 39.5])
    """
    check_fit(model, release)
    if not isinstance(release, Release) or not release.is_noisy_sum:
        given = f"a {type(release).__name__} of {name_of(release.mechanism)}"
        fail("release", given, "a noisy sum", "Use tables, histograms and joint releases of them.", error=TypeError)
    if model.support is None:
        given = "a model whose records are not of finitely many kinds"
        fail("model", given, "a model with a support", "Use dpjax.sample.")
    variance = variances_of(release.mechanism, release.value.size)
    if np.any(np.isnan(variance)):
        known = [kind.__name__ for kind in VARIANCES]
        fail("release", f"a release by {name_of(release.mechanism)}", f"noise of {known}", "Use dpjax.sample.")
    return estimate_counts(release, sums_of(release, model.support()), variance)


def estimate_counts(release: Release, matrix: sparse.csr_array, variance: np.ndarray) -> Estimate:
    """Least squares [c] on those sums, rows of the matrix [d, c], whose variance [d] is known."""
    usable = np.isfinite(variance)
    total = None if is_unknown(release) else release.n
    return solve_blocks(matrix[usable], np.asarray(release.value, float)[usable], variance[usable], total)


def sums_of(release: Release, support: Records) -> sparse.csr_array:
    """The matrix [d, c] of what a record of each possible kind adds to each released number."""
    size = len(release.value)
    return contributions_of_cells(release.statistic, support, size, release.value.dtype).matrix


def variances_of(mechanism: Any, size: int) -> np.ndarray:
    """The variance [d] of the noise of each released number; NaN where it is not known."""
    variances = np.full(size, np.nan)
    for part, where in parts_of(mechanism, size):
        if type(part) in VARIANCES:
            variances[where] = VARIANCES[type(part)](part)
    return variances
