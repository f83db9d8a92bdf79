"""How much noise a budget requires for sums: one scale for each of the statistics that are released side by side."""

from collections.abc import Sequence
from math import inf, sqrt
from typing import Literal, NamedTuple

import jax.numpy as jnp
import numpy as np

from dpjax._util.validation import check_array, fail, name_of
from dpjax.mechanisms.privacy import Neighbours
from dpjax.private.accounting import closed_form
from dpjax.private.accounting.ledger import BudgetExceeded, Ledger
from dpjax.private.accounting.query import Budget, NoiseFamily
from dpjax.private.noise.secure import GRID_BITS, grid_of
from dpjax.private.people import EACH_RECORD, People
from dpjax.statistics import RecordStatistic, Stacked
from dpjax.statistics.base import dimension_of, is_whole

__all__ = ["Cost", "Part", "affordable", "cost_of", "price", "read_statistic"]

MARGIN = 1e-12
"""The share of a cost that is kept for rounding in its sums and roots."""
SUM_TO_ONE = 1e-9
LEAST_COST = 1e-200
"""Below it the noise of a statistic is no float."""
MOST_STEPS = 2.0**62
"""The length of one contribution, in steps of the grid, that `sum_on_grid` allows."""


class Part(NamedTuple):
    """One of the statistics side by side, and the noise of its sum.

    Attributes
    ----------
    size
        The number of its coordinates.
    sensitivity
        How far its sum moves between neighbouring data sets, in the norm of its noise.
    multiplier
        The noise that is charged, over the bound of one record's norm; see `Query`.
    scale
        The standard deviation of Gaussian noise of each coordinate, or the scale of Laplace noise.
    noise
        Its family.
    step
        The step of the grid that sum and noise are on; 1 for Laplace noise on whole numbers.
    """

    size: int
    sensitivity: float
    multiplier: float
    scale: float
    noise: NoiseFamily
    step: float


class Cost(NamedTuple):
    """What a release may spend: μ with Gaussian noise, and ε with Laplace noise."""

    noise: NoiseFamily
    amount: float


def read_statistic(statistic: object) -> RecordStatistic:
    """The statistic, or an error unless it says how far one record can move its sum, and has a dimension."""
    if not isinstance(statistic, RecordStatistic):
        remedy = "Bound what one record can add: dpjax.statistics.clipped(function, bound, dimension=d)."
        fail("statistic", name_of(statistic), "a statistic with a known sensitivity", remedy, error=TypeError)
    if dimension_of(statistic) is None:
        remedy = "Pass dimension=, so that noise can be drawn for each coordinate."
        fail("statistic", f"{name_of(statistic)} of unknown length", "a statistic of known dimension", remedy)
    return statistic


def affordable(ledger: Ledger, budget: Budget | None) -> Cost:
    """What a release may spend: all of its own budget, or whatever the ledger has left.

    Raises
    ------
    BudgetExceeded
        If nothing is left.
    ValueError
        If the relation is not the ledger's.
    """
    whole = ledger.budget
    if budget is not None:
        if budget.neighbours != whole.neighbours:
            remedy = "Keep to one neighbouring relation."
            fail("budget", budget.neighbours, f"{whole.neighbours}, as the ledger", remedy)
        return cost_of(budget)
    left = ledger.remaining()
    if left.noise_multiplier == inf:
        raise BudgetExceeded(
            f"budget: given {whole}, all of which is spent; expected a part that is left. Start with a larger budget."
        )
    return Cost("laplace", left.epsilon) if left.rho is None else Cost("gaussian", left.rho)


def cost_of(budget: Budget) -> Cost:
    """What a budget allows: Laplace noise if δ is 0, and else Gaussian noise."""
    if budget.delta == 0:
        return Cost("laplace", budget.epsilon * (1 - MARGIN))
    return Cost("gaussian", closed_form.largest_mu(budget.epsilon, budget.delta) * (1 - MARGIN))


def price(
    statistic: RecordStatistic,
    cost: Cost,
    neighbours: Neighbours,
    shares: Sequence[float] | None,
    weights: Sequence[float] | None,
    people: People = EACH_RECORD,
) -> tuple[Part, ...]:
    """The noise of each statistic side by side with which the release of all costs that much.

    Parts of the cost add up: a record moves all sums at once. Gaussian noise of σ on sums of sensitivity Δ costs
    Δ² / 2σ². With weights w, Σ w d σ² is least if shares are proportional to √(w d) Δ. Laplace noise of scale b
    costs Δ / b, and Σ w d b² is least if shares are proportional to (w d Δ²)^⅓.
    """
    statistics = statistic.statistics if isinstance(statistic, Stacked) else (statistic,)
    parts = [read_statistic(one) for one in statistics]
    for leaf in statistic.leaves:
        check_held(leaf)
    norm: Literal[1, 2] = 1 if cost.noise == "laplace" else 2
    lengths = [people.sensitivity(one, norm, neighbours) for one in parts]
    sizes = [dimension_of(one) or 0 for one in parts]
    given = read_shares(cost.noise, sizes, lengths, shares, weights)
    if np.min(given) * cost.amount < LEAST_COST:
        remedy = "Raise the least share, or weight, or leave that statistic out."
        fail("shares", f"{np.min(given):.3g} of the budget for one statistic", "a share that is not so near 0", remedy)
    noise_of = laplace_of if cost.noise == "laplace" else gaussian_of
    return tuple(
        noise_of(one, size, length, cost.amount * share, neighbours, people.max_rows)
        for one, size, length, share in zip(parts, sizes, lengths, given, strict=True)
    )


