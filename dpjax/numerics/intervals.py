"""The probabilities of intervals of real numbers, right in both tails, and draws within intervals."""

from collections.abc import Callable
from math import sqrt
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.stats import norm

from dpjax.base import Array, Key
from dpjax.numerics.incomplete import normal_tails
from dpjax.numerics.tails import log_complement

__all__ = ["RealDistribution", "draw_between", "log_interval_probability", "normal_between"]

PLACES, WEIGHTS = (0.5 - sqrt(0.15), 0.5, 0.5 + sqrt(0.15)), (5 / 18, 8 / 18, 5 / 18)
"""The rule of Gauss and Legendre on [0, 1]."""

LEVEL = 1 / 16
"""How much of the smaller tail an interval may be, and how far its log-density may vary, for that rule to be exact."""


class RealDistribution(NamedTuple):
    """A distribution of real numbers.

    Attributes
    ----------
    tails
        ``x -> (log_cdf, log_survival)``: the logarithms of P(X ≤ x) and P(X > x) at any finite x [2, ...].
    log_density
        ``x -> [...]``, if it is smooth; else None.
    """

    tails: Callable[[Array], tuple[Array, Array]]
    log_density: Callable[[Array], Array] | None = None


def log_interval_probability(law: RealDistribution, low: Array, high: Array) -> Array:
    """The log-probability of numbers between two ends, elementwise; ends may be infinite.

    The difference of two tails is taken on the side where these are smaller. In a narrow interval it would lose the
    digits that both tails share: there the density is integrated by three values of it.
    """
    has_low, has_high = low > -jnp.inf, high < jnp.inf
    first = jnp.where(has_low, low, jnp.where(has_high, high, 0.5))
    last = jnp.where(has_high, high, first)
    (below_first, below_last), (above_first, above_last) = law.tails(jnp.stack([first, last]))
    below_first, above_first = jnp.where(has_low, below_first, -jnp.inf), jnp.where(has_low, above_first, 0.0)
    below_last, above_last = jnp.where(has_high, below_last, 0.0), jnp.where(has_high, above_last, -jnp.inf)
    is_upper = above_first < below_last
    larger = jnp.where(is_upper, above_first, below_last)
    smaller = jnp.where(is_upper, above_last, below_first)
    is_any, is_cut = (larger > -jnp.inf) & (low <= high), smaller > -jnp.inf
    larger = jnp.where(is_any, larger, 0.0)
    difference = jnp.where(is_any & is_cut, jnp.where(is_cut, smaller, 0.0) - larger, -1.0)
    is_level, by_values = integrate(law, difference, first, last)
    kept = log_complement(jnp.where(is_level, -1.0, jnp.minimum(difference, -jnp.finfo(difference.dtype).eps)))
    found = jnp.where(is_level, by_values, larger + jnp.where(is_cut, kept, 0.0))
    return jnp.where(is_any, found, -jnp.inf)


def normal_between(low: Array, high: Array, mean: Array, scale: Array) -> Array:
    """The log-probability of Normal numbers between two ends, elementwise; the log-density if both are one number."""
    low, high, mean, scale = jnp.broadcast_arrays(low, high, mean, scale)
    law = RealDistribution(
        lambda x: normal_tails((x - mean[None]) / scale[None]), lambda x: norm.logpdf(x, mean, scale)
    )
    is_shown = low == high
    shown = norm.logpdf(jnp.where(is_shown, low, mean), mean, scale)
    return jnp.where(is_shown, shown, log_interval_probability(law, low, high))


def integrate(law: RealDistribution, difference: Array, first: Array, last: Array) -> tuple[Array, Array]:
    """Whether an interval is so narrow that three values of the density suffice, and its log-probability by these."""
    is_narrow = (difference > -LEVEL) & (first < last)
    if law.log_density is None:
        return jnp.zeros_like(is_narrow), jnp.zeros_like(difference)
    # Where they are not wanted, the values are those at one place.
    width = jnp.where(is_narrow, last - first, 0.0)
    values = [law.log_density(first + width * place) for place in PLACES]
    beside = [value - values[1] for value in values]
    is_level = is_narrow & (jnp.abs(beside[0]) < LEVEL) & (jnp.abs(beside[2]) < LEVEL)
    parts = [weight * jnp.exp(jnp.where(is_level, one, 0.0)) for weight, one in zip(WEIGHTS, beside, strict=True)]
    by_values = values[1] + jnp.log(parts[0] + parts[1] + parts[2]) + jnp.log(jnp.where(is_level, width, 1.0))
    return is_level, jnp.where(is_level, by_values, 0.0)


def draw_between(key: Key, log_probability: Callable[[Array], Array], low: Array, high: Array) -> Array:
    """Draws within intervals, by halving the floats between their ends.

    Parameters
    ----------
    log_probability
        ``x -> [...]``: the log-probability of numbers between `low` and x, up to a constant.
    low
        The lower ends [...].
    high
        The upper ends [...].
    """
    uniform = 1 - jax.random.uniform(key, low.shape, low.dtype)
    wanted = jnp.log(uniform) + log_probability(high)

    def halve(_: int, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        least, most = ends
        middle = (least >> 1) + (most >> 1) + (least & most & 1)
        is_low = log_probability(as_float(middle, low.dtype)) < wanted
        return jnp.where(is_low, middle, least), jnp.where(is_low, most, middle)

    top = jnp.finfo(low.dtype).max
    ends = as_place(jnp.maximum(low, -top)), as_place(jnp.minimum(high, top))
    return as_float(jax.lax.fori_loop(0, 8 * low.dtype.itemsize, halve, ends)[1], low.dtype)


def as_place(number: Array) -> Array:
    """The place of a float among all, as a whole number."""
    bits = jax.lax.bitcast_convert_type(number, jnp.dtype(f"int{8 * number.dtype.itemsize}"))
    return jnp.where(bits < 0, jnp.iinfo(bits.dtype).min - bits, bits)


def as_float(place: Array, dtype: jnp.dtype) -> Array:
    """The float at a place among all."""
    bits = jnp.where(place < 0, jnp.iinfo(place.dtype).min - place, place)
    return jax.lax.bitcast_convert_type(bits, dtype)
