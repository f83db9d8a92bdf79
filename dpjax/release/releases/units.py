"""Numbers of several units, such as areas or weeks, with NaN in place of those that were too small to be published."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from dpjax._util.spelling import names_arguments
from dpjax._util.validation import check_array, check_number, describe_array, fail, name_of, plain, read_numbers
from dpjax.mechanisms import Censored, Exact
from dpjax.mechanisms.base import Mechanism, as_mechanism
from dpjax.mechanisms.unknown import unknown_numbers
from dpjax.release.checks import check_mechanism
from dpjax.release.local import LocalRelease
from dpjax.release.microdata import Microdata
from dpjax.release.releases.suppressed import make_rule
from dpjax.release.summed import Release

__all__ = ["suppressed_units", "thresholded_units", "withheld_units"]

LEAST_PUBLISHED = "Pass the least number that was published."


@names_arguments
def suppressed_units(
    values: Any, limit: int, *, least: int = 0, mechanism: Any = None, by: str = "value", field: str = "y"
) -> LocalRelease:
    """The release of one count for each unit, with NaN in place of small ones, as a file with gaps is read.

    Parameters
    ----------
    values : [n]
        The published counts; NaN if a count was suppressed.
    limit
        The smallest count, above 0, that is always published.
    least
        The smallest count that is suppressed: 0, or 1 if zeros are published.
    mechanism
        What else was done to each count, such as `dpjax.mechanisms.RandomRounding`; by default nothing.
    by
        Whether its ``"value"`` or the true ``"count"`` is compared with the limit.
    field
        The integer record field [] that is counted.

    Returns
    -------
    LocalRelease
        Through `dpjax.mechanisms.PrimarySuppression`, or `dpjax.mechanisms.Suppressed` around the mechanism, with -1 in
        place of NaN; -0.5 beside whole noise, which may be negative.

    Raises
    ------
    TypeError, ValueError
        If the values hold anything but counts and NaN, or a count that would have been suppressed.

    Warns
    -----
    UserWarning
        If so many of the counts are multiples of 3, say, that they were rounded, of which the release says nothing.

    Notes
    -----
    Each unit is a record of the model, such as a Poisson regression. `dpjax.releases.suppressed` is of the cells of one
    table of people.

    Examples
    --------
    >>> import dpjax
    >>> dpjax.releases.suppressed_units([12, float("nan"), 31], limit=10).values.tolist()
    [12.0, -1.0, 31.0]
    """
    counts, gaps = read_units(values)
    if mechanism is None and np.any(counts[~gaps] < 0):
        fail("values", "negative numbers", "counts and NaN", "Pass NaN where a count was suppressed.")
    rule = make_rule("values", counts, limit, least, mechanism, by)
    return LocalRelease(jnp.asarray(np.where(gaps, rule.code, counts)), rule, field)


@names_arguments
def withheld_units(values: Any, totals: Release, *, field: str = "y") -> Microdata:
    """The release of one count for each unit beside totals, with NaN where a count was withheld by no stated rule.

    Such gaps are marked "(D)" in many tables, as those of agriculture and employment.

    Parameters
    ----------
    values : [n]
        The published counts; NaN if a count was withheld.
    totals
        The release of totals of the same units, such as `dpjax.statistics.group_totals` with `dpjax.Exact`.
    field
        The integer record field [] that is counted.

    Returns
    -------
    Microdata
        Of the counts beside the totals. The counts that were withheld are summed out beside these.

    Raises
    ------
    TypeError, ValueError
        If the values hold anything but counts and NaN, or the totals are none of as many units.

    Notes
    -----
    That a count was withheld is taken to say nothing of it, as the rule is not known. If small counts are withheld, and
    others to protect them, intervals are wider than with the rule. With the rule use `suppressed_units`.

    Examples
    --------
    >>> import dpjax
    >>> by_state = dpjax.statistics.group_totals("y", by="state", levels=["A", "B"])
    >>> totals = dpjax.Release({"A": 43, "B": 31}, dpjax.Exact(), by_state, n=3)
    >>> dpjax.releases.withheld_units([12, float("nan"), 31], totals).missing["y"].tolist()
    [False, True, False]
    """
    if not isinstance(totals, Release):
        remedy = "Pass dpjax.Release(totals, dpjax.Exact(), dpjax.statistics.group_totals(...), n)."
        fail("totals", name_of(totals), "a dpjax.Release", remedy, error=TypeError)
    if not isinstance(field, str):
        fail("field", repr(field), "the name of a record field", "Pass a string.", error=TypeError)
    counts, gaps = read_units(values)
    remedy = "Pass NaN where a count was withheld."
    if totals.n != len(counts):
        fail("values", f"{len(counts)} units", f"{totals.n}, as the totals have", "Pass one value for each unit.")
    known = counts[~gaps]
    if not np.all((known >= 0) & (known == np.round(known))):
        fail("values", describe_array(known), "counts and NaN", remedy)
    return Microdata({field: (np.where(gaps, 0, counts).astype(int), Exact())}, {field: gaps}, totals)


@names_arguments
def thresholded_units(values: Any, mechanism: Mechanism | Any, threshold: Any, *, field: str = "y") -> LocalRelease:
    """The release of one number for each unit, noisy or not, with NaN in place of those below a threshold.

    That a number was not published tells that it lies below the threshold; nothing is left out.

    Parameters
    ----------
    values : [n]
        The published numbers, all at least the threshold; NaN if a unit's number was below it.
    mechanism
        The noise, with one scale or one for each unit. `dpjax.Exact` if there is none, as for concentrations below a
        limit of detection.
    threshold : [] or [n]
        The least number that was published, the same of all units or one for each.
    field
        The record field [] that noise was added to.

    Returns
    -------
    LocalRelease
        Through `dpjax.mechanisms.Censored`. In the place of NaN, the value is the largest below the threshold that the
        mechanism can release.

    Raises
    ------
    TypeError, ValueError
        If the values hold anything but numbers and NaN, one lies below the threshold, or the noise has no known tails.

    Notes
    -----
    A unit of which nothing is known, not even that it was below, is missing: `dpjax.Microdata` has a mask for it.
    `dpjax.releases.thresholded` is of the cells of one table of people.

    Examples
    --------
    >>> import dpjax
    >>> weeks = dpjax.releases.thresholded_units([25, float("nan"), 31], dpjax.DiscreteLaplace(2.0), threshold=20)
    >>> weeks.values.tolist()
    [25.0, 19.0, 31.0]
    """
    numbers, gaps = read_units(values)
    limits = read_limits(threshold, len(numbers))
    below = np.flatnonzero(~gaps & (numbers < limits))
    if below.size:
        given = f"{numbers[below].min():g}"
        expected = f"numbers of at least {limits if limits.ndim == 0 else limits[below[numbers[below].argmin()]]:g}"
        fail("values", given, f"{expected}, or NaN", LEAST_PUBLISHED)
    if not unknown_numbers(mechanism):
        check_mechanism("mechanism", mechanism, (), len(numbers))
    noise = as_mechanism(mechanism)
    lower = jnp.asarray(noise._largest_below(limits), float)
    return LocalRelease(jnp.where(gaps, lower, numbers), Censored(noise, lower=lower), field)


def read_limits(threshold: Any, n: int) -> np.ndarray:
    """The threshold [] or [n], or an error."""
    if np.ndim(threshold) == 0:
        check_number("threshold", threshold)
    check_array("threshold", threshold, np.isfinite, "a finite number", LEAST_PUBLISHED)
    limits = np.asarray(threshold, float)
    if limits.shape not in ((), (n,)):
        fail("threshold", f"shape {list(limits.shape)}", f"one number, or one for each of {n} units", LEAST_PUBLISHED)
    return limits


def read_units(values: Any) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of units, and which are NaN [n], or an error."""
    remedy = "Pass one number for each unit, NaN where it was not published."
    numbers = read_numbers("values", plain(values), "numbers [n], or NaN", remedy).astype(float)
    if numbers.ndim != 1 or not numbers.size or np.any(np.isinf(numbers)):
        fail("values", f"shape {list(numbers.shape)}", "numbers [n], finite or NaN", remedy)
    return numbers, np.isnan(numbers)
