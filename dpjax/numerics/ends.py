"""End cells: the intervals next to 0 and below 1 where floats cannot resolve a continuous distribution.

A distribution with a small shape has much of its mass closer to 0 than the smallest float, or closer to 1 than
rounding. Half of all Beta(1, 0.02) draws are 1 in double precision. All draws in such an *end cell* are represented by
one number, and the density there is its average over the cell. So draws and densities agree, and inference about the
shapes is exact.
"""

from math import log

import jax.numpy as jnp

from dpjax.base import Array

__all__ = ["beyond_upper_end", "highest", "lower_end", "positive_at", "upper_gap", "within_lower_end"]

GRAIN = 64
"""Width of the end cell below 1 in units of rounding: floats just outside it are spaced finely enough."""


def lower_end(dtype: jnp.dtype) -> float:
    """The upper edge of the end cell next to 0: a power of 2 whose inverse is a float, as is that of its half."""
    return 4 * float(jnp.finfo(dtype).tiny)


def upper_gap(dtype: jnp.dtype) -> float:
    """The width of the end cell below 1."""
    return GRAIN * float(jnp.finfo(dtype).epsneg)


def within_lower_end(value: Array) -> Array:
    """Whether values lie in the end cell next to 0."""
    return value < lower_end(value.dtype)


def beyond_upper_end(value: Array) -> Array:
    """Whether values lie in the end cell below 1."""
    return value > 1 - upper_gap(value.dtype)


def highest(dtype: jnp.dtype) -> float:
    """The largest positive draw: a power of 2 whose inverse lies above the lower end cell."""
    return 1 / (2 * lower_end(dtype))


def positive_at(log_value: Array) -> Array:
    """The float that represents the exponential of a logarithm."""
    low, high = lower_end(log_value.dtype), highest(log_value.dtype)
    inside = jnp.exp(jnp.clip(log_value, log(low), log(high)))
    return jnp.where(log_value < log(low), low / 2, jnp.clip(inside, low, high))
