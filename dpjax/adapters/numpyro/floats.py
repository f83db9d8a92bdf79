"""Distributions on floats, in place of NumPyro's distributions of real numbers.

NumPyro clips or rounds draws beyond the floats to the ends of the support, without a change of the density. With a
small shape that concerns a large part of all draws. The distributions here give each end cell (`dpjax.numerics.ends`)
its probability.
"""

from collections.abc import Callable
from math import log
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from numpyro import distributions as dist
from numpyro.distributions import constraints

from dpjax.adapters.numpyro.certain import with_ends
from dpjax.adapters.numpyro.form import expand_as
from dpjax.adapters.numpyro.shared import share_counts
from dpjax.base import Array, Key
from dpjax.numerics.dirichlet import beta_log_density, dirichlet_log_density, draw_beta, draw_shares
from dpjax.numerics.ends import highest, lower_end, upper_gap
from dpjax.numerics.gamma import draw_gamma, gamma_log_density


def on_floats(distribution: Any) -> Any:
    """The distribution on floats that replaces a distribution; the distribution itself if it needs no replacement."""
    if isinstance(distribution, dist.ExpandedDistribution):
        return on_floats(distribution.base_dist).expand(distribution.batch_shape)
    if isinstance(distribution, dist.Independent):
        return on_floats(distribution.base_dist).to_event(distribution.reinterpreted_batch_ndims)
    if isinstance(distribution, dist.MixtureSameFamily):
        return dist.MixtureSameFamily(distribution.mixing_distribution, on_floats(distribution.component_distribution))
    for family, build in FAMILIES:
        if isinstance(distribution, family):
            return build(distribution)
    if type(distribution) is dist.TransformedDistribution:
        return dist.TransformedDistribution(on_floats(distribution.base_dist), distribution.transforms)
    return distribution


class FloatBeta(dist.Beta):
    """A Beta distribution on floats."""

    def sample(self, key: Any, sample_shape: tuple[int, ...] = ()) -> Array:
        """Draws [*sample_shape, *batch_shape, *event_shape]."""
        shape = sample_shape + self.batch_shape
        return draw_beta(key, broadcast(self.concentration1, shape), broadcast(self.concentration0, shape))

    def log_prob(self, value: Any) -> Array:
        """The log-density of a value."""
        value, first, second = broadcast_all(value, self.concentration1, self.concentration0)
        return beta_log_density(value, first, second)


class FloatGamma(dist.Gamma):
    """A Gamma distribution on floats."""

    def sample(self, key: Any, sample_shape: tuple[int, ...] = ()) -> Array:
        """Draws [*sample_shape, *batch_shape, *event_shape]."""
        shape = sample_shape + self.batch_shape
        return draw_gamma(key, broadcast(self.concentration, shape), broadcast(self.rate, shape))

    def log_prob(self, value: Any) -> Array:
        """The log-density of a value."""
        return gamma_log_density(*broadcast_all(value, self.concentration, self.rate))


class FloatInverseGamma(dist.Distribution):
    """An inverse Gamma distribution on floats, with an end cell of large values."""

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
    """A Dirichlet distribution on floats."""

    def sample(self, key: Any, sample_shape: tuple[int, ...] = ()) -> Array:
        """Draws [*sample_shape, *batch_shape, *event_shape]."""
        return draw_shares(key, broadcast(self.concentration, sample_shape + self.batch_shape + self.event_shape))

    def log_prob(self, value: Any) -> Array:
        """The log-density of a value."""
        value, concentration = broadcast_all(value, self.concentration)
        return dirichlet_log_density(concentration, value)


class Edges(NamedTuple):
    """The inner edges of the two end cells, and the numbers that represent these."""

    low: float
    high: float
    at_low: float
    at_high: float


