"""Results of the functions in diffprivlib.tools."""

from collections.abc import Sequence
from math import exp, expm1, log
from typing import Any

import jax.numpy as jnp
import numpy as np

from dpjax._util.spelling import names_arguments
from dpjax._util.validation import check_array, check_flag, check_moderate, check_positive_number, fail
from dpjax.adapters.arguments import Bounds, quantile_within, read_n, read_range, read_square, read_value
from dpjax.base import Statistic
from dpjax.mechanisms.additive import Laplace
from dpjax.mechanisms.censored import Censored
from dpjax.mechanisms.discrete import DiscreteLaplace
from dpjax.mechanisms.truncated import Truncated
from dpjax.numerics.next_floats import next_above
from dpjax.release import Release
from dpjax.release.releases.variance import variance
from dpjax.statistics import histogram, linear, mean, total
from dpjax.statistics.base import as_increasing

__all__ = [
    "read_count",
    "read_histogram",
    "read_mean",
    "read_quantile",
    "read_std",
    "read_sum",
    "read_var",
]

EPSILON = "Pass the epsilon of the call, not what is left of a budget."

BISECTIONS = 100
"""More than halvings of an interval of floats."""


@names_arguments
def read_mean(value: float, bounds: Bounds, *, field: str, epsilon: float, n: int) -> Release:
    """The release of ``tools.mean``: Laplace noise on the mean of clipped values, clamped to their bounds.

    Parameters
    ----------
    value
        The published mean.
    bounds
        The ``bounds`` of the call.
    field
        The record field [].
    epsilon
        The ``epsilon`` of the call; with an ``axis``, divided by the number of means.
    n
        The public number of records.

    Returns
    -------
    Release
        The release of a `dpjax.statistics.mean`, by `Censored` Laplace noise: a value at a bound is one at or
        beyond it.

    Raises
    ------
    TypeError, ValueError
        If the value is not within the bounds, they are not two increasing numbers, ε is not positive, or n is no
        number.

    Examples
    --------
    >>> from dpjax.adapters.diffprivlib import read_mean
    >>> read_mean(41.3, (0, 100), field="age", epsilon=1.0, n=200).mechanism.mechanism.scale
    0.5
    """
    lower, upper = read_range(bounds)
    number, budget = read_n(n), read_epsilon(epsilon)
    noise = Censored(Laplace((upper - lower) / number / budget), lower, upper)
    return Release(read_value(value), noise, mean(field, number, lower, upper), number)


@names_arguments
def read_sum(value: float, bounds: Bounds, *, field: str, epsilon: float, n: int, integer: bool = False) -> Release:
    """The release of ``tools.sum``: noise on the sum of clipped values, clamped to n times their bounds.

    Parameters
    ----------
    value
        The published sum.
    bounds
        The ``bounds`` of the call.
    field
        The record field [].
    epsilon
        The ``epsilon`` of the call; with an ``axis``, divided by the number of sums.
    n
        The public number of records.
    integer
        Whether the call had ``dtype=int``, by which the noise is geometric; without, it is Laplace noise for integers
        too.

    Returns
    -------
    Release
        Of a `dpjax.statistics.total`, by `dpjax.mechanisms.Censored` noise.

    Raises
    ------
    TypeError, ValueError
        As in `read_mean`, or if bounds of an integer sum are not whole numbers.

    Examples
    --------
    >>> from dpjax.adapters.diffprivlib import read_sum
    >>> read_sum(310, (0, 10), field="visits", epsilon=2.0, n=60, integer=True).mechanism.mechanism
    DiscreteLaplace(scale=5.0, privacy=None)
    """
    lower, upper = read_range(bounds)
    number, budget = read_n(n), read_epsilon(epsilon)
    check_flag("integer", integer, "Say whether the call had dtype=int.")
    if integer and not (lower.is_integer() and upper.is_integer()):
        fail("bounds", bounds, "whole numbers for an integer sum", "Leave integer out if the call had no dtype=int.")
    noise = (DiscreteLaplace if integer else Laplace)((upper - lower) / budget)
    limited = Censored(noise, number * lower, number * upper)
    return Release(read_value(value), limited, total(field, lower, upper), number)


