"""A published variance with noise on it."""

from typing import Any

from dpjax._util.spelling import names_arguments
from dpjax._util.validation import check_count, fail
from dpjax.mechanisms.base import Mechanism
from dpjax.mechanisms.noisy_variance import NoisyVariance, check_on_variance
from dpjax.release.checks import as_vector
from dpjax.release.summed import Release
from dpjax.statistics.powers import powers

__all__ = ["variance"]


@names_arguments
def variance(
    value: Any,
    noise: Mechanism,
    *,
    field: str,
    lower: float,
    upper: float,
    n: int,
    degrees: int | None = None,
) -> Release:
    """The release of the variance of a clamped field, with noise on the variance itself.

    Parameters
    ----------
    value
        The published variance; of a published standard deviation the square.
    noise
        The noise on the variance: such as `dpjax.Laplace`, or that in `Truncated`, if it was drawn anew until
        the variance was positive.
    field
        The record field [].
    lower
        The lower bound to which values were clamped.
    upper
        The upper bound.
    n
        The public number of records.
    degrees
        What the sum of squared deviations was divided by, n or n − 1; n by default.

    Returns
    -------
    Release
        Of `dpjax.statistics.powers`, by `dpjax.mechanisms.NoisyVariance`.

    Raises
    ------
    TypeError, ValueError
        If the value is not one number that the noise can lead to, the bounds are not in order, or n is no number.

    Notes
    -----
    Of a variance that follows from separate noisy sums, release the sums: `dpjax.joint` of a `dpjax.Release` of each.

    Examples
    --------
    >>> import dpjax
    >>> spread = dpjax.releases.variance(4.1, dpjax.Laplace(0.5), field="y", lower=0.0, upper=10.0, n=80, degrees=79)
    >>> spread.statistic.dimension
    2
    """
    vector = as_vector("value", value, "Pass the published variance.")
    if len(vector) != 1:
        fail("value", f"{len(vector)} numbers", "one variance", "Give each variance a release, and join them.")
    check_on_variance("noise", noise)
    number = check_count("n", n, "Pass the public number of records: the variance depends on it.", least=2)
    return Release(
        vector,
        NoisyVariance(noise, number, number if degrees is None else degrees),
        powers(field, lower, upper),
        number,
    )
