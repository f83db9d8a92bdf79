"""Where floating-point numbers end, so that draws of a continuous law pile up: next to 0, and below 1.

A law with a small shape has much of its mass nearer to 0 than the smallest float, or nearer to 1 than rounding can
tell: half of all Beta(1, 0.02) draws are 1 in double precision. Such draws go into an *end cell*, and stand there as
one number. The density in an end cell is its average over the cell, the cell's mass over its width: then densities and
draws describe one law, and what the numbers tell of the shapes is exact.
"""

from math import log

import jax.numpy as jnp

from dpjax.base import Array

__all__ = ["beyond_upper_end", "highest", "lower_end", "positive_at", "upper_gap", "within_lower_end"]

GRAIN = 64
"""The width of the end cell below 1 in units of rounding: floats just outside it are spaced finely enough."""


def lower_end(dtype: jnp.dtype) -> float:
    """The end cell next to 0 reaches up to here: a power of 2 whose inverse is a float, as is that of its half."""
    return 4 * float(jnp.finfo(dtype).tiny)


def upper_gap(dtype: jnp.dtype) -> float:
    """The end cell below 1 is that wide."""
    return GRAIN * float(jnp.finfo(dtype).epsneg)


def within_lower_end(value: Array) -> Array:
    """Whether values lie in the end cell next to 0."""
    return value < lower_end(value.dtype)


def beyond_upper_end(value: Array) -> Array:
    """Whether values lie in the end cell below 1."""
    return value > 1 - upper_gap(value.dtype)


def highest(dtype: jnp.dtype) -> float:
    """No positive draw is larger: a power of 2 whose inverse lies above the lower end cell."""
    return 1 / (2 * lower_end(dtype))


def positive_at(log_value: Array) -> Array:
    """The float that stands for the logarithm of a positive number."""
    low, high = lower_end(log_value.dtype), highest(log_value.dtype)
    inside = jnp.exp(jnp.clip(log_value, log(low), log(high)))
    return jnp.where(log_value < log(low), low / 2, jnp.clip(inside, low, high))
