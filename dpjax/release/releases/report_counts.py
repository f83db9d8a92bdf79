"""Reports of persons of which only sums were kept: how many reported each bit, or each category."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from dpjax._util.spelling import names_arguments
from dpjax._util.validation import check_array, fail
from dpjax.mechanisms import RandomizedResponse, ReportSums
from dpjax.release.checks import as_vector
from dpjax.release.local import LocalRelease
from dpjax.release.summed import Release
from dpjax.statistics import cells

__all__ = ["randomized_response_counts", "unary_encoding_sums"]

MOST_PERSONS = 10**9
"""More than the values of a release that has one for each person can be."""


@names_arguments
def unary_encoding_sums(
    sums: Any, *, keep: Any, flip: Any, n: int, field: str = "cell", reports: int = 1, permanent: Any = None
) -> Release:
    """The release of the column sums of the bits of `unary_encoding`, as an aggregator keeps them.

    Parameters
    ----------
    sums : [c]
        How many of the persons reported a 1 for each category; of several reports of each person, all added up.
    keep
        The probability of a 1 at the category of the person.
    flip
        The probability of a 1 at any other category.
    n
        The number of persons.
    field
        The integer record field [] that holds the category.
    reports
        How many reports of each person are in the sums.
    permanent
        If each person's bits were randomized once and kept: the probabilities of a permanent 1 at the category of the
        person, and at any other. `keep` and `flip` are then those of a 1 in a report where the permanent bit is 1, and
        where it is 0. There may be 1,024 persons at most.

    Returns
    -------
    Release
        Of the counts of the categories, by `dpjax.mechanisms.ReportSums`.

    Raises
    ------
    TypeError, ValueError
        If the sums are no counts up to n, or a probability is not strictly between 0 and 1.

    Notes
    -----
    The columns are independent given the counts, as the bits of a person are given the category. If each person's bits
    were randomized twice for one report, as by RAPPOR, `keep` and `flip` may be those of both steps together, at any
    number of persons. If sums of several reports were kept one by one, add them up, which loses little, or pass the
    reports themselves to `unary_encoding`.

    Examples
    --------
    >>> import dpjax
    >>> release = dpjax.releases.unary_encoding_sums([9, 4, 5], keep=0.75, flip=0.25, n=12)
    >>> release.value.tolist(), release.n
    ([9.0, 4.0, 5.0], 12)
    """
    value = as_vector("sums", sums, "Pass one sum for each category.")
    mechanism = ReportSums(keep, flip, n, reports=reports, permanent=permanent)
    mechanism.check_value("sums", value)
    return Release(value, mechanism, cells(field, len(value)), n)


@names_arguments
def randomized_response_counts(counts: Any, *, keep: float, field: str = "cell") -> LocalRelease:
    """The release of how many persons gave each answer of randomized response, when the answers themselves are gone.

    Parameters
    ----------
    counts : [k]
        How many persons gave each of k answers.
    keep
        The probability that an answer is the true category, as in `dpjax.RandomizedResponse`.
    field
        The integer record field [] that holds the category.

    Returns
    -------
    LocalRelease
        The release of as many answers, in any order: the likelihood of exchangeable persons does not depend on it. So
        nothing is lost.

    Raises
    ------
    TypeError, ValueError
        If they are no counts of two answers or more, or the probability is none.

    Examples
    --------
    >>> import dpjax
    >>> dpjax.releases.randomized_response_counts([5, 2, 1], keep=0.6).n
    8
    """
    remedy = "Pass how many persons gave each answer."
    check_array("counts", counts, lambda array: (array >= 0) & (array == np.round(array)), "counts", remedy)
    numbers = np.asarray(counts)
    if np.sum(numbers, dtype=float) > MOST_PERSONS:
        fail("counts", f"{np.sum(numbers, dtype=float):.3g} persons", f"at most {MOST_PERSONS:,}", remedy)
    if numbers.ndim != 1 or len(numbers) < 2 or not numbers.sum():
        fail("counts", f"shape {list(numbers.shape)} of sum {numbers.sum():g}", "counts of two answers or more", remedy)
    answers = np.repeat(np.arange(len(numbers)), numbers.astype(int))
    return LocalRelease(jnp.asarray(answers), RandomizedResponse(keep, len(numbers)), field)
