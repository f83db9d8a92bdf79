"""The forms of families with a location and a scale: their values are standardised."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.scipy.special import gammaln
from numpyro import distributions as dist

from dpjax.adapters.numpyro.floats import ExponentialLaw, kumaraswamy, noise_within, pareto, value_of_noise, weibull
from dpjax.adapters.numpyro.form import Form, along, per_record
from dpjax.base import Array, Key, NormalScores
from dpjax.numerics.dirichlet import logit_log_density, logit_within, value_at
from dpjax.numerics.ends import positive_at
from dpjax.numerics.gamma import log_within
from dpjax.numerics.scores import EXPONENTIAL_SCORES, HALF_NORMAL_SCORES, NORMAL_SCORES
from dpjax.numerics.tails import both_tails, log_complement, score_of_log

STANDARDISED = "standardised"

BY_DISTRIBUTION = "standard Exponential, by the distribution function"


def standardised(location: Any, scale: Any, scores: NormalScores | None) -> Form:
    """``value = location + scale * noise``."""
    return Form(
        STANDARDISED,
        lambda key, value: (value - along(location, value)) / along(scale, value),
        lambda noise: along(location, noise) + along(scale, noise) * noise,
        scores=scores,
    )


def with_location(scores: NormalScores) -> Callable[[Any], Form]:
    """The form of a family with a location and a scale, with the scores of its standard member."""
    return lambda inner: standardised(inner.loc, inner.scale, scores)


def with_scale(scores: NormalScores) -> Callable[[Any], Form]:
    """The form of a family with a scale alone, with the scores of its standard member."""
    return lambda inner: standardised(0.0, inner.scale, scores)


def student_form(inner: Any) -> Form:
    """A Student law: the density of its noise has the degrees of freedom."""

    def log_density(noise: Array) -> Array:
        return per_record(dist.StudentT(along(inner.df, noise)).log_prob(noise))

    return standardised(inner.loc, inner.scale, None)._replace(log_density=log_density)


GUMBEL_SCORES = NormalScores(
    scores=lambda noise: -EXPONENTIAL_SCORES.scores(jnp.exp(-noise)),
    noise=lambda normals: -jnp.log(EXPONENTIAL_SCORES.noise(-normals)),
)
"""P(X < x) = exp(-exp(-x)): exp(-x) is standard Exponential."""

LEVY_SCORES = NormalScores(
    scores=lambda noise: -HALF_NORMAL_SCORES.scores(noise**-0.5),
    noise=lambda normals: HALF_NORMAL_SCORES.noise(-normals) ** -2,
)
"""The inverse square root of a standard Lévy number is the absolute value of a Normal one."""


def asymmetric_laplace_form(inner: Any) -> Form:
    """An asymmetric Laplace law, two Exponential tails: the Normal score of its distribution function."""
    law = inner._ald if isinstance(inner, dist.AsymmetricLaplaceQuantile) else inner

    def parts(value: Array) -> tuple[Array, ...]:
        left, right = along(law.left_scale, value), along(law.right_scale, value)
        return left, right, jnp.log(left / (left + right)), jnp.log(right / (left + right))

    def noise(key: Key, value: Array) -> Array:
        left, right, log_left, log_right = parts(value)
        place = value - along(law.loc, value)
        below, above = log_left + jnp.minimum(place, 0.0) / left, log_right - jnp.maximum(place, 0.0) / right
        negative = place < 0
        return score_of_log(
            jnp.where(negative, below, log_complement(above)), jnp.where(negative, log_complement(below), above)
        )

    def value(noise: Array) -> Array:
        left, right, log_left, log_right = parts(noise)
        below, above = both_tails(noise)
        place = jnp.where(below < log_left, left * (below - log_left), -right * (above - log_right))
        return along(law.loc, noise) + place

    return Form("a Normal score, by the distribution function", noise, value, scores=NORMAL_SCORES)


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
