"""Distances between multisets of records or draws: Wasserstein and maximum mean discrepancy."""

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
import scipy

from dpjax._util.spelling import names_arguments
from dpjax._util.validation import (
    check_array,
    check_count,
    check_generator,
    check_positive_number,
    fail,
    leaves_of,
)
from dpjax.base import Records
from dpjax.numerics import leading_size, take_entry

__all__ = ["Distance", "mean_wasserstein", "median_width", "squared_mmd", "wasserstein"]

BLOCK = 1024
"""Number of rows of a kernel matrix computed at a time."""


@dataclass(frozen=True)
class Distance:
    """An estimate of a distance and its standard error.

    Parameters
    ----------
    value
        The estimate.
    standard_error
        Its standard error.

    Examples
    --------
    >>> import dpjax
    >>> distance = dpjax.coupling.Distance(value=0.03, standard_error=0.02)
    >>> distance.value < 2 * distance.standard_error
    True
    """

    value: float
    standard_error: float


@names_arguments
def wasserstein(first: Records, second: Records) -> float:
    """W₂ between two multisets of n records, exactly: the root of the least mean squared distance over all pairings.

    In one dimension the pairing is that of the sorted values, in more it is found by `scipy.optimize`, in O(n³) at
    worst.

    Parameters
    ----------
    first
        Records, a pytree with leading axes [n]; every number is a coordinate, unscaled.
    second
        Others, of the same structure and number.

    Raises
    ------
    ValueError
        If the two differ in their fields or size, or hold anything but finite numbers.

    Examples
    --------
    >>> import dpjax
    >>> import numpy as np
    >>> dpjax.coupling.wasserstein({"y": np.array([0.0, 1.0])}, {"y": np.array([3.0, 2.0])})
    2.0
    """
    one, other = pair_of_rows(first, second)
    if one.shape != other.shape:
        remedy = "Compare as many records."
        fail("second", f"numbers {list(other.shape)}", f"numbers {list(one.shape)}, as in first", remedy)
    if one.shape[1] == 1:
        return float(np.sqrt(np.mean((np.sort(one[:, 0]) - np.sort(other[:, 0])) ** 2)))
    costs = scipy.spatial.distance.cdist(one, other, "sqeuclidean")
    return float(np.sqrt(costs[scipy.optimize.linear_sum_assignment(costs)].mean()))


@names_arguments
def mean_wasserstein(first: Records, second: Records) -> Distance:
    """The mean of W₂ over independent pairs of multisets: records with leading axes [pairs, n].

    Parameters
    ----------
    first
        Records, a pytree with leading axes [pairs, n].
    second
        Others of the same structure and numbers.

    Examples
    --------
    >>> import dpjax
    >>> import numpy as np
    >>> pairs = np.arange(6.0).reshape(3, 2)
    >>> dpjax.coupling.mean_wasserstein({"y": pairs}, {"y": pairs + 1}).value
    1.0
    """
    pair_of_rows(first, second)
    size = check_count("first", leading_size(first), "A standard error takes two pairs.", least=2)
    if leading_size(second) != size:
        fail("second", f"{leading_size(second)} pairs", f"{size}, as in first", "Compare as many pairs.")
    values = [wasserstein(take_entry(first, pair), take_entry(second, pair)) for pair in range(size)]
    return Distance(float(np.mean(values)), float(np.std(values, ddof=1) / np.sqrt(size)))


@names_arguments
def median_width(draws: Any, rng: np.random.Generator, *, num: int = 1000) -> float:
    """The median distance between two of `num` draws, chosen at random: the usual width of the kernel of `squared_mmd`.

    Gretton et al. (2012), Section 8. Use one width for all distances to be compared, for instance that of reference
    draws.

    Parameters
    ----------
    draws
        Pytree with leading axes [n].
    rng
        The generator of the choice.
    num
        How many of them are compared.

    Examples
    --------
    >>> import dpjax
    >>> import numpy as np
    >>> width = dpjax.coupling.median_width({"y": np.arange(200.0)}, np.random.default_rng(1), num=50)
    >>> 40 < width < 80
    True
    """
    rows = to_rows("draws", draws)
    check_generator(rng)
    check_count("num", num, "A distance takes two draws.", least=2)
    check_count("draws", len(rows), "A distance takes two draws.", least=2)
    chosen = rng.choice(len(rows), min(num, len(rows)), replace=False)
    return float(np.median(scipy.spatial.distance.pdist(rows[chosen])))


