"""Means of PipelineDP, and of Google's differential privacy library and PyDP beneath it; none of them is imported.

They publish mean = middle + u / max(1, w). Here u is the noisy sum of the clamped values less the middle of their
bounds, and w is the noisy count. So mean × count is no noisy sum of the values with noise of its own: the noise of the
count is in it, times the middle.

Sources: ``compute_dp_mean`` and ``_compute_mean_for_normalized_sum`` in pipeline_dp/dp_computations.py (OpenMined), and
``BoundedMean::GenerateResult`` in cc/algorithms/bounded-mean.h (Google). Each of the two mechanisms has half of the
budget. The L0 sensitivity is the number of partitions. The L∞ sensitivity is the number of contributions, for the sum
times half of the width of the bounds.
"""

from math import sqrt
from typing import Any

import numpy as np

from dpjax._util.spelling import names_arguments
from dpjax._util.validation import check_array, check_choice, check_count, check_number, check_positive_number, fail
from dpjax.adapters.arguments import check_far_from_one, read_range
from dpjax.mechanisms import Gaussian, Independent, Laplace, gaussian_scale, laplace_scale
from dpjax.release import Release
from dpjax.release.releases.quotient import quotient
from dpjax.statistics import count as count_of, linear, stacked, total

__all__ = ["centred_sum", "noise_of", "read_mean"]

NOISES = ("laplace", "gaussian")


@names_arguments
def noise_of(
    epsilon: float,
    delta: float = 0.0,
    *,
    noise: str = "laplace",
    linf: float = 1.0,
    max_partitions_contributed: int = 1,
) -> Laplace | Gaussian:
    """The noise of one mechanism of these libraries, by its budget and its sensitivities.

    Parameters
    ----------
    epsilon
        The ε of this mechanism; of a mean the count and the sum have half each.
    delta
        Its δ, for Gaussian noise; 0 for Laplace noise.
    noise
        ``"laplace"`` or ``"gaussian"``.
    linf
        The L∞ sensitivity Δ∞: what one person can change in one partition.
    max_partitions_contributed
        The L0 sensitivity l: in how many partitions one person can be.

    Returns
    -------
    Laplace or Gaussian
        Laplace noise has the scale l Δ∞ / ε. Gaussian noise has the least deviation for √l Δ∞.

    Raises
    ------
    TypeError, ValueError
        If a number is not positive, or δ does not belong to the noise.

    Notes
    -----
    Google's library stops its search for the Gaussian deviation up to 0.1 % above the least one. Its noise lies on a
    fine grid, which is treated as continuous.

    Examples
    --------
    >>> from dpjax.adapters.pipelinedp import noise_of
    >>> noise_of(0.5, linf=2.0, max_partitions_contributed=3).scale
    12.0
    """
    check_choice("noise", noise, NOISES, "Pass the noise kind of the parameters.")
    check_positive_number("linf", linf)
    partitions = check_count("max_partitions_contributed", max_partitions_contributed)
    check_delta(delta)
    if noise == "gaussian":
        return Gaussian(gaussian_scale(epsilon, delta, sqrt(partitions) * linf))
    check_array("delta", delta, lambda number: number == 0, "0 for Laplace noise", "Pass noise='gaussian'.")
    return Laplace(laplace_scale(epsilon, partitions * linf))


@names_arguments
def centred_sum(mean: Any, count: Any, bounds: tuple[float, float]) -> np.ndarray:
    """The noisy sum of values less the middle of their bounds: (mean - middle) · max(1, count).

    Parameters
    ----------
    mean : [...]
        The published means.
    count : [...]
        The published noisy counts.
    bounds
        The least and the greatest value (lower, upper) to which values were clamped.

    Raises
    ------
    TypeError, ValueError
        If they are no finite numbers, or the bounds are not in order.

    Examples
    --------
    >>> from dpjax.adapters.pipelinedp import centred_sum
    >>> float(centred_sum(2.5, 40.0, bounds=(0.0, 4.0)))
    20.0
    """
    lower, upper = read_range(bounds)
    for name, value in {"mean": mean, "count": count}.items():
        check_array(name, value, np.isfinite, "finite numbers", "Pass what was published.")
    if np.shape(mean) != np.shape(count):
        given = f"shapes {list(np.shape(mean))} and {list(np.shape(count))}"
        fail("mean, count", given, "one count for each mean", "Pass both as they were published.")
    middle = lower + (upper - lower) / 2
    return (np.asarray(mean, float) - middle) * np.maximum(1.0, np.asarray(count, float))


