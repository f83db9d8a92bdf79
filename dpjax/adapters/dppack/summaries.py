"""Means, variances, tables and quantiles that DPpack published."""

from collections.abc import Mapping, Sequence
from math import log, sqrt
from typing import Any, Literal

import jax.numpy as jnp
import numpy as np
import scipy

from dpjax._util.spelling import names_arguments
from dpjax._util.validation import (
    check_array,
    check_choice,
    check_flag,
    check_moderate,
    check_number,
    check_positive_number,
    check_share,
    fail,
)
from dpjax.adapters.arguments import Bounds, as_names, quantile_within, read_n, read_range, read_square, read_value
from dpjax.base import Array
from dpjax.mechanisms.additive import Gaussian, Laplace
from dpjax.mechanisms.base import Mechanism
from dpjax.mechanisms.censored import Censored
from dpjax.mechanisms.rounded import Rounded
from dpjax.mechanisms.truncated import Truncated
from dpjax.numerics.next_floats import next_above
from dpjax.release import Release
from dpjax.release.releases.variance import variance
from dpjax.statistics import cells, histogram, mean
from dpjax.statistics.base import as_increasing

__all__ = ["read_histogram", "read_mean", "read_quantile", "read_sd", "read_table", "read_var"]

SENSITIVITIES = {"bounded": (2.0, sqrt(2)), "unbounded": (1.0, 1.0)}
"""How far one record moves a table of counts, in the L1 and the L2 norm, by ``which.sensitivity``."""


@names_arguments
def read_mean(
    value: float,
    bounds: Bounds,
    *,
    field: str,
    eps: float,
    n: int,
    mechanism: str = "Laplace",
    delta: float = 0.0,
    type_dp: str = "aDP",
) -> Release:
    """The release of ``meanDP``: noise on the mean of clipped values.

    Parameters
    ----------
    value
        The published mean.
    bounds
        The ``lower.bound`` and ``upper.bound`` of the call.
    field
        The record field [].
    eps
        The ``eps`` of the call.
    n
        The public number of records.
    mechanism
        The ``mechanism`` of the call, ``"Laplace"`` or ``"Gaussian"``.
    delta
        The ``delta`` of the call; if it is 0 the package adds Laplace noise, whatever the mechanism.
    type_dp
        The ``type.DP`` of the call, ``"aDP"`` or ``"pDP"``.

    Returns
    -------
    Release
        Of a `dpjax.statistics.mean`.

    Raises
    ------
    TypeError, ValueError
        If a number is out of its range, or an option is none of the package.

    Examples
    --------
    >>> from dpjax.adapters.dppack import read_mean
    >>> read_mean(41.3, (0, 100), field="age", eps=1.0, n=200).mechanism.scale
    0.5
    """
    lower, upper = read_range(bounds)
    number = read_n(n)
    noise = noise_of((upper - lower) / number, (upper - lower) / number, eps, mechanism, delta, type_dp)
    return Release(read_value(value), noise, mean(field, number, lower, upper), number)


@names_arguments
def read_var(
    value: float,
    bounds: Bounds,
    *,
    field: str,
    eps: float,
    n: int,
    mechanism: str = "Laplace",
    delta: float = 0.0,
    type_dp: str = "aDP",
) -> Release:
    """The release of ``varDP``: noise on the sample variance of clipped values, drawn anew until it is positive.

    Parameters
    ----------
    value
        The published variance.
    bounds
        The ``lower.bound`` and ``upper.bound`` of the call.
    field
        The record field [].
    eps
        The ``eps`` of the call.
    n
        The public number of records.
    mechanism
        As in `read_mean`.
    delta
        As in `read_mean`.
    type_dp
        As in `read_mean`.

    Returns
    -------
    Release
        `dpjax.releases.variance` of divisor n − 1, by `dpjax.mechanisms.Truncated` noise.

    Raises
    ------
    TypeError, ValueError
        As in `read_mean`, or if the value is negative.

    Examples
    --------
    >>> from dpjax.adapters.dppack import read_var
    >>> read_var(210.0, (0, 100), field="age", eps=1.0, n=200).mechanism.on_variance.mechanism.scale
    50.0
    """
    lower, upper = read_range(bounds)
    number = read_n(n, least=2)
    moved = (upper - lower) ** 2 / number
    noise = Truncated(noise_of(moved, moved, eps, mechanism, delta, type_dp), 0.0)
    return variance(read_value(value), noise, field=field, lower=lower, upper=upper, n=number, degrees=number - 1)