@names_arguments
def read_count(value: int, statistic: Statistic, *, epsilon: float, n: int) -> Release:
    """The release of ``tools.count_nonzero``: geometric noise on the count, clamped to 0, ..., n.

    Parameters
    ----------
    value
        The published count.
    statistic
        The function of one record that is [1.0] if it counts and [0.0] if it does not; of a field of zeros and
        ones, ``dpjax.statistics.total(field, 0, 1)``.
    epsilon
        The ``epsilon`` of the call.
    n
        The public number of records.

    Returns
    -------
    Release
        Of the statistic, by `dpjax.mechanisms.Censored` noise.

    Raises
    ------
    TypeError, ValueError
        If the value is not from 0 to n, ε is not positive, or n is not known.

    Examples
    --------
    >>> from dpjax.adapters.diffprivlib import read_count
    >>> import dpjax
    >>> smokers = read_count(31, dpjax.statistics.total("smokes", 0, 1), epsilon=0.5, n=200)
    >>> smokers.mechanism.mechanism
    DiscreteLaplace(scale=2.0, privacy=None)
    """
    number, budget = read_n(n), read_epsilon(epsilon)
    return Release(read_value(value), Censored(DiscreteLaplace(1 / budget), 0, number), statistic, number)


@names_arguments
def read_histogram(counts: Sequence[int], edges: Sequence[float], *, field: str, epsilon: float, n: Any) -> Release:
    """The release of ``tools.histogram`` without ``density``: geometric noise on each count, negative ones set to 0.

    Parameters
    ----------
    counts : [k]
        The published counts.
    edges : [k + 1]
        The published edges, which must not come from the records: the call had ``range``, or edges for ``bins``.
    field
        The record field [].
    epsilon
        The ``epsilon`` of the call, which each count has to itself.
    n
        The public number of records, or `dpjax.UnknownCount`: the library publishes none.

    Returns
    -------
    Release
        The release of counts in the bins, the last of which has both of its edges; records beyond them are in none.

    Raises
    ------
    TypeError, ValueError
        If there is not one count a bin, counts are not whole numbers from 0 on, as those of ``density=True`` are not,
        or edges are not increasing.

    Examples
    --------
    >>> from dpjax.adapters.diffprivlib import read_histogram
    >>> release = read_histogram([12, 31, 7], [0.0, 10.0, 20.0, 30.0], field="age", epsilon=1.0, n=50)
    >>> release.statistic.dimension
    3
    """
    ends = as_increasing("edges", edges, "Pass the edges that the call returned.", least=2)
    remedy = "Pass the counts of a call without density; a density has lost its scale."
    check_array("counts", counts, lambda array: (array >= 0) & (array == np.round(array)), "whole numbers >= 0", remedy)
    if np.shape(counts) != (len(ends) - 1,):
        fail("counts", f"shape {list(np.shape(counts))}", f"shape [{len(ends) - 1}], one a bin", remedy)
    noise = Censored(DiscreteLaplace(1 / read_epsilon(epsilon)), 0, None)
    return Release(jnp.asarray(counts, jnp.result_type(float)), noise, bins_within(field, ends), n)


@names_arguments
def read_quantile(
    value: float,
    probability: float,
    bounds: Bounds,
    *,
    field: str,
    epsilon: float,
    n: int,
    num_bins: int,
) -> Release:
    """The release of ``tools.quantile``, ``percentile`` or ``median``: `dpjax.releases.interval_quantile`.

    Parameters
    ----------
    value
        The published quantile.
    probability
        The ``quant`` of the call: 0.5 for a median, a percentile divided by 100.
    bounds
        The ``bounds`` of the call.
    field
        The record field [].
    epsilon
        The ``epsilon`` of the call, divided by the number of quantiles that it asked for.
    n
        The public number of records.
    num_bins
        The number of bins on which records are counted, as in `dpjax.releases.interval_quantile`.

    Raises
    ------
    TypeError, ValueError
        As in `read_mean`, or if the probability is not strictly between 0 and 1.

    Examples
    --------
    >>> from dpjax.adapters.diffprivlib import read_quantile
    >>> read_quantile(41.3, 0.5, (0, 100), field="age", epsilon=1.0, n=200, num_bins=50).mechanism.sensitivity
    1.0
    """
    return quantile_within(value, probability, bounds, n, field=field, epsilon=read_epsilon(epsilon), num_bins=num_bins)