@names_arguments
def read_mean(
    mean: float,
    count: float | None = None,
    *,
    field: str,
    bounds: tuple[float, float],
    epsilon: float,
    delta: float = 0.0,
    n: Any,
    noise: str = "laplace",
    max_partitions_contributed: int = 1,
    max_contributions_per_partition: int = 1,
) -> Release:
    """The release of a mean, with the noisy count if it was published, of one partition that was public.

    Parameters
    ----------
    mean
        The published mean.
    count
        The published noisy count; ``None`` if only the mean was.
    field
        The record field [] that was averaged; a record is one contribution.
    bounds
        The least and the greatest value (lower, upper) to which values were clamped.
    epsilon
        The ε of the mean, of which the count and the sum have half each.
    delta
        Its δ, likewise; 0 for Laplace noise.
    n
        The number of records, as in `dpjax.Release`: often a `dpjax.UnknownCount`.
    noise
        ``"laplace"`` or ``"gaussian"``.
    max_partitions_contributed
        In how many partitions one person can be.
    max_contributions_per_partition
        How many records one person can have in one.

    Returns
    -------
    Release
        Of the centred sum and the count, each with its noise; or of their quotient.

    Raises
    ------
    TypeError, ValueError
        If an argument is bad. Without a count, also in two further cases. The mean is at a bound, to which Google's
        library clamps it. Or n is so small against the noise that the noisy count may have been below 1.

    Examples
    --------
    >>> from dpjax.adapters.pipelinedp import read_mean
    >>> import dpjax
    >>> some = dpjax.UnknownCount(dpjax.models.UniformCount(20, 60))
    >>> release = read_mean(2.5, 40.3, field="y", bounds=(0.0, 4.0), epsilon=2.0, n=some)
    >>> [round(value, 2) for value in release.value.tolist()]
    [20.15, 40.3]
    """
    lower, upper = read_range(bounds)
    check_number("mean", mean)
    check_positive_number("epsilon", epsilon)
    check_delta(delta)
    contributions = check_count("max_contributions_per_partition", max_contributions_per_partition)
    sum_noise, count_noise = (
        noise_of(
            epsilon / 2,
            delta / 2,
            noise=noise,
            linf=contributions * half_width,
            max_partitions_contributed=max_partitions_contributed,
        )
        for half_width in ((upper - lower) / 2, 1.0)
    )
    middle = lower + (upper - lower) / 2
    centred = linear(stacked(total(field, lower, upper), count_of()), [[1.0, -middle]])
    if count is not None:
        check_number("count", count)
        value = np.stack([centred_sum(mean, count, bounds), np.asarray(count, float)])
        mechanism = Independent((sum_noise, count_noise), (1, 1))
        return Release(value, mechanism, stacked(centred, count_of()), n)  # type: ignore[arg-type]
    check_far_from_bounds(mean, bounds, n, float(count_noise.scale))
    return quotient(
        np.asarray([mean - middle]),  # type: ignore[arg-type]
        centred,
        count_of(),
        numerator_noise=sum_noise,
        denominator_noise=count_noise,
        n=n,
    )


def check_delta(delta: Any) -> None:
    """Raise unless δ is one number in [0, 1)."""
    check_number("delta", delta)
    check_array("delta", delta, lambda number: (number >= 0) & (number < 1), "a number in [0, 1)", "Pass the δ.")


def check_far_from_bounds(mean: float, bounds: tuple[float, float], n: Any, scale: float) -> None:
    """Raise if a mean may have been clamped, or divided by 1 in the place of a smaller count."""
    remedy = "A mean that was clamped to its bounds has another density: leave it out, or ask for the noisy count."
    lower, upper = bounds
    check_array("mean", mean, lambda value: (value > lower) & (value < upper), "a mean within its bounds", remedy)
    check_far_from_one(n, scale)
