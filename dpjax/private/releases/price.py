"""How much noise a budget buys for sums: one scale for each of the statistics that are released side by side."""

from collections.abc import Sequence
from math import sqrt
from typing import NamedTuple

import numpy as np

from dpjax._util.validation import check_array, fail, name_of
from dpjax.mechanisms.privacy import Neighbours
from dpjax.private.accounting import closed_form
from dpjax.private.accounting.composition import composed_mu
from dpjax.private.accounting.ledger import BudgetExceeded, Ledger
from dpjax.private.accounting.query import Budget
from dpjax.private.noise.secure import GRID_BITS
from dpjax.private.releases.exact_sum import rounding_of
from dpjax.statistics import RecordStatistic, Stacked
from dpjax.statistics.base import dimension_of

__all__ = ["Part", "affordable_mu", "price", "read_statistic"]

MARGIN = 1e-12
"""The share of μ that pays for rounding in its sums and roots."""
LEAST_LEFT = 1e-9
"""The share of a budget below which nothing is taken to be left of it."""
SUM_TO_ONE = 1e-9
MOST_SCALES = 2.0**28
"""Of one contribution, in noise deviations: it is then within the 2^62 steps that `sum_on_grid` allows."""


class Part(NamedTuple):
    """One of the statistics side by side, and the noise of its sum.

    Attributes
    ----------
    size
        The number of its coordinates.
    sensitivity
        How far its sum moves between neighbouring data sets, in the L2 norm.
    multiplier
        The noise that is charged, over the bound of one record's norm; see `Query`.
    scale
        The standard deviation of the noise of each coordinate.
    """

    size: int
    sensitivity: float
    multiplier: float
    scale: float


def read_statistic(statistic: object) -> RecordStatistic:
    """The statistic, or an error unless it says how far one record can move its sum, and has a dimension."""
    if not isinstance(statistic, RecordStatistic):
        remedy = "Bound what one record can add: dpjax.statistics.clipped(function, bound, dimension=d)."
        fail("statistic", name_of(statistic), "a statistic with a known sensitivity", remedy, error=TypeError)
    if dimension_of(statistic) is None:
        remedy = "Pass dimension=, so that noise can be drawn for each coordinate."
        fail("statistic", f"{name_of(statistic)} of unknown length", "a statistic of known dimension", remedy)
    return statistic


def affordable_mu(ledger: Ledger, budget: Budget | None) -> float:
    """The μ that a release may spend: of its own budget, or whatever the ledger has left.

    Raises
    ------
    BudgetExceeded
        If nothing is left.
    ValueError
        If the relation is not the ledger's, or what is left is not known to a digit.
    """
    whole = ledger.budget
    if budget is not None:
        if budget.neighbours != whole.neighbours:
            remedy = "Keep to one neighbouring relation."
            fail("budget", budget.neighbours, f"{whole.neighbours}, as the ledger", remedy)
        return closed_form.largest_mu(budget.epsilon, budget.delta) * (1 - MARGIN)
    spent = ledger.queries
    if any(query.sampling_rate < 1 for query in spent):
        remedy = "Pass budget=, of which private.Ledger.affordable tells whether it fits."
        fail("budget", "none, with subsampled queries in the ledger", "what this release may cost", remedy)
    total = closed_form.largest_mu(whole.epsilon, whole.delta)
    left = total - composed_mu(spent, whole.neighbours)
    if left <= LEAST_LEFT * total:
        raise BudgetExceeded(
            f"budget: given {whole}, all of which is spent; expected a part that is left. Start with a larger budget."
        )
    return left * (1 - MARGIN)


def price(
    statistic: RecordStatistic,
    mu: float,
    neighbours: Neighbours,
    shares: Sequence[float] | None,
    weights: Sequence[float] | None,
) -> tuple[Part, ...]:
    """The noise of each statistic side by side with which the release of all costs μ.

    Noise of σ on sums of sensitivity Δ costs Δ² / 2σ², and the parts add up: a record moves all of them at once. With
    weights w, Σ w d σ² is least where shares are proportional to √(w d) Δ.
    """
    statistics = statistic.statistics if isinstance(statistic, Stacked) else (statistic,)
    parts = [read_statistic(one) for one in statistics]
    lengths = [one.sensitivity(2, neighbours) for one in parts]
    sizes = [dimension_of(one) or 0 for one in parts]
    given = read_shares(len(parts), sizes, lengths, shares, weights)
    return tuple(
        noise_of(one, size, length, mu * share, neighbours)
        for one, size, length, share in zip(parts, sizes, lengths, given, strict=True)
    )


def noise_of(statistic: RecordStatistic, size: int, length: float, mu: float, neighbours: Neighbours) -> Part:
    """The noise with which one sum costs μ: it pays for contributions in floats, and for their rounding to a grid."""
    if length == 0:
        given, remedy = f"{name_of(statistic)}, whose sum is the same for all neighbours", "Leave it out: it is public."
        fail("statistic", given, f"a sum that depends on the records under {neighbours}", remedy)
    step = closed_form.sensitivity(1.0, neighbours)
    multiplier = step / sqrt(2 * mu)
    rounding = multiplier * sqrt(size) * 2.0**-GRID_BITS
    if rounding > 0.1:
        fail(
            "budget",
            f"noise of {multiplier:.3g} bounds on {size} sums",
            "less noise",
            "Raise the budget, or its share.",
        )
    radius = statistic.radius(2)
    scale = (length + 2 * rounding_of(statistic) * radius) / step * multiplier / (1 - rounding)
    if radius > MOST_SCALES * scale:
        given, remedy = (
            f"contributions of {radius:.3g} under noise of {scale:.3g}",
            "Subtract a public number from them.",
        )
        fail("statistic", given, "contributions nearer to 0", remedy)
    return Part(size, length, multiplier, scale)


def read_shares(
    count: int,
    sizes: Sequence[int],
    lengths: Sequence[float],
    shares: Sequence[float] | None,
    weights: Sequence[float] | None,
) -> np.ndarray:
    """The shares of the parts, which sum to one: as given, by weights, or equal."""
    if shares is not None and weights is not None:
        fail("weights", "weights and shares", "one of them", "Pass shares of the budget, or weights of the variances.")
    if shares is not None:
        given = read_positive("shares", shares, count)
        if abs(given.sum() - 1) > SUM_TO_ONE:
            fail("shares", shares, "numbers that sum to 1", "Divide them by their sum.")
        return given / given.sum()
    if weights is not None:
        wanted = np.sqrt(read_positive("weights", weights, count) * np.asarray(sizes)) * np.asarray(lengths)
        return np.asarray(wanted / wanted.sum())
    return np.full(count, 1 / count)


def read_positive(name: str, numbers: Sequence[float], count: int) -> np.ndarray:
    """One positive number for each part, or an error."""
    remedy = "Pass one number above 0 for each statistic of statistics.stacked."
    check_array(name, numbers, lambda array: array > 0, "finite numbers above 0", remedy)
    array = np.asarray(numbers, float)
    if array.shape != (count,):
        fail(name, f"shape {list(array.shape)}", f"{count} numbers, as many as statistics side by side", remedy)
    return array
