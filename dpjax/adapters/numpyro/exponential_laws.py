"""Laws that are a function of standard Exponential noise, on floating-point numbers.

Each is a pair of increasing maps, noise to value and back, between two end cells (`dpjax.numerics.ends`). Values in a
cell stand there as one number, and the density there is the mass of the cell over a width of its own.
"""

from collections.abc import Callable
from math import log
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from dpjax.adapters.numpyro.form import along
from dpjax.base import Array, Key
from dpjax.numerics.ends import highest, lower_end, upper_gap


class Edges(NamedTuple):
    """The inner edges of the two end cells, and the numbers that stand for these."""

    low: float
    high: float
    at_low: float
    at_high: float


def positive_edges(dtype: Any) -> Edges:
    """Of the positive numbers."""
    low, high = lower_end(dtype), highest(dtype)
    return Edges(low, high, low / 2, 2 * high)


def unit_edges(dtype: Any) -> Edges:
    """Of the unit interval."""
    low, gap = lower_end(dtype), upper_gap(dtype)
    return Edges(low, 1 - gap, low / 2, 1 - gap / 2)


class ExponentialLaw(NamedTuple):
    """A law as a function of standard Exponential noise.

    Attributes
    ----------
    noise
        The increasing map from values to noise between the inner edges, elementwise.
    value
        Its inverse.
    log_slope
        The logarithm of the derivative of `noise`, elementwise.
    edges
        ``dtype -> Edges``.
    """

    noise: Callable[[Array], Array]
    value: Callable[[Array], Array]
    log_slope: Callable[[Array], Array]
    edges: Callable[[Any], Edges]


def value_of_noise(law: ExponentialLaw, noise: Array) -> Array:
    """The floats that stand for noise."""
    edges = law.edges(noise.dtype)
    first, last = noise_of_edges(law, noise)
    inside = jnp.clip(law.value(jnp.clip(noise, first, last)), edges.low, edges.high)
    return jnp.where(noise < first, edges.at_low, jnp.where(noise > last, edges.at_high, inside))


def noise_within(key: Key, law: ExponentialLaw, value: Array) -> Array:
    """The noise of values; in an end cell a draw from its law given that cell."""
    low, high, *_ = law.edges(value.dtype)
    first, last = noise_of_edges(law, value)
    uniform = jax.random.uniform(key, value.shape, value.dtype)
    below, above = -jnp.log1p(uniform * jnp.expm1(-first)), last - jnp.log1p(-uniform)
    inside = law.noise(jnp.clip(value, low, high))
    return jnp.where(value < low, below, jnp.where(value > high, above, inside))


def law_log_density(law: ExponentialLaw, value: Array) -> Array:
    """The log-density of values, elementwise."""
    low, high, *_ = law.edges(value.dtype)
    first, last = noise_of_edges(law, value)
    between = jnp.clip(value, low, high)
    inside = law.log_slope(between) - law.noise(between)
    below = log_mass_below(first) - log(low)
    above = -last - log(high)
    return jnp.where(value < low, below, jnp.where(value > high, above, inside))


def noise_of_edges(law: ExponentialLaw, like: Array) -> tuple[Array, Array]:
    """The noise at the inner edges of the end cells, in the shape of an array."""
    low, high = (law.noise(jnp.full_like(like, edge)) for edge in law.edges(like.dtype)[:2])
    return low, high


def log_mass_below(noise: Array) -> Array:
    """log P(E < noise) of standard Exponential noise."""
    small = noise < 0.5
    return jnp.where(small, jnp.log(-jnp.expm1(-noise)), jnp.log1p(-jnp.exp(-jnp.where(small, 0.5, noise))))


def log_rest(logarithm: Array) -> Array:
    """log(1 - exp(l)) for l < 0, without loss at either end."""
    near = logarithm > -0.5
    far = jnp.log1p(-jnp.exp(jnp.where(near, -1.0, logarithm)))
    return jnp.where(near, jnp.log(-jnp.expm1(jnp.where(near, logarithm, -1.0))), far)


def weibull(scale: Any, power: Any) -> ExponentialLaw:
    """P(Y > y) = exp(-(y / scale)^power)."""

    def log_noise(value: Array) -> Array:
        return along(power, value) * (jnp.log(value) - jnp.log(along(scale, value)))

    def value(noise: Array) -> Array:
        log_noise = jnp.log(jnp.maximum(noise, jnp.finfo(noise.dtype).tiny))
        return jnp.exp(jnp.log(along(scale, noise)) + log_noise / along(power, noise))

    def log_slope(value: Array) -> Array:
        return jnp.log(along(power, value)) + log_noise(value) - jnp.log(value)

    return ExponentialLaw(lambda value: jnp.exp(log_noise(value)), value, log_slope, positive_edges)


def kumaraswamy(first: Any, second: Any) -> ExponentialLaw:
    """P(Y > y) = (1 - y^first)^second on the unit interval."""

    def log_power(value: Array) -> Array:
        return along(first, value) * jnp.log(value)

    def noise(value: Array) -> Array:
        return -along(second, value) * log_rest(log_power(value))

    def value(noise: Array) -> Array:
        return jnp.exp(log_rest(-noise / along(second, noise)) / along(first, noise))

    def log_slope(value: Array) -> Array:
        log_shapes = jnp.log(along(first, value)) + jnp.log(along(second, value))
        return log_shapes + log_power(value) - jnp.log(value) - log_rest(log_power(value))

    return ExponentialLaw(noise, value, log_slope, unit_edges)


def pareto(scale: Any, power: Any) -> ExponentialLaw:
    """P(Y > y) = (y / scale)^(-power) above the scale."""

    def noise(value: Array) -> Array:
        # The lower end cell lies below the scale, where there is no mass.
        return along(power, value) * jnp.maximum(jnp.log(value) - jnp.log(along(scale, value)), 0)

    def value(noise: Array) -> Array:
        least = along(scale, noise)
        return jnp.maximum(jnp.exp(jnp.log(least) + noise / along(power, noise)), least)

    def log_slope(value: Array) -> Array:
        return jnp.log(along(power, value)) - jnp.log(value)

    return ExponentialLaw(noise, value, log_slope, positive_edges)
