"""Quantiles of a field, published by mechanisms that prefer points with the right number of records on either side."""

from collections.abc import Sequence
from typing import Any, Literal

import jax.numpy as jnp
import numpy as np

from dpjax._util.spelling import names_arguments
from dpjax._util.validation import check_array, check_choice, check_count, check_number, check_share, fail
from dpjax.mechanisms.interval_quantile import IntervalQuantile
from dpjax.mechanisms.selection import RACES, ExponentialMechanism, ReportNoisyMax, Selection
from dpjax.mechanisms.utilities import QuantileScores
from dpjax.release import Release
from dpjax.statistics import RecordStatistic, around, cells, histogram
from dpjax.statistics.base import as_increasing

__all__ = ["interval_quantile", "median", "quantile"]

MOST_BINS = 1_000_000
"""The largest number of bins: each has a sum of its own."""

MATCH = 1e-6
"""The relative distance at which a published number is taken to be a candidate, whatever precision it went through."""


@names_arguments
def quantile(
    value: float,
    probability: float,
    *,
    candidates: Sequence[float] | int,
    field: str,
    epsilon: float,
    n: Any,
    sensitivity: float | None = None,
    noise: Literal["gumbel", "exponential", "laplace"] = "gumbel",
) -> Release:
    """The release of a quantile that was chosen among listed candidates, by the counts of records beside each.

    Parameters
    ----------
    value
        The published quantile, one of the candidates.
    probability
        The α of the quantile: 0.5 for a median.
    candidates : [k]
        Increasing points, in the field's units. Or the number k of ordered categories 0, ..., k - 1 that the field has.
    field
        The record field [].
    epsilon
        ε of the mechanism.
    n
        The public number of records, as in `dpjax.Release`.
    sensitivity
        Δ to which the noise was calibrated; by default max(α, 1 − α), which one record more or less moves a score by.
        If one record is replaced it is 1.
    noise
        The noise on the scores: ``"gumbel"``, which is the exponential mechanism; ``"exponential"``, which is
        permute-and-flip; or ``"laplace"``.

    Returns
    -------
    Release
        Of `dpjax.statistics.around` the candidates, or of `dpjax.statistics.cells`. Its value is the candidate's
        number.

    Raises
    ------
    TypeError, ValueError
        If the value is no candidate, the candidates do not increase or are fewer than two, or a number is out of its
        range.

    Notes
    -----
    The score of a candidate c is −|(1 − α) #(x < c) − α #(x > c)|, the convention of OpenDP
    (`dpjax.mechanisms.QuantileScores`).

    Examples
    --------
    >>> import dpjax
    >>> ages = dpjax.releases.quantile(40, 0.25, candidates=range(20, 80, 10), field="age", epsilon=1.0, n=200)
    >>> ages.value.tolist(), ages.mechanism.sensitivity
    ([2.0], 0.75)
    """
    check_share("probability", probability, "Pass the α of the quantile: 0.5 for a median.")
    points, statistic = read_candidates(candidates, field)
    place = place_of(value, points)
    moved = max(probability, 1 - probability) if sensitivity is None else sensitivity
    scores = QuantileScores(float(probability), len(points))
    mechanism: Selection = ExponentialMechanism(scores, epsilon, moved)
    check_choice("noise", noise, RACES, "Name the noise that was added to the utilities.")
    if noise != "gumbel":
        mechanism = ReportNoisyMax(scores, epsilon, moved, noise)
    return Release(jnp.array([place]), mechanism, statistic, n)


