"""A quantile drawn on an interval, with a density that depends on how many records are below each point."""

from dataclasses import dataclass, field
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.pytree import frozen_pytree
from dpjax._util.validation import check_array, check_float, check_number, check_positive_number, check_share, fail
from dpjax._util.words import amount
from dpjax.base import Array, Key
from dpjax.mechanisms.base import Mechanism, as_floating
from dpjax.mechanisms.privacy import Privacy, check_privacy
from dpjax.mechanisms.promises import Promise, ProtectedSums, pure
from dpjax.mechanisms.selection import REMOTE

__all__ = ["IntervalQuantile"]


@frozen_pytree
@dataclass(frozen=True)
class IntervalQuantile(Mechanism):
    """Releases a point t of [lower, upper] with density proportional to exp(−ε |N(t) − α n| / 2Δ).

    N(t) is the number of records below t. The statistic is [m + 2]: the counts below the interval, in m equal bins of
    it, and above it. Within a bin N(t) is taken to grow evenly.

    Parameters
    ----------
    probability : []
        The α of the quantile, in (0, 1).
    lower : []
        The lower end of the interval.
    upper : []
        The upper end, above it.
    epsilon : []
        ε.
    sensitivity : []
        Δ; 1 as it is usually published, if one record is replaced.
    privacy
        What the release promises; never needed for inference.

    Raises
    ------
    TypeError, ValueError
        If a number is out of its range, or the ends are in the wrong order.

    Notes
    -----
    Smith (2011): an interval between neighbouring order statistics is drawn in proportion to its length times exp(ε u /
    2Δ), then a uniform point of it. With the records themselves the density is exact. From the counts of bins the
    log-density is off by `error_bound` at most. This is never more than ε / Δ times the number of records in the
    fullest bin, and less if records are spread in their bins.

    Examples
    --------
    >>> from dpjax.mechanisms.interval_quantile import IntervalQuantile
    >>> import jax.numpy as jnp
    >>> mechanism = IntervalQuantile(0.5, lower=0.0, upper=2.0, epsilon=1.0, sensitivity=1.0)
    >>> round(float(mechanism.log_density(jnp.array([0.5]), jnp.zeros(6))), 3)
    -0.693
    """

    json_name: ClassVar[str | None] = "interval_quantile"
    value_size: ClassVar[int] = 1

    probability: Array | float
    lower: Array | float
    upper: Array | float
    epsilon: Array | float
    sensitivity: Array | float = 1.0
    privacy: Privacy | None = field(default=None, metadata={"static": True}, kw_only=True)

    def __post_init__(self) -> None:
        check_privacy(self.privacy)
        check_share("probability", self.probability, "Pass the α of the quantile: 0.5 for a median.")
        check_positive_number("epsilon", self.epsilon, "Pass the ε by which the point was drawn.")
        check_positive_number("sensitivity", self.sensitivity, "Pass how far one record moves N(t) − α n.")
        for name in ("epsilon", "sensitivity"):
            check_float(name, getattr(self, name))
        for name in ("lower", "upper"):
            check_number(name, getattr(self, name))
            check_array(name, getattr(self, name), np.isfinite, "a finite number", "Pass the end of the interval.")
        remedy = "Swap the ends of the interval."
        check_array("upper", self.upper, lambda array: array > self.lower, "a number above lower", remedy)

    def check_value(self, argument: str, value: Array) -> None:
        """Raise unless the point lies in the interval."""
        expected = f"a number from {amount(self.lower)} to {amount(self.upper)}"
        remedy = "Pass the interval that the quantile was drawn on."
        check_array(argument, value, lambda array: (array >= self.lower) & (array <= self.upper), expected, remedy)

    def _check_drawn(self, argument: str, value: Array, dimension: int) -> None:
        """Raise unless the statistic has bins."""
        del argument, value
        if dimension < 3:
            remedy = "Count below the interval, in its bins, and above it."
            fail("statistic", f"{dimension} counts", "at least 3", remedy)

    def _words(self) -> str:
        """The interval, ε and Δ."""
        ends = f"{amount(self.lower)} to {amount(self.upper)}"
        numbers = f"ε = {amount(self.epsilon)} for ranks of sensitivity {amount(self.sensitivity)}"
        drawn = f"a point of {ends} was drawn near the {amount(self.probability)} quantile"
        return f"none on the sums; {drawn}, {numbers}; {REMOTE}"

    def _promise_of(self, sums: ProtectedSums) -> Promise:
        """ε, by the ratio of what a rank really moves by to the stated sensitivity."""
        alpha = float(self.probability)
        moved = 1.0 if sums.neighbours == "replace-one" else max(alpha, 1 - alpha)
        return pure(float(self.epsilon) * moved / float(self.sensitivity))

    def log_density(self, value: Array, statistic: Array) -> Array:
        """The log-density [] of the point [1] given the counts [m + 2]."""
        below, counts, target = ranks(as_floating(statistic), self.probability)
        rate = self.rate(counts)
        place = (value[0] - self.lower) / (self.upper - self.lower)
        bin_place = jnp.clip(place * counts.size, 0, counts.size)
        first = jnp.clip(jnp.floor(bin_place), 0, counts.size - 1)
        number = first.astype(int)
        rank = below[number] + (bin_place - first) * counts[number]
        # Weights are relative to the largest, so that the sum cannot vanish.
        nearest = jnp.min(distance_to(below, counts, target))
        weights = mean_weights(below, counts, target, rate, nearest)
        width = (jnp.asarray(self.upper, rate.dtype) - self.lower) / counts.size
        log_total = jnp.log(jnp.sum(weights)) + jnp.log(width)
        inside = (place >= 0) & (place <= 1)
        return jnp.where(inside, -rate * (jnp.abs(rank - target) - nearest) - log_total, -jnp.inf)

    def sample(self, key: Key, statistic: Array) -> Array:
        """A point [1] given the counts [m + 2]."""
        bin_key, side_key, place_key = jax.random.split(key, 3)
        below, counts, target = ranks(as_floating(statistic), self.probability)
        rate = self.rate(counts)
        weights = mean_weights(below, counts, target, rate, jnp.min(distance_to(below, counts, target)))
        number = jax.random.categorical(bin_key, jnp.log(weights))
        size, first = counts[number], below[number]
        side, place = (jax.random.uniform(one, dtype=rate.dtype) for one in (side_key, place_key))
        share = place_in_bin(side, place, first, size, target, rate)
        return (self.lower + (self.upper - self.lower) * (number.astype(share.dtype) + share) / counts.size)[None]

    def error_bound(self, statistic: Array) -> Array:
        """How far the log-density of any point can be off given the counts [m + 2], wherever in bins records are."""
        below, counts, target = ranks(as_floating(statistic), self.probability)
        rate = self.rate(counts)
        near = distance_to(below, counts, target)
        far = jnp.maximum(jnp.abs(below - target), jnp.abs(below + counts - target))
        log_largest, log_smallest = (jax.nn.logsumexp(-rate * distance) for distance in (near, far))
        return log_largest - log_smallest + rate * jnp.max(counts)

    def rate(self, counts: Array) -> Array:
        """ε / 2Δ in the type of the counts."""
        return jnp.asarray(self.epsilon, counts.dtype) / (2 * jnp.asarray(self.sensitivity, counts.dtype))


