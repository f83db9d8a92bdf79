"""Mechanisms, averages and quantiles of Tumult Analytics; that library itself is not imported."""

from collections.abc import Mapping
from math import sqrt
from typing import Any

import numpy as np

from dpjax._util.spelling import names_arguments
from dpjax._util.validation import (
    check_array,
    check_flag,
    check_number,
    check_positive_number,
    check_share,
    describe,
    fail,
)
from dpjax.adapters.arguments import check_far_from_one
from dpjax.mechanisms import Additive, Censored, DiscreteGaussian, DiscreteLaplace, Gaussian, Laplace
from dpjax.release import Release, mechanism_from_published
from dpjax.release.checks import check_mechanism
from dpjax.release.releases.quantiles import interval_quantile
from dpjax.release.releases.quotient import quotient
from dpjax.statistics import count, linear, stacked, total

__all__ = ["mechanism_from_tumult", "read_average", "read_quantile"]

CONVENTIONS = {
    "LAPLACE": "laplace_scale",
    "GEOMETRIC": "discrete_laplace_scale",
    "GAUSSIAN": "gaussian_variance",
    "DISCRETE_GAUSSIAN": "discrete_gaussian_squared_scale",
}
"""Its names of noise as conventions of dpjax. The parameter of geometric noise is the scale 1 / ε, not e^(−ε)."""


@names_arguments
def mechanism_from_tumult(noise: Mapping[str, Any]) -> Laplace | Gaussian | DiscreteLaplace | DiscreteGaussian:
    """The mechanism of one aggregate of a query.

    Parameters
    ----------
    noise
        ``{"noise_mechanism": ..., "noise_parameter": ...}``, as listed by a session of Tumult Analytics for a
        query; the mechanism is the member of its enumeration, or the member's name.

    Raises
    ------
    TypeError
        If it is not such a mapping.
    ValueError
        If the mechanism is not supported, such as the exponential mechanism, or the parameter is not positive.

    Examples
    --------
    >>> from dpjax.adapters.tumult import mechanism_from_tumult
    >>> mechanism_from_tumult({"noise_mechanism": "GEOMETRIC", "noise_parameter": 2})
    DiscreteLaplace(scale=2.0, privacy=None)
    """
    if not isinstance(noise, Mapping):
        expected = "a mapping with noise_mechanism and noise_parameter"
        fail("noise", repr(noise), expected, "Pass one entry of the list that the session gives.", error=TypeError)
    return read_noise("noise", noise)


def read_noise(argument: str, noise: Any) -> Any:
    """The mechanism of an entry, or the mechanism itself, or an error in the name of the argument."""
    if not isinstance(noise, Mapping):
        check_mechanism(argument, noise, (1,))
        return noise
    if not {"noise_mechanism", "noise_parameter"} <= noise.keys():
        expected = "a mapping with noise_mechanism and noise_parameter"
        fail(argument, repr(noise), expected, "Pass one entry of the list that the session gives.", error=TypeError)
    name = getattr(noise["noise_mechanism"], "name", noise["noise_mechanism"])
    if not isinstance(name, str) or name not in CONVENTIONS:
        remedy = "Only noise that is added to a sum can be read."
        fail("noise_mechanism", describe(name), f"one of {sorted(CONVENTIONS)}", remedy)
    check_positive_number("noise_parameter", noise["noise_parameter"], "Pass the entry as the session gives it.")
    return mechanism_from_published(CONVENTIONS[name], noise["noise_parameter"])


