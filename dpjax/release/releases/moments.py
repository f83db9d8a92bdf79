"""Means and variances that were computed from noisy sums and a noisy count, as of classes of a model or of a query."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from dpjax._util.spelling import names_arguments
from dpjax._util.validation import check_array, fail
from dpjax.base import Array, Statistic
from dpjax.mechanisms.base import Mechanism
from dpjax.mechanisms.composite import Independent
from dpjax.mechanisms.count_quotient import CountQuotient
from dpjax.release.checks import as_vector, check_mechanism
from dpjax.release.releases.published import print_error, rounding
from dpjax.release.releases.quotient import check_size
from dpjax.release.summed import Release
from dpjax.statistics import stacked

__all__ = ["moments"]


@names_arguments
def moments(
    mean: Array,
    variance: Array,
    count: Array | None,
    *,
    sums: Statistic,
    squares: Statistic,
    counts: Statistic,
    sum_noise: Mechanism,
    square_noise: Mechanism,
    count_noise: Mechanism,
    n: Any,
) -> Release:
    """The release of means and variances of k groups, made of noisy sums that were divided by noisy counts.

    Parameters
    ----------
    mean : [k]
        The published means: noisy sums over noisy counts.
    variance : [k]
        The published variances: noisy sums of squares over noisy counts, less the squares of the means. Of published
        standard deviations the squares.
    count : [k]
        The published noisy counts; ``None`` if they were kept secret.
    sums
        The statistic ``record -> [k]`` of the sums: the record's value in its own group, 0 in the others.
    squares
        The statistic ``record -> [k]`` of the sums of squares, likewise.
    counts
        The statistic ``record -> [k]`` of the counts, such as `dpjax.statistics.cells`.
    sum_noise
        The noise of the k sums: any mechanism that adds some. Without counts a `dpjax.Gaussian` or a `dpjax.Laplace`.
    square_noise
        That of the k sums of squares, likewise.
    count_noise
        That of the k counts. Without them integer noise, also clamped, as in `dpjax.mechanisms.CountQuotient`.
    n
        The public number of records, as in `dpjax.Release`.

    Returns
    -------
    Release
        The release of all 3 k noisy sums, which follow from what was published. Without counts that of 2 k quotients,
        by `dpjax.mechanisms.CountQuotient`.

    Raises
    ------
    TypeError, ValueError
        If counts are 0, or not as many numbers were published of each kind as its statistic has. If the counts are
        missing, and the noise is of another kind. If the means are missing.

    Notes
    -----
    With counts a linear map: no density but that of the noise enters. Numbers that were rounded for print give
    sums that are off by half of their last digit times the count, which is to be far below the noise. Within that of a
    bound of `dpjax.mechanisms.Censored`, or of a whole number under integer noise, sums are taken to be there.

    Examples
    --------
    >>> import dpjax
    >>> import jax.numpy as jnp
    >>> def powers(power):
    ...     def statistic(record):
    ...         return jnp.where(record["class"] == jnp.arange(2), jnp.clip(record["y"], 0.0, 1.0) ** power, 0.0)
    ...     statistic.dimension = 2
    ...     return statistic
    >>> release = dpjax.releases.moments(
    ...     [0.2, 0.7],
    ...     [0.02, 0.05],
    ...     [31, 68],
    ...     sums=powers(1),
    ...     squares=powers(2),
    ...     counts=dpjax.statistics.cells("class", 2),
    ...     sum_noise=dpjax.Laplace(1.0),
    ...     square_noise=dpjax.Laplace(1.0),
    ...     count_noise=dpjax.DiscreteLaplace(1.0),
    ...     n=100,
    ... )
    >>> release.value.shape
    (6,)
    """
    if mean is None or variance is None:
        name = "mean" if mean is None else "variance"
        remedy = "A variance alone has no density here, and a mean alone is dpjax.releases.quotient. Ask for the sums."
        fail(name, "None", "the published numbers", remedy, error=TypeError)
    vectors = {
        name: as_vector(name, value, "Pass one published number for each group.")
        for name, value in {"mean": mean, "variance": variance, "count": count}.items()
        if value is not None
    }
    *_, last = vectors
    size = len(vectors[last])
    for name, vector in vectors.items():
        if len(vector) != size:
            fail(name, f"shape {list(vector.shape)}", f"shape [{size}], as {last}", "Pass one number for each group.")
    statistics = {"sums": sums, "squares": squares, "counts": counts}
    for name, statistic in statistics.items():
        check_size(name, statistic, size, "one for each group", "Pass one sum for each group.")
    for name, noise in {"sum_noise": sum_noise, "square_noise": square_noise, "count_noise": count_noise}.items():
        check_mechanism(name, noise, (size,))
    every = stacked(*statistics.values())
    if count is None:
        quotients = jnp.concatenate([vectors["mean"], vectors["variance"] + vectors["mean"] ** 2])
        return Release(quotients, CountQuotient((sum_noise, square_noise), count_noise, size), every, n)
    check_array("count", vectors["count"], lambda array: array != 0, "numbers other than 0", "Leave empty groups out.")
    mechanism = Independent((sum_noise, square_noise, count_noise), (size,) * 3)
    value = mechanism._to_atoms(*noisy_sums(mean, variance, count))
    return Release(jnp.asarray(value, jnp.result_type(float)), mechanism, every, n)


def noisy_sums(mean: Any, variance: Any, count: Any) -> tuple[np.ndarray, np.ndarray]:
    """The noisy sums, sums of squares and counts [3 k] that were published, and how far each may be off."""
    means, variances, numbers = (np.atleast_1d(np.asarray(value, float)) for value in (mean, variance, count))
    value = np.concatenate([means * numbers, (variances + means**2) * numbers, numbers])
    of_means = print_error(mean) * np.abs(numbers)
    of_squares = print_error(variance) * np.abs(numbers) + (2 * np.abs(means) + print_error(mean)) * of_means
    printed = np.concatenate([of_means, of_squares, np.zeros(len(numbers))])
    return value, printed + max(map(rounding, (mean, variance))) * np.abs(value)
