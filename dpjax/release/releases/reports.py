"""Reports of single persons that are known by the likelihood of each category."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from dpjax._util.validation import check_array, check_share, fail, read_numbers
from dpjax.mechanisms import LocalChannel
from dpjax.release import LocalRelease

__all__ = ["likelihoods", "unary_encoding"]


def likelihoods(log_likelihoods: Any, *, field: str = "cell") -> LocalRelease:
    """The release of one report for each person, known by the probability of that report in each category.

    Parameters
    ----------
    log_likelihoods : [n, c]
        The logarithm of the probability of the report that each of n persons made, in each of c categories; up to a
        constant for each person; -∞ where the category cannot give it.
    field
        The integer record field [] that holds the category.

    Returns
    -------
    LocalRelease
        Its channel lists the different reports once (`dpjax.LocalChannel` with ``complete=False``). New reports cannot
        be drawn from it.

    Raises
    ------
    TypeError, ValueError
        If they are no matrix, one is NaN or ∞, or a person's report is impossible in every category.

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
    """
    expected, remedy = "a matrix [n, c] of at least two categories", "Give a row for each person."
    array = read_numbers("log_likelihoods", log_likelihoods, expected, remedy)
    if array.ndim != 2 or array.shape[1] < 2 or not len(array):
        fail("log_likelihoods", f"shape {list(array.shape)}", expected, remedy)
    array = np.asarray(array, np.float64)
    largest = array.max(axis=1, keepdims=True)
    if np.any(np.isnan(array)) or not np.all(np.isfinite(largest)):
        person = int(np.flatnonzero(np.isnan(array).any(axis=1) | ~np.isfinite(largest[:, 0]))[0])
        expected = "numbers below ∞, one of them finite in each row"
        fail("log_likelihoods", f"{array[person].tolist()} of person {person}", expected, "Check the report.")
    # Relative to the largest, what is lost by rounding is lost where a category is all but impossible.
    different, places = np.unique(array - largest, axis=0, return_inverse=True)
    channel = LocalChannel(jnp.asarray(different.T), complete=False)
    return LocalRelease(jnp.asarray(places.ravel()), channel, field)


def unary_encoding(bits: Any, *, keep: float, flip: float, field: str = "cell") -> LocalRelease:
    """The release of a bit for each category and person, each 1 with probability `keep` at the true category.

    Parameters
    ----------
    bits : [n, c]
        The reported bits, 0 or 1.
    keep
        The probability of a 1 at the category of the person.
    flip
        The probability of a 1 at any other category. RAPPOR and symmetric unary encoding have 1 - keep, optimised unary
        encoding has keep = 1/2.
    field
        The integer record field [] that holds the category.

    Returns
    -------
    LocalRelease
        As that of `likelihoods`.

    Raises
    ------
    TypeError, ValueError
        If the bits are no matrix of 0 and 1, or a probability is not strictly between 0 and 1.

    Notes
    -----
    What else a person's bits say is the same for all categories: the likelihood of category j is that of bit j under
    `keep` over that under `flip`. The largest log ratio is log(keep (1 - flip) / (flip (1 - keep))).

    Examples
    --------
    >>> import dpjax
    >>> release = dpjax.releases.unary_encoding([[1, 0, 0], [1, 0, 1]], keep=0.75, flip=0.25)
    >>> release.channel.log_probabilities.shape
    (3, 2)
    """
    check_share("keep", keep, "Pass the probability of a 1 at the true category.")
    check_share("flip", flip, "Pass the probability of a 1 at any other category.")
    remedy = "Pass one row of bits for each person."
    check_array("bits", bits, lambda array: (array == 0) | (array == 1), "bits 0 and 1, shape [n, c]", remedy)
    ones = np.asarray(bits, bool)
    log_ratio = np.where(ones, np.log(keep / flip), np.log((1 - keep) / (1 - flip)))
    return likelihoods(log_ratio, field=field)
