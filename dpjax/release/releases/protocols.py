"""Local protocols: what each person reports of a category, by bits, subsets, hashes and Hadamard codes."""

from math import comb, log
from typing import Any

import jax.numpy as jnp
import numpy as np
import scipy

from dpjax._util.spelling import names_arguments
from dpjax._util.validation import check_array, check_count, check_share, describe, fail, read_numbers
from dpjax.mechanisms import LocalChannel
from dpjax.release import LocalRelease
from dpjax.release.releases.reports import by_membership, by_person, likelihoods, read_bits, read_keep

__all__ = ["hadamard_response", "local_hashing", "subset_selection", "unary_encoding"]


@names_arguments
def unary_encoding(
    bits: Any, *, keep: float, flip: float, field: str = "cell", people: Any = None, permanent: Any = None
) -> LocalRelease:
    """The release of a bit for each category and person, each 1 with probability `keep` at the true category.

    Parameters
    ----------
    bits : [m, c]
        The reported bits, 0 or 1.
    keep
        The probability of a 1 at the category of the person.
    flip
        The probability of a 1 at any other category. RAPPOR and symmetric unary encoding have 1 - keep, optimised unary
        encoding has keep = 1/2.
    field
        The integer record field [] that holds the category.
    people : [m]
        Who made each report, as in `likelihoods`.
    permanent
        The probabilities of a permanent 1 at the category of the person, and at any other. They are needed if each
        person's bits were randomized once and kept, and every report is one of these: RAPPOR's permanent and
        instantaneous randomized response. `keep` and `flip` are then the probabilities of a reported 1 where the
        permanent bit is 1, and where it is 0.

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
    ones = read_bits("bits", bits, "Pass one row of bits for each person.")
    one, zero = log(keep / flip), log((1 - keep) / (1 - flip))
    if permanent is not None:
        pair = read_pair(permanent)
        ones_given = [np.where(ones, log(p), log(1 - p)) for p in (keep, flip)]
        (at_one, most), (at_zero, _) = (by_person(given, people) for given in ones_given)
        inside, outside = (np.logaddexp(log(p) + at_one, log(1 - p) + at_zero) for p in pair)
        kept, flipped = pair
        ratio = abs(log(kept * (1 - flipped) / (flipped * (1 - kept))))
        return likelihoods(inside - outside, field=field, largest_ratio=min(ratio, most * abs(one - zero)))
    return by_membership(ones, one, zero, field=field, people=people, largest_ratio=abs(one - zero))


def read_pair(permanent: Any) -> tuple[float, float]:
    """The probabilities of a permanent 1 at the true category and at any other, or an error."""
    remedy = "Pass two probabilities: of a permanent 1 at the true category, and at any other."
    if not isinstance(permanent, (list, tuple)) or len(permanent) != 2:
        fail("permanent", describe(permanent), "two probabilities", remedy, error=TypeError)
    for probability in permanent:
        check_share("permanent", probability, remedy)
    return float(permanent[0]), float(permanent[1])


@names_arguments
def subset_selection(subsets: Any, *, keep: float, field: str = "cell", people: Any = None) -> LocalRelease:
    """The release of subsets of the categories, all of one size, that hold the true one with probability `keep`.

    Parameters
    ----------
    subsets : [m, c]
        Which categories are in each reported subset, as 0 and 1.
    keep
        The probability that the true category is in the subset; the others are drawn uniformly. For subsets of d
        categories under ε it is d e^ε / (d e^ε + c - d).
    field
        The integer record field [] that holds the category.
    people : [m]
        Who made each report, as in `likelihoods`.

    Returns
    -------
    LocalRelease
        As that of `likelihoods`.

    Raises
    ------
    TypeError, ValueError
        If subsets are no matrix of 0 and 1, have different sizes, or hold no or all categories, or the probability is
        not strictly between 0 and 1.

    Examples
    --------
    >>> import dpjax
    >>> release = dpjax.releases.subset_selection([[1, 1, 0, 0], [0, 1, 0, 1]], keep=0.8)
    >>> release.n
    2
    """
    read_keep(keep)
    remedy = "Pass a row of 0 and 1 for each person, as many 1 in each."
    inside = read_bits("subsets", subsets, remedy)
    categories, sizes = inside.shape[1], np.unique(inside.sum(axis=1))
    if len(sizes) != 1 or not 0 < sizes[0] < categories:
        fail(
            "subsets",
            f"subsets of {sizes.tolist()} of {categories} categories",
            "one size, of some but not all",
            remedy,
        )
    size = int(sizes[0])
    log_in = log(keep) - log(comb(categories - 1, size - 1))
    log_out = log(1 - keep) - log(comb(categories - 1, size))
    return by_membership(inside, log_in, log_out, field=field, people=people, largest_ratio=abs(log_in - log_out))


@names_arguments
def local_hashing(
    reports: Any, hashes: Any, *, keep: float, num_values: int, field: str = "cell", people: Any = None
) -> LocalRelease:
    """The release of a noisy hash of each person's category, under a hash function that is reported with it.

    Parameters
    ----------
    reports : [m]
        The reported hashes, 0, ..., g - 1.
    hashes : [m, c]
        The hash of each of c categories under the function of each report: compute them from its seed.
    keep
        The probability that the hash of the true category is reported; else any other hash is, all equally likely.
        Under ε it is e^ε / (e^ε + g - 1).
    num_values
        The number g of hashes.
    field
        The integer record field [] that holds the category.
    people : [m]
        Who made each report, as in `likelihoods`.

    Returns
    -------
    LocalRelease
        As that of `likelihoods`.

    Raises
    ------
    TypeError, ValueError
        If hashes are not whole numbers from 0 to g - 1, or there is not one row of them for each report. If the
        probability is not strictly between 0 and 1.

    Examples
    --------
    >>> import dpjax
    >>> release = dpjax.releases.local_hashing([1, 2], [[0, 1, 3], [2, 2, 0]], keep=0.6, num_values=4)
    >>> release.n
    2
    """
    read_keep(keep)
    values = check_count("num_values", num_values, "Pass the number of hashes.", least=2)
    remedy = "Pass the hash of every category under the function of each report."
    expected = f"whole numbers from 0 to {values - 1}"

    def are_hashes(array: np.ndarray) -> np.ndarray:
        return (array >= 0) & (array < values) & (array == np.round(array))

    check_array("hashes", hashes, are_hashes, expected, remedy)
    check_array("reports", reports, are_hashes, expected, "Pass the noisy hash of each report.")
    if np.ndim(hashes) != 2 or np.shape(reports) != np.shape(hashes)[:1]:
        given = f"shapes {list(np.shape(reports))} and {list(np.shape(hashes))}"
        fail("reports, hashes", given, "shapes [m] and [m, c]", remedy)
    inside = np.asarray(hashes) == np.asarray(reports)[:, None]
    log_in, log_out = log(keep), log((1 - keep) / (values - 1))
    return by_membership(inside, log_in, log_out, field=field, people=people, largest_ratio=abs(log_in - log_out))


@names_arguments
def hadamard_response(
    reports: Any, *, keep: float, num_categories: int, field: str = "cell", people: Any = None
) -> LocalRelease:
    """The release of places in a Hadamard matrix, with a 1 in the row of the true category with probability `keep`.

    Parameters
    ----------
    reports : [m]
        The reported columns, 0, ..., K - 1, where K is the least power of 2 above the number of categories.
    keep
        The probability of a column with 1 in the row of the category, all K / 2 equally likely; else it is one with -1.
        Under ε it is e^ε / (e^ε + 1).
    num_categories
        The number c of categories: category j has row j + 1 of Sylvester's matrix, whose row 0 has no -1.
    field
        The integer record field [] that holds the category.
    people : [m]
        Who made each report, as in `likelihoods`.

    Returns
    -------
    LocalRelease
        By a `dpjax.mechanisms.LocalChannel` of all K reports; with `people`, as that of `likelihoods`.

    Raises
    ------
    TypeError, ValueError
        If reports are not whole numbers from 0 to K - 1, or the probability is not strictly between 0 and 1.

    Notes
    -----
    Acharya, Sun and Zhang (2019), with one block, as for ε up to about 1.

    Examples
    --------
    >>> import dpjax
    >>> release = dpjax.releases.hadamard_response([0, 3, 1], keep=0.7, num_categories=3)
    >>> release.channel.num_categories
    4
    """
    read_keep(keep)
    categories = check_count("num_categories", num_categories, "Pass the number of categories.", least=2)
    signs = scipy.linalg.hadamard(1 << categories.bit_length())[1 : categories + 1]
    logs = np.where(signs > 0, log(2 * keep / signs.shape[1]), log(2 * (1 - keep) / signs.shape[1]))
    expected = f"whole numbers from 0 to {signs.shape[1] - 1}"
    columns = read_numbers("reports", reports, expected, "Pass the column that each person reported.")
    if columns.ndim != 1 or columns.dtype.kind not in "iu" or columns.min() < 0 or columns.max() >= signs.shape[1]:
        fail("reports", f"{columns.dtype}{list(columns.shape)}", f"{expected}, shape [m]", "Check num_categories.")
    if people is None:
        return LocalRelease(jnp.asarray(columns), LocalChannel(jnp.asarray(logs)), field)
    return likelihoods(logs[:, columns].T, field=field, people=people, largest_ratio=abs(log(keep / (1 - keep))))