@names_arguments
def read_var(value: float, bounds: Bounds, *, field: str, epsilon: float, n: int) -> Release:
    """The release of ``tools.var``: Laplace noise on the variance of clipped values, drawn anew until it is possible.

    Parameters
    ----------
    value
        The published variance.
    bounds
        The ``bounds`` of the call.
    field
        The record field [].
    epsilon
        The ``epsilon`` of the call; with an ``axis``, divided by the number of variances.
    n
        The public number of records.

    Returns
    -------
    Release
        `dpjax.releases.variance` of divisor n, by `dpjax.mechanisms.Truncated` Laplace noise from 0 to a quarter of the
        squared width of the bounds.

    Raises
    ------
    TypeError, ValueError
        As in `read_mean`, or if the value is not a possible variance.

    Notes
    -----
    Noise that is drawn anew needs more of it (Holohan, Antonatos, Braghin and Mac Aonghusa 2020). The scale s solves s
    (ε − log Δ(s)) = Δ, where Δ = (upper − lower)² (n − 1) / n². Δ(s) bounds how far one record moves the probability of
    a draw that is kept.

    Examples
    --------
    >>> from dpjax.adapters.diffprivlib import read_var
    >>> round(read_var(210.0, (0, 100), field="age", epsilon=1.0, n=200).mechanism.on_variance.mechanism.scale, 1)
    80.2
    """
    lower, upper = read_range(bounds)
    number, budget = read_n(n, least=2), read_epsilon(epsilon)
    most, moved = (upper - lower) ** 2 / 4, ((upper - lower) / number) ** 2 * (number - 1)
    noise = Truncated(Laplace(redrawn_scale(budget, moved, most)), 0.0, most)
    return variance(read_value(value), noise, field=field, lower=lower, upper=upper, n=number)


@names_arguments
def read_std(value: float, bounds: Bounds, *, field: str, epsilon: float, n: int) -> Release:
    """The release of ``tools.std``, which is the square root of ``tools.var``: `read_var` of its square.

    Parameters
    ----------
    value
        The published standard deviation.
    bounds
        The ``bounds`` of the call.
    field
        The record field [].
    epsilon
        The ``epsilon`` of the call.
    n
        The public number of records.

    Raises
    ------
    TypeError, ValueError
        As in `read_var`, or if the value is negative.

    Examples
    --------
    >>> from dpjax.adapters.diffprivlib import read_std
    >>> round(float(read_std(14.5, (0, 100), field="age", epsilon=1.0, n=200).value[0]), 2)
    210.25
    """
    return read_var(read_square(value), bounds, field=field, epsilon=epsilon, n=n)


def redrawn_scale(epsilon: float, moved: float, width: float) -> float:
    """The scale of Laplace noise drawn anew until a value lies within an interval, by bisection.

    Solvers that ask for a change of sign fail for small ε, at which rounding hides it.
    """

    def needed(scale: float) -> float:
        kept = (2 - exp(-moved / scale) - exp(-(width - moved) / scale)) / -expm1(-width / scale)
        return moved / (epsilon - log(kept))

    low = moved / epsilon
    high = needed(low)
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if needed(middle) >= middle else (low, middle)
    return (low + high) / 2


def bins_within(field: str, edges: tuple[float, ...]) -> Statistic:
    """The counts of a field in bins, of which the last has its upper edge too; records beyond are not counted."""
    beyond = next_above(edges[-1], np.float32)  # also above the edge in float32
    all_bins = histogram(field, [edges[0] - 1.0, *edges[:-1], beyond, beyond + 1.0])
    return linear(all_bins, np.eye(len(edges) + 1)[1:-1])


def read_epsilon(epsilon: Any) -> float:
    """A positive ε, or an error."""
    check_positive_number("epsilon", epsilon, EPSILON)
    check_moderate("epsilon", epsilon)
    return float(epsilon)