@names_arguments
def read_sd(
    value: float,
    bounds: Bounds,
    *,
    field: str,
    eps: float,
    n: int,
    mechanism: str = "Laplace",
    delta: float = 0.0,
    type_dp: str = "aDP",
) -> Release:
    """The release of ``sdDP``, the square root of ``varDP``: `read_var` of its square.

    Parameters
    ----------
    value
        The published standard deviation.
    bounds
        The ``lower.bound`` and ``upper.bound`` of the call.
    field
        The record field [].
    eps
        The ``eps`` of the call.
    n
        The public number of records.
    mechanism
        As in `read_mean`.
    delta
        As in `read_mean`.
    type_dp
        As in `read_mean`.

    Raises
    ------
    TypeError, ValueError
        As in `read_var`.

    Examples
    --------
    >>> from dpjax.adapters.dppack import read_sd
    >>> read_sd(14.5, (0, 100), field="age", eps=1.0, n=200).value.tolist()
    [210.25]
    """
    options: dict[str, Any] = {"mechanism": mechanism, "delta": delta, "type_dp": type_dp}
    return read_var(read_square(value), bounds, field=field, eps=eps, n=n, **options)


@names_arguments
def read_histogram(
    published: Mapping[str, Any],
    *,
    field: str,
    eps: float,
    n: Any,
    mechanism: str = "Laplace",
    delta: float = 0.0,
    type_dp: str = "aDP",
    which_sensitivity: Literal["bounded", "unbounded"] = "bounded",
    allow_negative: bool = False,
) -> Release:
    """The release of ``histogramDP`` without ``normalize``: noisy counts, negative ones set to 0, rounded.

    Parameters
    ----------
    published
        The histogram, with ``breaks`` [k + 1] and ``counts`` [k]. The breaks must not come from the records: the call
        had a vector for ``breaks``.
    field
        The record field [].
    eps
        The ``eps`` of the call.
    n
        The public number of records, or `dpjax.UnknownCount`.
    mechanism
        As in `read_mean`.
    delta
        As in `read_mean`.
    type_dp
        As in `read_mean`.
    which_sensitivity
        The ``which.sensitivity`` of the call; of ``"both"`` read each histogram with its own.
    allow_negative
        The ``allow.negative`` of the call.

    Returns
    -------
    Release
        The release of a `dpjax.statistics.histogram` whose bins have their upper edges, as those of R. A record beyond
        the breaks, at which R stops, counts in the bin that is nearest.

    Raises
    ------
    TypeError, ValueError
        If it is no histogram with whole counts, its breaks do not increase, or an option is none of the package.

    Examples
    --------
    >>> from dpjax.adapters.dppack import read_histogram
    >>> published = {"breaks": [0, 10, 20, 30], "counts": [12, 31, 7]}
    >>> read_histogram(published, field="age", eps=1.0, n=50).statistic.dimension
    3
    """
    if not isinstance(published, Mapping) or not {"breaks", "counts"} <= set(published):
        remedy = "Write it by jsonlite::toJSON(unclass(result), digits = NA), and pass what json.loads returns."
        fail("published", type(published).__name__, "a mapping with breaks and counts", remedy, error=TypeError)
    edges = as_increasing("breaks", published["breaks"], "Pass the breaks of the histogram.", least=2)
    counts = read_counts(published["counts"], (len(edges) - 1,))
    noise = noise_of(*read_sensitivity(which_sensitivity), eps, mechanism, delta, type_dp)
    return Release(counts, rounded(noise, allow_negative), closed_above(field, edges), n)


@names_arguments
def read_table(
    published: Sequence[Any],
    field: str | Sequence[str],
    *,
    eps: float,
    n: Any,
    mechanism: str = "Laplace",
    delta: float = 0.0,
    type_dp: str = "aDP",
    which_sensitivity: Literal["bounded", "unbounded"] = "bounded",
    allow_negative: bool = False,
) -> Release:
    """The release of ``tableDP``: noisy counts of a contingency table, rounded, negative ones set to 0.

    Parameters
    ----------
    published : [k] or [k, l, ...]
        The counts, one axis for each variable, as ``jsonlite::toJSON`` nests them.
    field
        The integer record field [] of each variable; its categories are in the table's order.
    eps
        The ``eps`` of the call.
    n
        The public number of records, or `dpjax.UnknownCount`.
    mechanism
        As in `read_histogram`.
    delta
        As in `read_histogram`.
    type_dp
        As in `read_histogram`.
    which_sensitivity
        As in `read_histogram`.
    allow_negative
        As in `read_histogram`.

    Returns
    -------
    Release
        Of `dpjax.statistics.cells`. R tabulates the categories that occur; those of a factor are all its levels.

    Raises
    ------
    TypeError, ValueError
        If counts are not whole numbers, there is not one field for each axis, or an option is none of the package.

    Examples
    --------
    >>> from dpjax.adapters.dppack import read_table
    >>> read_table([[4, 0, 9], [2, 5, 1]], ("sex", "group"), eps=1.0, n=20).statistic.dimension
    6
    """
    fields = (field,) if isinstance(field, str) else as_names("field", field)
    remedy = "Give one field for each variable of the table."
    check_array("published", published, lambda array: array.ndim == len(fields), f"{len(fields)} axes", remedy)
    shape = np.shape(published)
    noise = noise_of(*read_sensitivity(which_sensitivity), eps, mechanism, delta, type_dp)
    return Release(read_counts(published, shape), rounded(noise, allow_negative), cells(fields, shape), n)


