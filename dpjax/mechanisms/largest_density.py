"""How dense a released value is at most, whatever the sum between two ends: where sums can be, and where hardly.

Such a bound misses no sum, however few are likely and however far they are from the value. A look at some sums does.
"""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from dpjax.base import Array
from dpjax.mechanisms.base import Mechanism
from dpjax.mechanisms.possible_sums import PossibleSums

__all__ = [
    "LargestDensity",
    "at_nearest",
    "bounded_as",
    "by_bounds",
    "by_tails",
    "finite",
    "largest_density",
    "overlaps",
]

LargestDensity = Callable[[Array, Array, Array], Array]
"""``(value, low, high) -> [..., d]``; see `dpjax.mechanisms.PossibleSums`."""


def largest_density(mechanism: Mechanism) -> LargestDensity | None:
    """What the mechanism says of its largest density between two sums, or what follows from the rest; else None.

    Noise that never rises away from 0 is densest at the sum nearest to the value. A whole number has a probability. It
    is at most 1, 0 where no sum can have given it, and at most that of all values as far from the sum.
    """
    sums, noise = mechanism.sums, mechanism.noise
    if sums.largest is not None:
        return sums.largest
    if noise is not None and noise.is_unimodal:
        return lambda value, low, high: at_nearest(lambda sum_: noise.log_density(value - sum_), value, low, high)
    if sums.known:
        return lambda value, low, high: by_bounds(lambda value: (value, value), value, low, high)
    if not (mechanism.integer_noise or mechanism._is_categorical):
        return None
    if mechanism.tails is not None:
        return lambda value, low, high: by_tails(mechanism.tails, value, low, high)
    return lambda value, low, high: by_bounds(sums.bounds, value, low, high)


def bounded_as(mechanism: Mechanism, sums: PossibleSums, largest: LargestDensity) -> PossibleSums:
    """The possible sums with a bound that is made of that of another mechanism, or without one if this has none."""
    return sums._replace(largest=None if largest_density(mechanism) is None else largest)


def at_nearest(log_density: Callable[[Array], Array], best: Array, low: Array, high: Array) -> Array:
    """The log-density at the sum nearest to the best one, of densities that fall on both sides of it."""
    return log_density(jnp.clip(best, low, high))


def by_tails(tails: Any, value: Array, low: Array, high: Array, reach: Array | float = 0.0) -> Array:
    """The largest log-probability of values at least as far away as `value`; noise may lead to it from a reach away."""
    above, below = low - value, value - high
    # Where it is not wanted, an infinite distance could give NaN.
    far_above, far_below = (jnp.where(far > 0, far, 0.0) - reach for far in (above, below))
    bound = jnp.where(above > reach, tails.log_cdf(-far_above), tails.log_survival(far_below))
    return jnp.where((above > reach) | (below > reach), bound, jnp.zeros_like(bound))


def by_bounds(bounds: Callable[[Array], tuple[Array, Array]] | None, value: Array, low: Array, high: Array) -> Array:
    """0, the logarithm of the largest probability, where some sum can have given the value, and ``-inf`` elsewhere."""
    least, most = (value - jnp.inf, value + jnp.inf) if bounds is None else bounds(value)
    return jnp.where(overlaps(low, high, least, most), jnp.zeros_like(value), -jnp.inf)


def finite(end: Array) -> Array:
    """An end of an interval; 0 if it has none."""
    return jnp.where(jnp.isfinite(end), end, 0.0)


def overlaps(low: Array, high: Array, least: Array | float, most: Array | float) -> Array:
    """Whether some number from `low` to `high` is one from `least` to `most`."""
    return (low <= most) & (high >= least)
