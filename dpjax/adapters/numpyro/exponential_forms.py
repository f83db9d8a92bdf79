"""The forms of families that are functions of standard Exponential noise -log P(X > x), or -log P(X < x)."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from dpjax.adapters.numpyro.form import Form, along
from dpjax.adapters.numpyro.located_forms import standardised
from dpjax.adapters.numpyro.shapes import BY_DISTRIBUTION
from dpjax.base import Array
from dpjax.numerics.scores import EXPONENTIAL_SCORES


def by_exponential(noise: Callable[[Array], Array], value: Callable[[Array], Array]) -> Form:
    """The form of a map to standard Exponential noise and its inverse."""
    return Form(BY_DISTRIBUTION, lambda key, values: noise(values), value, scores=EXPONENTIAL_SCORES)


def exponential_form(inner: Any) -> Form:
    """An Exponential law."""
    return standardised(0.0, 1 / jnp.asarray(inner.rate, float), EXPONENTIAL_SCORES)


def gompertz_form(inner: Any) -> Form:
    """A Gompertz law, P(X > x) = exp(-c (exp(r x) - 1))."""
    return by_exponential(
        lambda value: along(inner.concentration, value) * jnp.expm1(value * along(inner.rate, value)),
        lambda noise: jnp.log1p(noise / along(inner.concentration, noise)) / along(inner.rate, noise),
    )


def power_law_form(inner: Any) -> Form:
    """A power law above its lower bound, P(X > x) = (x / low)^(1 + α)."""

    def noise(value: Array) -> Array:
        low = along(inner.low, value)
        return -(1 + along(inner.alpha, value)) * jnp.log1p((value - low) / low)

    def value(noise: Array) -> Array:
        return along(inner.low, noise) * jnp.exp(-noise / (1 + along(inner.alpha, noise)))

    return by_exponential(noise, value)


def dagum_form(inner: Any) -> Form:
    """A Dagum law, P(X < x) = (1 + (x / b)^-a)^-p."""

    def noise(value: Array) -> Array:
        ratio = jnp.log(value / along(inner.scale, value))
        return along(inner.concentration, value) * jax.nn.softplus(-along(inner.sharpness, value) * ratio)

    def value(noise: Array) -> Array:
        odds = jnp.expm1(noise / along(inner.concentration, noise))
        return along(inner.scale, noise) * odds ** (-1 / along(inner.sharpness, noise))

    return by_exponential(noise, value)