def ranks(statistic: Array, probability: Array | float) -> tuple[Array, Array, Array]:
    """How many records are below each bin [m], how many in it [m], and the rank that is aimed at []."""
    through = jnp.cumsum(statistic)
    return through[:-2], statistic[1:-1], jnp.asarray(probability, statistic.dtype) * through[-1]


def distance_to(below: Array, counts: Array, target: Array) -> Array:
    """The least distance of a rank in each bin from the target [m]."""
    return jnp.maximum(jnp.maximum(below - target, target - below - counts), 0.0)


def sides(below: Array, counts: Array, target: Array, rate: Array, nearest: Array | float) -> tuple[Array, ...]:
    """The integral of exp(−rate (|rank − target| − nearest)) over the ranks of each bin below and above the target."""
    under = jnp.clip(target - below, 0.0, counts)
    over = counts - under
    # Of a side without ranks it would be negative, and infinity times 0.
    near_under = jnp.maximum(jnp.maximum(target - below - counts, 0.0) - nearest, 0.0)
    near_over = jnp.maximum(jnp.maximum(below - target, 0.0) - nearest, 0.0)
    return tuple(
        jnp.exp(-rate * near) * -jnp.expm1(-rate * size) / rate
        for near, size in ((near_under, under), (near_over, over))
    )


def mean_weights(below: Array, counts: Array, target: Array, rate: Array, nearest: Array) -> Array:
    """The mean of exp(−rate (|rank − target| − nearest)) over each bin [m], whose ranks grow evenly."""
    under, over = sides(below, counts, target, rate, nearest)
    held = jnp.where(counts > 0, counts, 1.0)
    empty = jnp.exp(-rate * (jnp.abs(below - target) - nearest))
    return jnp.where(counts > 0, (under + over) / held, empty)


def place_in_bin(
    side_uniform: Array, place_uniform: Array, below: Array, count: Array, target: Array, rate: Array
) -> Array:
    """The place [] of the point in its bin, from 0 to 1, by two uniforms."""
    nearest = distance_to(below, count, target)
    under, over = sides(below, count, target, rate, nearest)
    is_under = side_uniform * (under + over) < under
    size_under = jnp.clip(target - below, 0.0, count)
    size = jnp.where(is_under, size_under, count - size_under)
    away = -jnp.log1p(place_uniform * jnp.expm1(-rate * size)) / rate
    step = jnp.where(is_under, size_under - away, size_under + away)
    return jnp.clip(jnp.where(count > 0, step / jnp.where(count > 0, count, 1.0), place_uniform), 0.0, 1.0)