@names_arguments
def median(
    value: float,
    *,
    candidates: Sequence[float] | int,
    field: str,
    epsilon: float,
    n: Any,
    sensitivity: float | None = None,
    noise: Literal["gumbel", "exponential", "laplace"] = "gumbel",
) -> Release:
    """The release of a median that was chosen among listed candidates: `quantile` with probability 0.5.

    Parameters
    ----------
    value
        The published median, one of the candidates.
    candidates : [k]
        Increasing points, or the number k of ordered categories.
    field
        The record field [].
    epsilon
        ε of the mechanism.
    n
        The public number of records, as in `dpjax.Release`.
    sensitivity
        Δ to which the noise was calibrated; by default 0.5.
    noise
        The noise on the scores, as in `quantile`.

    Returns
    -------
    Release
        As that of `quantile`.

    Raises
    ------
    TypeError, ValueError
        As in `quantile`.

    Examples
    --------
    >>> import dpjax
    >>> dpjax.releases.median(2, candidates=5, field="cell", epsilon=1.0, n=80).statistic.dimension
    5
    """
    options = {"candidates": candidates, "field": field, "epsilon": epsilon, "n": n}
    return quantile(value, 0.5, **options, sensitivity=sensitivity, noise=noise)


@names_arguments
def interval_quantile(
    value: float,
    probability: float,
    *,
    lower: float,
    upper: float,
    num_bins: int,
    field: str,
    epsilon: float,
    n: Any,
    sensitivity: float = 1.0,
) -> Release:
    """The release of a quantile drawn on an interval: between two order statistics, then a uniform point between them.

    Parameters
    ----------
    value
        The published quantile, in [lower, upper].
    probability
        The α of the quantile: 0.5 for a median.
    lower
        The lower end of the interval; records beyond it were clipped to it.
    upper
        The upper end.
    num_bins
        The number of bins on which records are counted. The log-density is off by at most ε / Δ times the number of
        records in the fullest bin (`dpjax.mechanisms.IntervalQuantile.error_bound` computes a bound). A sweep's cost
        grows with the number of bins.
    field
        The record field [].
    epsilon
        ε of the mechanism.
    n
        The public number of records, as in `dpjax.Release`.
    sensitivity
        Δ to which it was calibrated: 1 in diffprivlib.

    Returns
    -------
    Release
        Of a `dpjax.statistics.histogram` with a bin on each side of the interval.

    Raises
    ------
    TypeError, ValueError
        If the value is not in the interval, its ends are not in order, or a number is out of its range.

    Examples
    --------
    >>> import dpjax
    >>> release = dpjax.releases.interval_quantile(
    ...     41.3, 0.5, lower=0.0, upper=100.0, num_bins=50, field="age", epsilon=1.0, n=200
    ... )
    >>> release.statistic.dimension
    52
    """
    mechanism = IntervalQuantile(probability, lower, upper, epsilon, sensitivity)
    check_number("value", value)
    check_array("value", value, np.isfinite, "a finite number", "Pass the published quantile.")
    size = check_count("num_bins", num_bins, "Pass the number of bins on which records are counted.", most=MOST_BINS)
    width = (upper - lower) / size
    edges = lower + width * np.arange(-1, size + 2)
    return Release(jnp.asarray([float(value)]), mechanism, histogram(field, edges.tolist()), n)


def read_candidates(candidates: Any, field: str) -> tuple[np.ndarray, RecordStatistic]:
    """The candidates [k], and the statistic that counts beside them."""
    if isinstance(candidates, (int, np.integer)):
        size = check_count("candidates", candidates, "Pass the number of ordered categories.", least=2, most=MOST_BINS)
        return np.arange(size, dtype=float), cells(field, size)
    remedy = "Pass the points among which the quantile was chosen, sorted and each once."
    given = list(candidates) if isinstance(candidates, range) else candidates
    points = as_increasing("candidates", given, remedy, least=2)
    return np.array(points), around(field, points)


def place_of(value: Any, points: np.ndarray) -> int:
    """The number of the candidate that was published, or an error if there is none."""
    check_number("value", value)
    check_array("value", value, np.isfinite, "a finite number", "Pass the published quantile.")
    place = int(np.argmin(np.abs(points - float(value))))
    if not np.isclose(points[place], float(value), rtol=MATCH, atol=0.0):
        fail("value", value, f"one of the {points.size} candidates", f"The nearest is {points[place]:g}.")
    return place
