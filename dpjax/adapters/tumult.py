"""Mechanisms and quantiles of Tumult Analytics; that library itself is not imported."""

from collections.abc import Mapping
from math import sqrt
from typing import Any

from dpjax._util.spelling import names_arguments
from dpjax._util.validation import check_positive_number, check_share, describe, fail
from dpjax.mechanisms import DiscreteGaussian, DiscreteLaplace, Gaussian, Laplace
from dpjax.release import Release, mechanism_from_published
from dpjax.release.releases.quantiles import interval_quantile

__all__ = ["mechanism_from_tumult", "read_quantile"]

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
    if not (isinstance(noise, Mapping) and {"noise_mechanism", "noise_parameter"} <= noise.keys()):
        expected = "a mapping with noise_mechanism and noise_parameter"
        fail("noise", repr(noise), expected, "Pass one entry of the list that the session gives.", error=TypeError)
    name = getattr(noise["noise_mechanism"], "name", noise["noise_mechanism"])
    if not isinstance(name, str) or name not in CONVENTIONS:
        remedy = "Only noise that is added to a sum can be read."
        fail("noise_mechanism", describe(name), f"one of {sorted(CONVENTIONS)}", remedy)
    check_positive_number("noise_parameter", noise["noise_parameter"], "Pass the entry as the session gives it.")
    return mechanism_from_published(CONVENTIONS[name], noise["noise_parameter"])


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
