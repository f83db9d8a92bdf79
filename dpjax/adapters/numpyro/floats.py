"""The laws of records on floating-point numbers, in place of NumPyro's formulas for real numbers.

NumPyro clips draws that lie beyond the floats or rounds them to the ends of the support, and takes its density there as
it is. With a small shape a great part of all draws is such. These laws give each end cell (`dpjax.numerics.ends`) its
probability.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from numpyro import distributions as dist
from numpyro.distributions import constraints

from dpjax.adapters.numpyro.exponential_laws import (
    ExponentialLaw,
    kumaraswamy,
    law_log_density,
    pareto,
    value_of_noise,
    weibull,
)
from dpjax.adapters.numpyro.form import along
from dpjax.base import Array
from dpjax.numerics.beta import beta_log_density, draw_beta
from dpjax.numerics.dirichlet import dirichlet_log_density, draw_shares
from dpjax.numerics.ends import highest
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