@names_arguments
def read_average(
    value: float,
    *,
    field: str,
    low: float,
    high: float,
    sum_noise: Any,
    count_noise: Any,
    n: Any,
    whole: bool = False,
) -> Release:
    """The release of a query's ``average`` of which neither the noisy sum nor the noisy count was published.

    Parameters
    ----------
    value
        The published average.
    field
        The record field [].
    low
        The ``low`` of the query.
    high
        The ``high`` of the query.
    sum_noise
        The noise of the sum: a mechanism, or an entry as in `mechanism_from_tumult`.
    count_noise
        That of the count, likewise.
    n
        The public number of records, or `dpjax.UnknownCount`.
    whole
        Whether the column is one of integers.

    Returns
    -------
    Release
        Of the sum of the values less the middle of their bounds, over the count, as in `dpjax.releases.quotient`. The
        count was set to 1 if it was below. Over a whole sum, where it is known to be far above, that is left out.

    Raises
    ------
    TypeError, ValueError
        If bounds are not in order, or noise is of another kind. If the column is one of integers, and n is so small
        against the noise that the noisy count may have been below 1, or the average is no fraction.

    Notes
    -----
    The middle of integers is rounded to the even one of two, by Python's ``round``. So in the source of Tumult Core.

    Examples
    --------
    >>> import dpjax
    >>> from dpjax.adapters.tumult import read_average
    >>> noise = {"sum_noise": dpjax.Laplace(20.0), "count_noise": dpjax.DiscreteLaplace(1.0)}
    >>> read_average(41.3, field="age", low=0.0, high=100.0, **noise, n=200).value.round(1).tolist()
    [-8.7]
    """
    for name, number in {"value": value, "low": low, "high": high}.items():
        check_number(name, number)
        check_array(name, number, np.isfinite, "a finite number", "Pass it as the query has it.")
    lower, upper = float(low), float(high)
    if lower >= upper:
        fail("low, high", f"{lower:g} and {upper:g}", "low < high", "Pass the bounds of the query.")
    check_flag("whole", whole)
    above, below = read_noise("sum_noise", sum_noise), read_noise("count_noise", count_noise)
    middle = lower + (upper - lower) / 2
    if whole:
        middle = round(middle)
        check_far_from_one(n, float(getattr(below, "scale", 1.0)))
    elif isinstance(below, Additive):
        below = Censored(below, lower=1.0)
    centred = linear(stacked(total(field, lower, upper), count()), [[1.0, -middle]])
    options = {"numerator_noise": above, "denominator_noise": below, "n": n}
    difference: Any = np.asarray([float(value) - middle])
    return quotient(difference, centred, count(), **options)


@names_arguments
def read_quantile(
    value: float,
    quantile: float,
    low: float,
    high: float,
    *,
    field: str,
    n: Any,
    num_bins: int,
    epsilon: float | None = None,
    rho: float | None = None,
) -> Release:
    """The release of a query's ``quantile`` or ``median``: `dpjax.releases.interval_quantile`.

    Parameters
    ----------
    value
        The published quantile.
    quantile
        The ``quantile`` of the query, strictly between 0 and 1; 0.5 for a median.
    low
        The ``low`` of the query.
    high
        The ``high`` of the query.
    field
        The record field [].
    n
        The public number of records, or `dpjax.UnknownCount`.
    num_bins
        The number of bins on which records are counted, as in `dpjax.releases.interval_quantile`.
    epsilon
        The part of a ``PureDPBudget`` that each group had, divided by how many of its rows one protected change moves.
    rho
        That of a ``RhoZCDPBudget``, divided by the square of that number, in its place.

    Returns
    -------
    Release
        With ε = √(8ρ) under a ``RhoZCDPBudget``.

    Raises
    ------
    TypeError, ValueError
        If not one budget is given, or a number is out of its range.

    Notes
    -----
    An interval between neighbouring values is drawn in proportion to its length times exp(−ε |k − α n| / 2Δ), where k
    values are below it and Δ = max(α, 1 − α). So in the source of Tumult Core.

    Examples
    --------
    >>> from dpjax.adapters.tumult import read_quantile
    >>> read_quantile(41.3, 0.25, 0, 100, field="age", n=200, num_bins=50, epsilon=1.0).mechanism.sensitivity
    0.75
    """
    budgets = {"epsilon": epsilon, "rho": rho}
    given = [name for name, budget in budgets.items() if budget is not None]
    if len(given) != 1:
        fail("epsilon, rho", " and ".join(given) or "neither", "one of the two", "Pass the budget of the query.")
    check_positive_number(given[0], budgets[given[0]], "Pass the budget of the query.")
    check_share("quantile", quantile, "The quantiles 0 and 1 are at the bounds: only those between are read.")
    spent = float(epsilon) if epsilon is not None else sqrt(8 * float(rho or 0.0))
    options = {"field": field, "n": n, "num_bins": num_bins, "sensitivity": max(quantile, 1 - quantile)}
    return interval_quantile(value, quantile, lower=low, upper=high, epsilon=spent, **options)