@names_arguments
def squared_mmd(first: Any, second: Any, width: float) -> Distance:
    """An unbiased estimate of the squared maximum mean discrepancy between the distributions of two samples.

    For the kernel exp(−‖x − y‖² / (2 width²)): Gretton et al. (2012), Lemma 6, equation (3). For equal distributions
    the estimate has mean zero, so it is often negative. The standard error is that of the jackknife, leaving out one
    draw of either sample at a time; its square is never too small on average (Efron and Stein, 1981).

    Parameters
    ----------
    first
        Draws, a pytree with leading axes [n], at least 3.
    second
        Others of the same structure, with leading axes [m], at least 3.
    width
        The width of the kernel, such as `median_width`; scale the coordinates beforehand.

    Examples
    --------
    >>> import dpjax
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> distance = dpjax.coupling.squared_mmd({"y": rng.normal(size=100)}, {"y": rng.normal(3.0, size=100)}, width=2.0)
    >>> distance.value > 10 * distance.standard_error
    True
    """
    check_positive_number("width", width)
    one, other = pair_of_rows(first, second)
    for name, rows in (("first", one), ("second", other)):
        check_count(name, len(rows), "Leaving one out must leave two draws.", least=3)
    across, back = kernel_sums(one, other, width)
    # The kernel of a point with itself is 1 and is not a pair.
    within_one, within_other = kernel_sums(one, one, width)[0] - 1, kernel_sums(other, other, width)[0] - 1
    n, m = len(one), len(other)

    def combine(inside: Any, inside_other: Any, between: Any, n: int, m: int) -> Any:
        return inside / (n * (n - 1)) + inside_other / (m * (m - 1)) - 2 * between / (n * m)

    sums = within_one.sum(), within_other.sum(), across.sum()
    without_one = combine(sums[0] - 2 * within_one, sums[1], sums[2] - across, n - 1, m)
    without_other = combine(sums[0], sums[1] - 2 * within_other, sums[2] - back, n, m - 1)
    variance = (n - 1) * np.var(without_one) + (m - 1) * np.var(without_other)
    return Distance(float(combine(*sums, n, m)), float(np.sqrt(variance)))


def kernel_sums(first: np.ndarray, second: np.ndarray, width: float) -> tuple[np.ndarray, np.ndarray]:
    """The sums of the kernel matrix [n, m] over its columns [n] and over its rows [m], block by block."""
    over_columns, over_rows = [], np.zeros(len(second))
    for begin in range(0, len(first), BLOCK):
        squares = scipy.spatial.distance.cdist(first[begin : begin + BLOCK], second, "sqeuclidean")
        kernel = np.exp(-squares / (2 * width**2))
        over_columns.append(kernel.sum(axis=1))
        over_rows += kernel.sum(axis=0)
    return np.concatenate(over_columns), over_rows


def pair_of_rows(first: Any, second: Any) -> tuple[np.ndarray, np.ndarray]:
    """The rows of two pytrees, or an error unless these have the same fields."""
    one, other = to_rows("first", first), to_rows("second", second)
    fields = [jax.tree.map(lambda leaf: np.shape(leaf)[1:], values) for values in (first, second)]
    if fields[0] != fields[1]:
        fail(
            "second",
            f"fields of shapes {fields[1]}",
            f"{fields[0]}, as in first",
            "Compare records of the same fields.",
        )
    return one, other


def to_rows(argument: str, values: Any) -> np.ndarray:
    """The numbers of each record or draw as a row [n, d], or an error."""
    remedy = "Pass arrays of one leading axis [n]."
    leaves = leaves_of(argument, values, remedy)
    for leaf in leaves:
        check_array(argument, leaf, np.isfinite, "finite numbers", remedy)
    sizes = {np.shape(leaf)[:1] for leaf in leaves}
    if len(sizes) != 1 or sizes <= {(), (0,)}:
        given = f"leading axes {sorted(map(list, sizes))}" if sizes else "nothing"
        fail(argument, given, "one leading axis [n] of all arrays, n at least 1", remedy)
    size = leading_size(values)
    return np.concatenate([np.asarray(leaf, float).reshape(size, -1) for leaf in leaves], axis=1)