class ExponentialTransform(NamedTuple):
    """A monotone transform of standard Exponential noise.

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


class FloatTransformedExponential(dist.Distribution):
    """The distribution on floats of a transform of standard Exponential noise."""

    def __init__(self, transform: ExponentialTransform, support: Any, batch_shape: tuple[int, ...]) -> None:
        self.transform, self.bounds = transform, support
        super().__init__(batch_shape)

    @property
    def support(self) -> Any:
        """The support of the distribution on real numbers."""
        return self.bounds

    def sample(self, key: Any, sample_shape: tuple[int, ...] = ()) -> Array:
        """Draws [*sample_shape, *batch_shape, *event_shape]."""
        return value_of_noise(self.transform, jax.random.exponential(key, sample_shape + self.batch_shape, float))

    def log_prob(self, value: Any) -> Array:
        """The log-density of a value."""
        (value,) = broadcast_all(jnp.broadcast_to(value, jnp.broadcast_shapes(jnp.shape(value), self.batch_shape)))
        return jnp.where(self.support(value), transformed_log_density(self.transform, value), -jnp.inf)


def broadcast(parameter: Any, shape: tuple[int, ...]) -> Array:
    """A parameter broadcast to the shape of draws."""
    return jnp.broadcast_to(jnp.asarray(parameter, float), shape)


def broadcast_all(value: Any, *parameters: Any) -> tuple[Array, ...]:
    """A value and parameters broadcast to one shape and dtype."""
    value = jnp.asarray(value, float)
    shape = jnp.broadcast_shapes(value.shape, *(jnp.shape(parameter) for parameter in parameters))
    value = jnp.broadcast_to(value, shape)
    return value, *(expand_as(parameter, value) for parameter in parameters)


def float_weibull(distribution: Any) -> FloatTransformedExponential:
    """A Weibull distribution on floats."""
    return FloatTransformedExponential(
        weibull(distribution.scale, distribution.concentration), constraints.positive, distribution.batch_shape
    )


def float_kumaraswamy(distribution: Any) -> FloatTransformedExponential:
    """A Kumaraswamy distribution on floats."""
    parts = kumaraswamy(distribution.concentration1, distribution.concentration0)
    return FloatTransformedExponential(parts, constraints.unit_interval, distribution.batch_shape)


def float_pareto(distribution: Any) -> FloatTransformedExponential:
    """A Pareto distribution on floats; a draw may be rounded to the scale itself."""
    return FloatTransformedExponential(
        pareto(distribution.scale, distribution.alpha),
        constraints.greater_than_eq(distribution.scale),
        distribution.batch_shape,
    )


FAMILIES: tuple[tuple[Any, Callable[[Any], Any]], ...] = (
    (dist.Beta, lambda distribution: FloatBeta(distribution.concentration1, distribution.concentration0)),
    (dist.Gamma, lambda distribution: FloatGamma(distribution.concentration, distribution.rate)),
    (
        dist.InverseGamma,
        lambda distribution: FloatInverseGamma(FloatGamma(distribution.concentration, distribution.rate)),
    ),
    (dist.Dirichlet, lambda distribution: FloatDirichlet(distribution.concentration)),
    (dist.Weibull, float_weibull),
    (dist.Kumaraswamy, float_kumaraswamy),
    (dist.Pareto, float_pareto),
    (
        (dist.Poisson, dist.GammaPoisson, dist.ZeroInflatedProbs),
        lambda distribution: with_ends(share_counts(distribution)),
    ),
    ((dist.BernoulliProbs, dist.BinomialProbs, dist.GeometricProbs), with_ends),
)
"""Families with a shape parameter, or of counts, and their replacements, also for subclasses such as Chi2 of Gamma."""


def positive_edges(dtype: Any) -> Edges:
    """The edges of the end cells of the positive numbers."""
    low, high = lower_end(dtype), highest(dtype)
    return Edges(low, high, low / 2, 2 * high)


def unit_edges(dtype: Any) -> Edges:
    """The edges of the end cells of the unit interval."""
    low, gap = lower_end(dtype), upper_gap(dtype)
    return Edges(low, 1 - gap, low / 2, 1 - gap / 2)


def value_of_noise(transform: ExponentialTransform, noise: Array) -> Array:
    """The floats that represent noise."""
    edges = transform.edges(noise.dtype)
    first, last = noise_of_edges(transform, noise)
    inside = jnp.clip(transform.value(jnp.clip(noise, first, last)), edges.low, edges.high)
    return jnp.where(noise < first, edges.at_low, jnp.where(noise > last, edges.at_high, inside))


def noise_within(key: Key, transform: ExponentialTransform, value: Array) -> Array:
    """The noise of values; in an end cell a draw from its distribution given that cell."""
    low, high, *_ = transform.edges(value.dtype)
    first, last = noise_of_edges(transform, value)
    uniform = jax.random.uniform(key, value.shape, value.dtype)
    below, above = -jnp.log1p(uniform * jnp.expm1(-first)), last - jnp.log1p(-uniform)
    inside = transform.noise(jnp.clip(value, low, high))
    return jnp.where(value < low, below, jnp.where(value > high, above, inside))


def transformed_log_density(transform: ExponentialTransform, value: Array) -> Array:
    """The log-density of values, elementwise."""
    low, high, *_ = transform.edges(value.dtype)
    first, last = noise_of_edges(transform, value)
    between = jnp.clip(value, low, high)
    inside = transform.log_slope(between) - transform.noise(between)
    below = log_mass_below(first) - log(low)
    above = -last - log(high)
    return jnp.where(value < low, below, jnp.where(value > high, above, inside))


def noise_of_edges(transform: ExponentialTransform, like: Array) -> tuple[Array, Array]:
    """The noise at the inner edges of the end cells, broadcast to the shape of an array."""
    low, high = (transform.noise(jnp.full_like(like, edge)) for edge in transform.edges(like.dtype)[:2])
    return low, high


def log_mass_below(noise: Array) -> Array:
    """log P(E < noise) of standard Exponential noise; without a slope at 0, which below a Pareto's scale it has."""
    small, some = noise < 0.5, noise > 0
    near = jnp.log(-jnp.expm1(-jnp.where(small & some, noise, 0.5)))
    return jnp.where(some, jnp.where(small, near, jnp.log1p(-jnp.exp(-jnp.where(small, 0.5, noise)))), -jnp.inf)


