"""Linear combinations of sums, published with noise that was added before or after they were combined."""

from typing import Any, Literal

import jax.numpy as jnp
import numpy as np

from dpjax._util.spelling import names_arguments
from dpjax._util.validation import check_choice, fail, name_of
from dpjax.base import Array, Statistic
from dpjax.mechanisms.base import Mechanism, as_mechanism, parts_of
from dpjax.mechanisms.multivariate import MultivariateGaussian
from dpjax.release.checks import as_vector, check_mechanism
from dpjax.release.releases.published import print_error, rounding
from dpjax.release.summed import Release
from dpjax.statistics.linear import linear as combine, read_matrix

CONSISTENT = 1e-5
"""How far published numbers may be from combinations of some sums, against the largest of them."""


@names_arguments
def linear(
    value: Array,
    mechanism: Mechanism | Any,
    statistic: Statistic,
    matrix: Any,
    n: Any,
    *,
    noise: Literal["before", "after"] = "before",
) -> Release:
    """The release of a matrix times sums, if noise was added before or after they were combined.

    Parameters
    ----------
    value : [m]
        What was published: ``matrix @ (sums + noise)``, or ``matrix @ sums + noise``.
    mechanism
        The noise: of each of the d sums, or of each of the m combinations.
    statistic
        The function ``record -> [d]`` of one record.
    matrix : [m, d]
        One row for each published number.
    n
        The public number of records, as in `dpjax.Release`.
    noise
        ``"before"``: the sums were given noise, and what was published is post-processed, such as contrasts of a noisy
        table. ``"after"``: the combinations were given noise, as the queries of a matrix mechanism or the nodes of a
        tree of ranges.

    Returns
    -------
    Release
        With noise before, of a matrix whose columns are linearly independent: the noisy sums themselves, which follow.
        If the rows are independent: `MultivariateGaussian` noise on the combinations (`dpjax.statistics.linear`),
        if the noise was Gaussian. With noise after: the mechanism on the combinations.

    Raises
    ------
    TypeError, ValueError
        If shapes do not fit. With noise before: if the numbers contradict each other, or neither rows nor columns are
        independent, or the rows are and the noise is not Gaussian. If `dpjax.Release` rejects its part.

    Notes
    -----
    Sums that follow are known to the rounding of floats, and to half of the last decimal that was published. Within
    that of a bound of `Censored`, or of a whole number under integer noise, they are taken to be there. So the
    last decimal is to be far below the noise. Whole numbers are taken for exact ones.

    Examples
    --------
    >>> import dpjax
    >>> table, contrasts = dpjax.statistics.cells("cell", 3), [[1.0, -1.0, 0.0], [0.0, 1.0, -1.0]]
    >>> release = dpjax.releases.linear([3.1, -2.5], dpjax.Gaussian(2.0), table, contrasts, n=40)
    >>> release.mechanism.covariance.tolist()
    [[8.0, -4.0], [-4.0, 8.0]]
    """
    rows, vector = read_matrix(matrix), as_vector("value", value, "Pass the published numbers, one for each row.")
    if vector.shape != rows.shape[:1]:
        remedy = "Pass one number for each row of the matrix."
        fail("value", f"shape {list(vector.shape)}", f"shape [{len(rows)}]", remedy)
    combined = combine(statistic, matrix)
    check_choice("noise", noise, ("before", "after"), "Say whether noise was added before sums were combined.")
    if noise == "after":
        return Release(vector, mechanism, combined, n)
    mechanism, rank = as_mechanism(mechanism), np.linalg.matrix_rank(rows)
    if rank == rows.shape[1]:
        return Release(jnp.asarray(solve_sums(rows, value, mechanism), vector.dtype), mechanism, statistic, n)
    if rank < len(rows):
        given = f"a matrix of rank {rank} and shape {list(rows.shape)}"
        fail("matrix", given, "independent rows or columns", "Leave out rows that follow from the others.")
    return Release(vector, combine_noise(rows, mechanism), combined, n)


def solve_sums(rows: np.ndarray, published: Any, mechanism: Any) -> np.ndarray:
    """The noisy sums [d] of which the published numbers [m] are combinations, or an error if they are those of none."""
    check_mechanism("mechanism", mechanism, (rows.shape[1],))
    value = np.atleast_1d(np.asarray(published, float))
    sums = np.linalg.lstsq(rows, value)[0]
    absolute, columns = np.abs(rows), rows.shape[1]
    # Least squares rounds each number as the largest term of all.
    error = print_error(published) + columns * rounding(published) * np.max(absolute @ np.abs(sums) + np.abs(value))
    sum_error = np.abs(np.linalg.pinv(rows)).sum(axis=1) * error
    sums = mechanism._to_atoms(sums, sum_error)
    for part, where in parts_of(mechanism, columns):
        if part.integer_noise:
            sums[where] = np.round(sums[where])
    # Least squares may leave that much of the errors, and to_atoms may add as much again.
    allowed = np.maximum(CONSISTENT * max(np.max(np.abs(value)), 1.0), error + 2 * absolute @ sum_error)
    if np.any(np.abs(rows @ sums - value) > allowed):
        remedy = "If each combination was given noise of its own, pass noise='after'."
        fail("value", "numbers that contradict each other", "combinations of the same noisy sums", remedy)
    return sums


def combine_noise(rows: np.ndarray, mechanism: Mechanism) -> MultivariateGaussian:
    """The noise of combinations with independent rows, of sums with Gaussian noise."""
    covariance = mechanism._normal_covariance(rows.shape[1])
    if covariance is None:
        remedy = "The combinations of other noise have no known density: look for the noisy sums themselves."
        fail("mechanism", name_of(mechanism), "Gaussian noise, as there are fewer numbers than sums", remedy)
    if covariance.shape[0] != rows.shape[1]:
        given = f"a covariance of shape {list(covariance.shape)}"
        fail("mechanism", given, f"shape [{rows.shape[1]}, {rows.shape[1]}]", "It is the noise of the sums.")
    return MultivariateGaussian(jnp.asarray(rows @ covariance @ rows.T))
