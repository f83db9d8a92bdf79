"""The laws of records on floating-point numbers, in place of NumPyro's formulas for real numbers.

NumPyro clips draws that lie beyond the floats or rounds them to the ends of the support, and takes its density there as
it is. With a small shape a great part of all draws is such. These laws give each end cell (`dpjax.numerics.ends`) its
probability.
"""

from collections.abc import Callable
from math import log
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from numpyro import distributions as dist
from numpyro.distributions import constraints

from dpjax.adapters.numpyro.form import along
from dpjax.base import Array, Key
from dpjax.numerics.dirichlet import beta_log_density, dirichlet_log_density, draw_beta, draw_shares
from dpjax.numerics.ends import highest, lower_end, upper_gap
from dpjax.numerics.gamma import draw_gamma, gamma_log_density


def on_floats(law: Any) -> Any:
    """The law of the floats that stand for draws from a distribution; the distribution itself where that is known."""
    if isinstance(law, dist.ExpandedDistribution):
        return on_floats(law.base_dist).expand(law.batch_shape)
    if isinstance(law, dist.Independent):
        return on_floats(law.base_dist).to_event(law.reinterpreted_batch_ndims)
    if isinstance(law, dist.MixtureSameFamily):
        return dist.MixtureSameFamily(law.mixing_distribution, on_floats(law.component_distribution))
    for family, build in FAMILIES:
        if isinstance(law, family):
            return build(law)
    if type(law) is dist.TransformedDistribution:
        return dist.TransformedDistribution(on_floats(law.base_dist), law.transforms)
    return law


class FloatBeta(dist.Beta):
    """A Beta law on floats."""

    def sample(self, key: Any, sample_shape: tuple[int, ...] = ()) -> Array:
        """Draws [*sample_shape, *batch_shape, *event_shape]."""
        shape = sample_shape + self.batch_shape
        return draw_beta(key, spread(self.concentration1, shape), spread(self.concentration0, shape))

    def log_prob(self, value: Any) -> Array:
        """The log-density of a value."""
        value, first, second = together(value, self.concentration1, self.concentration0)
        return beta_log_density(value, first, second)


class FloatGamma(dist.Gamma):
    """A Gamma law on floats."""

    def sample(self, key: Any, sample_shape: tuple[int, ...] = ()) -> Array:
        """Draws [*sample_shape, *batch_shape, *event_shape]."""
        shape = sample_shape + self.batch_shape
        return draw_gamma(key, spread(self.concentration, shape), spread(self.rate, shape))

    def log_prob(self, value: Any) -> Array:
        """The log-density of a value."""
        return gamma_log_density(*together(value, self.concentration, self.rate))


class FloatInverseGamma(dist.Distribution):
    """An inverse Gamma law on floats, whose end cell is that of large values."""

    support = constraints.positive

    def __init__(self, inverse: FloatGamma) -> None:
        self.inverse = inverse
        super().__init__(inverse.batch_shape)

    def sample(self, key: Any, sample_shape: tuple[int, ...] = ()) -> Array:
        """Draws [*sample_shape, *batch_shape, *event_shape]."""
        return 1 / self.inverse.sample(key, sample_shape)

    def log_prob(self, value: Any) -> Array:
        """The log-density of a value."""
        between = jnp.maximum(jnp.asarray(value, float), 1 / (4 * highest(jnp.zeros((), float).dtype)))
        density = self.inverse.log_prob(1 / between) - 2 * jnp.log(between)
        return jnp.where(value > 0, density, -jnp.inf)


class FloatDirichlet(dist.Dirichlet):
    """A Dirichlet law on floats."""

    def sample(self, key: Any, sample_shape: tuple[int, ...] = ()) -> Array:
        """Draws [*sample_shape, *batch_shape, *event_shape]."""
        return draw_shares(key, spread(self.concentration, sample_shape + self.batch_shape + self.event_shape))

    def log_prob(self, value: Any) -> Array:
        """The log-density of a value."""
        value, concentration = together(value, self.concentration)
        return dirichlet_log_density(concentration, value)


class Edges(NamedTuple):
    """The inner edges of the two end cells, and the numbers that stand for these."""

    low: float
    high: float
    at_low: float
    at_high: float


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


class FloatExponentialLaw(dist.Distribution):
    """A law that is a function of standard Exponential noise, on floats."""

    def __init__(self, law: ExponentialLaw, support: Any, batch_shape: tuple[int, ...]) -> None:
        self.law, self.bounds = law, support
        super().__init__(batch_shape)

    @property
    def support(self) -> Any:
        """That of the distribution which this one stands for."""
        return self.bounds

    def sample(self, key: Any, sample_shape: tuple[int, ...] = ()) -> Array:
        """Draws [*sample_shape, *batch_shape, *event_shape]."""
        return value_of_noise(self.law, jax.random.exponential(key, sample_shape + self.batch_shape, float))

    def log_prob(self, value: Any) -> Array:
        """The log-density of a value."""
        (value,) = together(jnp.broadcast_to(value, jnp.broadcast_shapes(jnp.shape(value), self.batch_shape)))
        return jnp.where(self.support(value), law_log_density(self.law, value), -jnp.inf)


def spread(parameter: Any, shape: tuple[int, ...]) -> Array:
    """A parameter of draws of this shape."""
    return jnp.broadcast_to(jnp.asarray(parameter, float), shape)


def together(value: Any, *parameters: Any) -> tuple[Array, ...]:
    """A value and parameters in one shape and type."""
    value = jnp.asarray(value, float)
    shape = jnp.broadcast_shapes(value.shape, *(jnp.shape(parameter) for parameter in parameters))
    value = jnp.broadcast_to(value, shape)
    return value, *(along(parameter, value) for parameter in parameters)


def float_weibull(law: Any) -> FloatExponentialLaw:
    """A Weibull law on floats."""
    return FloatExponentialLaw(weibull(law.scale, law.concentration), constraints.positive, law.batch_shape)


def float_kumaraswamy(law: Any) -> FloatExponentialLaw:
    """A Kumaraswamy law on floats."""
    parts = kumaraswamy(law.concentration1, law.concentration0)
    return FloatExponentialLaw(parts, constraints.unit_interval, law.batch_shape)


def float_pareto(law: Any) -> FloatExponentialLaw:
    """A Pareto law on floats; a draw may be rounded to the scale itself."""
    return FloatExponentialLaw(pareto(law.scale, law.alpha), constraints.greater_than_eq(law.scale), law.batch_shape)


FAMILIES: tuple[tuple[Any, Callable[[Any], Any]], ...] = (
    (dist.Beta, lambda law: FloatBeta(law.concentration1, law.concentration0)),
    (dist.Gamma, lambda law: FloatGamma(law.concentration, law.rate)),
    (dist.InverseGamma, lambda law: FloatInverseGamma(FloatGamma(law.concentration, law.rate))),
    (dist.Dirichlet, lambda law: FloatDirichlet(law.concentration)),
    (dist.Weibull, float_weibull),
    (dist.Kumaraswamy, float_kumaraswamy),
    (dist.Pareto, float_pareto),
)
"""The families with small shapes; subclasses, such as Chi2 of Gamma, share them."""


def positive_edges(dtype: Any) -> Edges:
    """Of the positive numbers."""
    low, high = lower_end(dtype), highest(dtype)
    return Edges(low, high, low / 2, 2 * high)


def unit_edges(dtype: Any) -> Edges:
    """Of the unit interval."""
    low, gap = lower_end(dtype), upper_gap(dtype)
    return Edges(low, 1 - gap, low / 2, 1 - gap / 2)


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
