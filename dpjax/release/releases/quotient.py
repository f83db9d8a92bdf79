"""Quotients of two noisy sums, such as the mean of a group whose size was not published."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from dpjax._util.spelling import names_arguments
from dpjax._util.validation import fail, name_of
from dpjax._util.warn import warn_at_the_call
from dpjax.base import Array, Statistic
from dpjax.mechanisms.base import Mechanism
from dpjax.mechanisms.count_quotient import CountQuotient
from dpjax.mechanisms.quotient import Quotient, WholeQuotient
from dpjax.numerics.quotients import to_fraction
from dpjax.release.checks import as_vector, check_mechanism
from dpjax.release.summed import Release
from dpjax.statistics import stacked
from dpjax.statistics.base import dimension_of

__all__ = ["quotient"]


@names_arguments
def quotient(
    value: Array,
    numerator: Statistic,
    denominator: Statistic,
    *,
    numerator_noise: Mechanism,
    denominator_noise: Mechanism,
    n: Any,
) -> Release:
    """The release of noisy sums divided by other noisy sums, of which only the quotients were published.

    Parameters
    ----------
    value : [k]
        The published quotients.
    numerator
        The statistic ``record -> [k]`` whose sums were divided, such as `dpjax.statistics.total`.
    denominator
        The statistic ``record -> [k]`` by whose sums they were divided, such as the counts of groups.
    numerator_noise
        The noise of the k numerators: a `dpjax.Gaussian` or a `dpjax.Laplace`. Or, on sums that are whole, a
        `dpjax.DiscreteLaplace` or a `dpjax.DiscreteGaussian`, beside such noise on the denominators.
    denominator_noise
        That of the k denominators, independent of it and drawn anew for each quotient: of these kinds, integer noise
        for counts. If counts were clamped, below a real numerator, it is as in `dpjax.mechanisms.CountQuotient`.
    n
        The public number of records, as in `dpjax.Release`.

    Returns
    -------
    Release
        Of the two statistics in one (`dpjax.statistics.stacked`), by `dpjax.mechanisms.Quotient`. With integer noise on
        the denominators by `dpjax.mechanisms.CountQuotient`, and on both by `dpjax.mechanisms.WholeQuotient`: its value
        is the fractions in lowest terms.

    Raises
    ------
    TypeError, ValueError
        If a statistic has not as many coordinates as there are quotients, or noise is of another kind. If both have
        integer noise, and a quotient is none of whole numbers to all its digits.

    Warns
    -----
    UserWarning
        If a quotient of whole numbers has few decimals, as one that was rounded would.

    Notes
    -----
    If the noisy denominators were published too, ``value * denominators`` are the noisy numerators: join the
    `dpjax.Release` of both by `dpjax.joint`. That is exact for noise of any kind, and knows more.

    Examples
    --------
    >>> import dpjax
    >>> release = dpjax.releases.quotient(
    ...     [0.31],
    ...     dpjax.statistics.grouped("cell", [-1, -1, 0]),
    ...     dpjax.statistics.grouped("cell", [-1, 0, 0]),
    ...     numerator_noise=dpjax.Laplace(1.0),
    ...     denominator_noise=dpjax.Laplace(1.0),
    ...     n=80,
    ... )
    >>> release.statistic.dimension
    2
    """
    vector = as_vector("value", value, "Pass the published quotients.")
    remedy = "Pass one sum for each quotient. Of a mean and a variance by one noisy count see dpjax.releases.moments."
    for name, statistic in {"numerator": numerator, "denominator": denominator}.items():
        check_size(name, statistic, len(vector), "one for each quotient", remedy)
    for name, noise in {"numerator_noise": numerator_noise, "denominator_noise": denominator_noise}.items():
        check_mechanism(name, noise, (len(vector),))
    both = stacked(numerator, denominator)
    if not denominator_noise.integer_noise:
        return Release(vector, Quotient(numerator_noise, denominator_noise, len(vector)), both, n)
    if not numerator_noise.integer_noise:
        return Release(vector, CountQuotient((numerator_noise,), denominator_noise, len(vector)), both, n)
    whole = WholeQuotient(numerator_noise, denominator_noise, len(vector))
    return Release(in_lowest_terms(value), whole, both, n)


def in_lowest_terms(value: Any) -> Array:
    """The numerators [k] of quotients of whole numbers, then their denominators [k], or an error."""
    given = np.atleast_1d(np.asarray(value))
    precision = float(np.finfo(given.dtype if given.dtype.kind == "f" else float).eps)
    found = [to_fraction(float(each), precision) for each in given]
    for each, fraction in zip(given, found, strict=True):
        remedy = "Pass it with all its digits, in double precision. One that was rounded has no density here."
        if fraction is None:
            fail("value", f"{float(each)!r}", "a quotient of whole numbers", remedy)
        if fraction.denominator >= FEWEST and DECIMALS % fraction.denominator == 0:
            warn_at_the_call(f"value: {float(each)!r} has few decimals, and is taken to be {fraction}. {remedy}")
    fractions = [fraction for fraction in found if fraction is not None]
    terms = [[one.numerator for one in fractions], [one.denominator for one in fractions]]
    return jnp.asarray(np.array(terms, float).reshape(-1))


FEWEST, DECIMALS = 20, 10**4
"""Denominators from which four decimals or fewer are a sign of rounding, and the largest of them."""


def check_size(argument: str, statistic: Any, size: int, each: str, remedy: str) -> None:
    """Raise unless a statistic is known to have so many coordinates, as `each` says of them."""
    if isinstance(statistic, type) or not callable(statistic) or dimension_of(statistic) is None:
        missing = "Pass one of dpjax.statistics, or a RecordStatistic of your own with a dimension."
        fail(argument, name_of(statistic), "a statistic that has a dimension", missing, error=TypeError)
    if dimension_of(statistic) != size:
        fail(argument, f"{dimension_of(statistic)} coordinates", f"{size}, {each}", remedy)