def gaussian_of(
    statistic: RecordStatistic, size: int, length: float, mu: float, neighbours: Neighbours, most: int
) -> Part:
    """The noise with which one sum costs μ.

    It accounts for contributions in floats, and for their rounding to a grid.
    """
    check_moves(statistic, length, neighbours)
    step = closed_form.sensitivity(1.0, neighbours)
    multiplier = step / sqrt(2 * mu)
    rounding = check_rounding(multiplier, most * sqrt(size), size)
    radius = statistic.radius(2)
    scale = (length + 2 * most * statistic.rounding() * radius) / step * multiplier / (1 - rounding)
    grid = float(grid_of(np.asarray(scale)))
    check_far(radius, scale, grid)
    return Part(size, length, multiplier, scale, "gaussian", grid)


def laplace_of(
    statistic: RecordStatistic, size: int, length: float, epsilon: float, neighbours: Neighbours, most: int
) -> Part:
    """The noise with which one sum costs ε.

    Whole numbers are on a grid of their own. Others are rounded to one, which moves the distance of two contributions
    by a step for each coordinate. Numbers that floats do not hold exactly are computed with errors.
    """
    check_moves(statistic, length, neighbours)
    step = closed_form.sensitivity(1.0, neighbours)
    multiplier, radius = step / epsilon, statistic.radius(1)
    rounding = 0.0 if is_whole(statistic) else check_rounding(multiplier, most * size, size)
    scale = (length + 2 * most * statistic.rounding() * radius) / step * multiplier / (1 - rounding)
    grid = 1.0 if is_whole(statistic) else float(grid_of(np.asarray(scale)))
    check_far(radius, scale, grid)
    return Part(size, length, multiplier, scale * (1 + MARGIN), "laplace", grid)


def check_moves(statistic: RecordStatistic, length: float, neighbours: Neighbours) -> None:
    """Raise if the sum is the same for all neighbours."""
    if length == 0:
        given, remedy = f"{name_of(statistic)}, whose sum is the same for all neighbours", "Leave it out: it is public."
        fail("statistic", given, f"a sum that depends on the records under {neighbours}", remedy)


def check_held(statistic: RecordStatistic) -> None:
    """Raise unless the device's floats hold what a record can add: else no contribution would be finite."""
    numbers = jnp.finfo(jnp.result_type(float))
    if not statistic.radius(1) <= float(numbers.max):
        given, remedy = f"contributions of up to {statistic.radius(1):.3g}", "Release it in larger units."
        fail("statistic", given, f"numbers that {numbers.dtype} holds", remedy)


def check_rounding(multiplier: float, steps: float, size: int) -> float:
    """The share of the noise that covers moves by so many steps of the grid, or an error if it is large."""
    rounding = multiplier * steps * 2.0**-GRID_BITS
    if rounding > 0.1:
        given, remedy = f"noise of {multiplier:.3g} bounds on {size} sums", "Raise the budget, or its share."
        fail("budget", given, "less noise", remedy)
    return rounding


def check_far(radius: float, scale: float, step: float) -> None:
    """Raise if contributions are too far from 0 to be counted in steps of the grid."""
    if radius > MOST_STEPS * step:
        given = f"contributions of {radius:.3g} under noise of {scale:.3g}"
        fail("statistic", given, "contributions nearer to 0", "Subtract a public number from them.")


def read_shares(
    noise: NoiseFamily,
    sizes: Sequence[int],
    lengths: Sequence[float],
    shares: Sequence[float] | None,
    weights: Sequence[float] | None,
) -> np.ndarray:
    """The shares of the parts, which sum to one: as given, by weights, or equal."""
    count = len(sizes)
    if shares is not None and weights is not None:
        fail("weights", "weights and shares", "one of them", "Pass shares of the budget, or weights of the variances.")
    if shares is not None:
        given = read_positive("shares", shares, count)
        if abs(given.sum() - 1) > SUM_TO_ONE:
            fail("shares", shares, "numbers that sum to 1", "Divide them by their sum.")
        return given / given.sum()
    if weights is not None:
        squares = read_positive("weights", weights, count) * np.asarray(sizes) * np.square(lengths)
        wanted = np.sqrt(squares) if noise == "gaussian" else np.cbrt(squares)
        return np.asarray(wanted / wanted.sum())
    return np.full(count, 1 / count)


def read_positive(name: str, numbers: Sequence[float], count: int) -> np.ndarray:
    """One positive number for each part, or an error."""
    remedy = "Pass one number above 0 for each statistic of statistics.stacked."
    check_array(name, numbers, lambda array: (array > 0) & (array.dtype != bool), "finite numbers above 0", remedy)
    array = np.asarray(numbers, float)
    if array.shape != (count,):
        fail(name, f"shape {list(array.shape)}", f"{count} numbers, as many as statistics side by side", remedy)
    return array