def log_rest(logarithm: Array) -> Array:
    """log(1 - exp(l)) for l < 0, accurate at both ends."""
    near = logarithm > -0.5
    far = jnp.log1p(-jnp.exp(jnp.where(near, -1.0, logarithm)))
    return jnp.where(near, jnp.log(-jnp.expm1(jnp.where(near, logarithm, -1.0))), far)


def weibull(scale: Any, power: Any) -> ExponentialTransform:
    """P(Y > y) = exp(-(y / scale)^power)."""

    def log_noise(value: Array) -> Array:
        return expand_as(power, value) * (jnp.log(value) - jnp.log(expand_as(scale, value)))

    def value(noise: Array) -> Array:
        log_noise = jnp.log(jnp.maximum(noise, jnp.finfo(noise.dtype).tiny))
        return jnp.exp(jnp.log(expand_as(scale, noise)) + log_noise / expand_as(power, noise))

    def log_slope(value: Array) -> Array:
        return jnp.log(expand_as(power, value)) + log_noise(value) - jnp.log(value)

    return ExponentialTransform(lambda value: jnp.exp(log_noise(value)), value, log_slope, positive_edges)


def kumaraswamy(first: Any, second: Any) -> ExponentialTransform:
    """P(Y > y) = (1 - y^first)^second on the unit interval."""

    def log_power(value: Array) -> Array:
        return expand_as(first, value) * jnp.log(value)

    def noise(value: Array) -> Array:
        return -expand_as(second, value) * log_rest(log_power(value))

    def value(noise: Array) -> Array:
        return jnp.exp(log_rest(-noise / expand_as(second, noise)) / expand_as(first, noise))

    def log_slope(value: Array) -> Array:
        log_shapes = jnp.log(expand_as(first, value)) + jnp.log(expand_as(second, value))
        return log_shapes + log_power(value) - jnp.log(value) - log_rest(log_power(value))

    return ExponentialTransform(noise, value, log_slope, unit_edges)


def pareto(scale: Any, power: Any) -> ExponentialTransform:
    """P(Y > y) = (y / scale)^(-power) above the scale."""

    def noise(value: Array) -> Array:
        # The lower end cell lies below the scale, where there is no mass.
        return expand_as(power, value) * jnp.maximum(jnp.log(value) - jnp.log(expand_as(scale, value)), 0)

    def value(noise: Array) -> Array:
        least = expand_as(scale, noise)
        return jnp.maximum(jnp.exp(jnp.log(least) + noise / expand_as(power, noise)), least)

    def log_slope(value: Array) -> Array:
        return jnp.log(expand_as(power, value)) - jnp.log(value)

    return ExponentialTransform(noise, value, log_slope, positive_edges)
