"""Families with a shape as noise: on the log and logit scale, or through their distribution function.

Gamma and Beta laws are standardised on the log and logit scale: the density of that noise still depends a little on
their shape, and is part of the form, so that moves which hold the noise stay exact. Values in an end cell
(`dpjax.numerics.ends`) have the noise of any number in it, drawn from its law.
"""

from typing import Any

import jax.numpy as jnp
from jax.scipy.special import gammaln

from dpjax.adapters.numpyro.exponential_laws import (
    ExponentialLaw,
    kumaraswamy,
    noise_within,
    pareto,
    value_of_noise,
    weibull,
)
from dpjax.adapters.numpyro.form import Form, along, per_record
from dpjax.base import Array, Key
from dpjax.numerics.beta import logit_log_density, logit_within, value_at
from dpjax.numerics.ends import positive_at
from dpjax.numerics.gamma import log_within
from dpjax.numerics.scores import EXPONENTIAL_SCORES

BY_DISTRIBUTION = "standard Exponential, by the distribution function"


def log_gamma_moments(shape: Array) -> tuple[Array, Array]:
    """About the mean and the standard deviation of the logarithm of a Gamma variable; any such pair would be exact."""
    return jnp.log(shape) - 1 / (2 * shape), jnp.sqrt(1 / shape + 1 / (2 * shape**2))


def gamma_form(inner: Any) -> Form:
    """A Gamma law, standardised on the log scale."""

    def moments(value: Array) -> tuple[Array, Array]:
        return log_gamma_moments(along(inner.concentration, value))

    def noise(key: Key, value: Array) -> Array:
        location, scale = moments(value)
        logarithm = log_within(key, value, along(inner.concentration, value)) + jnp.log(along(inner.rate, value))
        return (logarithm - location) / scale

    def value(noise: Array) -> Array:
        location, scale = moments(noise)
        return positive_at(location + scale * noise - jnp.log(along(inner.rate, noise)))

    def log_density(noise: Array) -> Array:
        location, scale = moments(noise)
        logarithm, shape = location + scale * noise, along(inner.concentration, noise)
        return per_record(shape * logarithm - jnp.exp(logarithm) - gammaln(shape) + jnp.log(scale))

    return Form("standardised on the log scale", noise, value, log_density)


def beta_form(inner: Any) -> Form:
    """A Beta law, standardised on the logit scale."""

    def shapes(value: Array) -> tuple[Array, Array]:
        return along(inner.concentration1, value), along(inner.concentration0, value)

    def moments(value: Array) -> tuple[Array, Array]:
        (upper, upper_scale), (lower, lower_scale) = map(log_gamma_moments, shapes(value))
        return upper - lower, jnp.sqrt(upper_scale**2 + lower_scale**2)

    def noise(key: Key, value: Array) -> Array:
        location, scale = moments(value)
        return (logit_within(key, value, *shapes(value)) - location) / scale

    def value(noise: Array) -> Array:
        location, scale = moments(noise)
        return value_at(location + scale * noise)

    def log_density(noise: Array) -> Array:
        location, scale = moments(noise)
        return per_record(logit_log_density(location + scale * noise, *shapes(noise)) + jnp.log(scale))

    return Form("standardised on the logit scale", noise, value, log_density)


def exponential_noise(words: str, law: ExponentialLaw) -> Form:
    """The form of a law whose noise is standard Exponential."""
    return Form(
        words,
        lambda key, value: noise_within(key, law, value),
        lambda noise: value_of_noise(law, noise),
        scores=EXPONENTIAL_SCORES,
    )


def weibull_form(inner: Any) -> Form:
    """A Weibull law: a power of standard Exponential noise."""
    return exponential_noise("standardised", weibull(inner.scale, inner.concentration))


def kumaraswamy_form(inner: Any) -> Form:
    """A Kumaraswamy law, P(X > x) = (1 - x^a)^b: the negative logarithm of that is standard Exponential noise."""
    return exponential_noise(BY_DISTRIBUTION, kumaraswamy(inner.concentration1, inner.concentration0))


def pareto_form(inner: Any) -> Form:
    """A Pareto law, P(X > x) = (x / scale)^(-shape): the negative logarithm of that is standard Exponential noise."""
    return exponential_noise(BY_DISTRIBUTION, pareto(inner.scale, inner.alpha))