@names_arguments
def read_quantile(
    value: float, quant: float, bounds: Bounds, *, field: str, eps: float, n: int, num_bins: int
) -> Release:
    """The release of ``quantileDP`` with uniform sampling, or ``medianDP``: `dpjax.releases.interval_quantile`.

    Parameters
    ----------
    value
        The published quantile. Without ``uniform.sampling`` it is the value of some record, which has no density:
        that cannot be used.
    quant
        The ``quant`` of the call; 0.5 for a median.
    bounds
        The ``lower.bound`` and ``upper.bound`` of the call.
    field
        The record field [].
    eps
        The ``eps`` of the call.
    n
        The public number of records.
    num_bins
        The number of bins on which records are counted, as in `dpjax.releases.interval_quantile`.

    Raises
    ------
    TypeError, ValueError
        As in `read_mean`, or if ``quant`` is not strictly between 0 and 1.

    Examples
    --------
    >>> from dpjax.adapters.dppack import read_quantile
    >>> read_quantile(41.3, 0.5, (0, 100), field="age", eps=1.0, n=200, num_bins=50).mechanism.sensitivity
    1.0
    """
    check_share("quant", quant)
    return quantile_within(value, quant, bounds, n, field=field, epsilon=read_eps(eps), num_bins=num_bins)


def noise_of(
    moved: float, moved_in_two: float, eps: float, mechanism: str, delta: float, type_dp: str
) -> Laplace | Gaussian:
    """The noise of the package, given how far one record moves a value in the L1 and the L2 norm."""
    budget = read_eps(eps)
    check_choice("mechanism", mechanism, ("Laplace", "Gaussian"), "Pass the mechanism of the call.")
    check_choice("type_dp", type_dp, ("aDP", "pDP"), "Pass the type.DP of the call.")
    check_number("delta", delta)
    check_array("delta", delta, lambda array: (array >= 0) & (array < 1), "a number in [0, 1)", "Pass its delta.")
    if mechanism == "Laplace" or delta == 0:
        return Laplace(moved / budget)
    if type_dp == "pDP":
        quantile = float(scipy.special.ndtri(delta / 2))
        return Gaussian(moved_in_two * (sqrt(quantile**2 + 2 * budget) - quantile) / (2 * budget))
    if budget >= 1:
        given = f"type.DP {type_dp!r} with eps = {budget:g}"
        fail("type_dp", given, "'pDP', or 'aDP' with eps below 1", "The package refuses others: check the call.")
    return Gaussian(moved_in_two * sqrt(2 * log(1.25 / delta)) / budget)


def rounded(noise: Laplace | Gaussian, allow_negative: bool) -> Mechanism:
    """Noise whose value was rounded to a whole number, and set to 0 if it was negative, unless that is allowed."""
    check_flag("allow_negative", allow_negative)
    whole = Rounded(noise, step=1.0)
    return whole if allow_negative else Censored(whole, lower=0.0)


def closed_above(field: str, edges: tuple[float, ...]) -> Any:
    """The counts of a field in bins that have their upper edges, the first bin its lower one as well."""
    return histogram(field, [edges[0], *(next_above(edge, np.float32) for edge in edges[1:])])


def read_sensitivity(which: Any) -> tuple[float, float]:
    """How far one record moves a table, in both norms, or an error."""
    remedy = "Of 'both' read each result with its own, and pass both to dpjax.joint."
    check_choice("which_sensitivity", which, SENSITIVITIES, remedy)
    return SENSITIVITIES[which]


def read_counts(counts: Any, shape: tuple[int, ...]) -> Array:
    """Whole counts of a shape as a vector, or an error."""
    remedy = "Pass the counts of a call without normalize; those that sum to 1 have lost their scale."
    check_array(
        "counts", counts, lambda array: (array == np.round(array)) & (array.dtype != bool), "whole numbers", remedy
    )
    if np.shape(counts) != shape:
        fail("counts", f"shape {list(np.shape(counts))}", f"shape {list(shape)}", remedy)
    return jnp.ravel(jnp.asarray(counts, jnp.result_type(float)))


def read_eps(eps: Any) -> float:
    """A positive ε, or an error."""
    check_positive_number("eps", eps, "Pass the eps of the call.")
    check_moderate("eps", eps)
    return float(eps)
