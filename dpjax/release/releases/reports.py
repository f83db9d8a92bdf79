"""Reports of single persons that are known by the likelihood of each category."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from dpjax._util.spelling import names_arguments
from dpjax._util.validation import check_array, check_number, check_share, describe_array, fail, read_numbers
from dpjax.mechanisms import LocalChannel
from dpjax.mechanisms.local_channel import SUM_TOLERANCE
from dpjax.release import LocalRelease

__all__ = ["likelihoods"]


@names_arguments
def likelihoods(
    log_likelihoods: Any,
    *,
    field: str = "cell",
    people: Any = None,
    permanent: Any = None,
    largest_ratio: float | None = None,
) -> LocalRelease:
    """The release of reports of persons, known by the probability of each report in each category.

    Parameters
    ----------
    log_likelihoods : [m, c]
        The logarithm of the probability of each of m reports, in each of c categories; up to a constant for each
        report; -∞ if the category cannot give it.
    field
        The integer record field [] that holds the category.
    people : [m]
        Who made each report: 0, ..., n - 1 for n persons, each with one report or more. If a person made several, each
        with noise of its own on the *true* category, their probabilities multiply. By default every report is that of
        another person. Reports that repeat one noisy answer need `permanent`, or no `people`.
    permanent
        For memoization: a person's category was randomized once, and each report is one of that permanent answer. Pass
        the matrix [c, q] of the probabilities of each of q permanent answers, given each category. Or pass one number,
        the probability that the permanent answer is the category itself, if all others are equally likely.
        `log_likelihoods` [m, q] are then given the permanent answer.
    largest_ratio
        The largest log ratio of the probabilities of any one report in two categories, if it is known:
        `dpjax.describe` tells the promise that follows.

    Returns
    -------
    LocalRelease
        Its channel lists the different reports once (`dpjax.mechanisms.LocalChannel` with ``complete=False``). New
        reports cannot be drawn from it.

    Raises
    ------
    TypeError, ValueError
        If they are no matrix, one is NaN or ∞, reports of a person are impossible in every category, a person in
        `people` has none, or `permanent` holds no probabilities.

    Examples
    --------
    Local hashing: person i reports a noisy hash, which is kept with probability 0.6 and else one of three others.

    >>> import numpy as np
    >>> import dpjax
    >>> hashes = np.array([[0, 1, 3], [2, 2, 0], [1, 3, 0]])
    >>> reports = np.array([1, 2, 2])
    >>> probabilities = np.where(hashes == reports[:, None], 0.6, 0.4 / 3)
    >>> dpjax.releases.likelihoods(np.log(probabilities)).n
    3

    Memoization: two persons keep a noisy answer for good, and report it five times with more noise.

    >>> ones = np.array([1, 1, 0, 1, 1, 0, 1, 0, 0, 0])
    >>> given_answer = np.where(ones[:, None] == np.arange(2), 0.75, 0.25)
    >>> people = np.repeat([0, 1], 5)
    >>> dpjax.releases.likelihoods(np.log(given_answer), people=people, permanent=0.75).n
    2
    """
    expected, remedy = "a matrix [n, c] of at least two categories", "Give a row for each person."
    array = read_numbers("log_likelihoods", log_likelihoods, expected, remedy)
    if largest_ratio is not None:
        check_number("largest_ratio", largest_ratio)
        check_array("largest_ratio", largest_ratio, lambda ratio: ratio >= 0, "a number of at least 0", remedy)
    if array.ndim != 2 or array.shape[1] < 2 or not len(array):
        fail("log_likelihoods", f"shape {list(array.shape)}", expected, remedy)
    array, most = by_person(np.asarray(array, np.float64), people)
    ratio = None if largest_ratio is None else most * float(largest_ratio)
    if permanent is not None:
        matrix = read_permanent(permanent, array.shape[1])
        array = mixed(matrix, array)
        ratio = min(np.inf if ratio is None else ratio, ratio_of(matrix))
    largest = array.max(axis=1, keepdims=True)
    if np.any(np.isnan(array)) or not np.all(np.isfinite(largest)):
        person = int(np.flatnonzero(np.isnan(array).any(axis=1) | ~np.isfinite(largest[:, 0]))[0])
        expected = "numbers below ∞, one of them finite in each row"
        fail("log_likelihoods", f"{array[person].tolist()} of person {person}", expected, "Check the report.")
    # Relative to the largest, what is lost by rounding is lost if a category is all but impossible.
    different, places = np.unique(array - largest, axis=0, return_inverse=True)
    channel = LocalChannel(jnp.asarray(different.T), complete=False, largest_ratio=finite_or_none(ratio))
    return LocalRelease(jnp.asarray(places.ravel()), channel, field)


def by_person(array: np.ndarray, people: Any) -> tuple[np.ndarray, int]:
    """The sums [n, c] of what reports [m, c] of each person say, and the largest number of reports of one person."""
    if people is None:
        return array, 1
    expected = f"who made each of {len(array)} reports, each of 0, ..., n - 1 at least once"
    remedy = "Number the persons from 0, for example by np.unique(names, return_inverse=True)[1]."
    owners = read_numbers("people", people, expected, remedy)
    if owners.shape != (len(array),) or owners.dtype.kind not in "iu" or np.min(owners) < 0:
        fail("people", f"{owners.dtype}{list(owners.shape)}", expected, remedy)
    counts = np.bincount(owners)
    if np.any(counts == 0):
        fail("people", f"no report of person {int(np.argmin(counts))}", expected, remedy)
    sums = np.zeros((len(counts), array.shape[1]))
    np.add.at(sums, owners, array)
    return sums, int(counts.max())


def read_permanent(permanent: Any, size: int) -> np.ndarray:
    """The probabilities [c, q] of each of q permanent answers, given each category, or an error."""
    remedy = "Row j holds P(permanent answer | category j); one number is the probability of the category itself."
    matrix = read_numbers("permanent", permanent, "probabilities", remedy).astype(np.float64)
    if matrix.ndim == 0:
        check_share("permanent", permanent, remedy)
        matrix = np.where(np.eye(size, dtype=bool), matrix, (1 - matrix) / (size - 1))
    if matrix.ndim != 2 or matrix.shape[1] != size or len(matrix) < 2:
        given, expected = f"shape {list(matrix.shape)}", f"shape [c, {size}], an answer for each column of likelihoods"
        fail("permanent", given, expected, remedy)
    if np.any(matrix < 0) or not np.allclose(matrix.sum(axis=1), 1, rtol=0, atol=SUM_TOLERANCE):
        fail("permanent", f"rows that sum to {describe_array(matrix.sum(axis=1))}", "rows of probabilities", remedy)
    return matrix


def mixed(matrix: np.ndarray, array: np.ndarray) -> np.ndarray:
    """What reports say of each category [n, c], from what they say of each permanent answer [n, q]; in logarithms."""
    with np.errstate(divide="ignore"):
        largest = np.max(array, axis=1, keepdims=True)
        safe = np.where(np.isfinite(largest), largest, 0.0)
        return np.log(np.exp(array - safe) @ matrix.T) + safe


def ratio_of(matrix: np.ndarray) -> float:
    """The largest log ratio of the probabilities of any one answer in two categories; ∞ where one is impossible."""
    possible = matrix[:, np.any(matrix > 0, axis=0)]
    return float(np.max(np.log(possible.max(axis=0) / possible.min(axis=0)))) if np.all(possible > 0) else np.inf


def finite_or_none(ratio: float | None) -> float | None:
    """The largest log ratio where there is one."""
    return None if ratio is None or not np.isfinite(ratio) else ratio


def by_membership(
    inside: Any, log_in: float, log_out: float, *, field: str, people: Any, largest_ratio: float
) -> LocalRelease:
    """The release of reports that are likely in some categories [m, c] and less so in the others."""
    return likelihoods(np.where(inside, log_in, log_out), field=field, people=people, largest_ratio=largest_ratio)


def read_bits(argument: str, bits: Any, remedy: str) -> np.ndarray:
    """A matrix [m, c] of 0 and 1 as flags, or an error."""

    def are_bits(array: np.ndarray) -> np.ndarray | bool:
        return (array == 0) | (array == 1) if array.ndim == 2 else False

    check_array(argument, bits, are_bits, "bits 0 and 1, shape [m, c]", remedy)
    return np.asarray(bits, bool)


def read_keep(keep: Any) -> None:
    """Raise unless it is the probability that a report tells of the true category."""
    check_share("keep", keep, "Pass the probability of a report that tells of the true category.")
