"""Forms of continuous families: standardised, or by their distribution function."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.scipy.special import gammaln
from numpyro import distributions as dist

from dpjax.adapters.numpyro.floats import (
    ExponentialTransform,
    kumaraswamy,
    noise_within,
    pareto,
    value_of_noise,
    weibull,
)
from dpjax.adapters.numpyro.form import Form, expand_as, per_record
from dpjax.base import Array, Key, NormalScores
from dpjax.numerics.dirichlet import logit_log_density, logit_moments, logit_within, value_at
from dpjax.numerics.ends import positive_at
from dpjax.numerics.gamma import log_gamma_moments, log_within
from dpjax.numerics.scores import EXPONENTIAL_SCORES, HALF_NORMAL_SCORES, NORMAL_SCORES
from dpjax.numerics.tails import both_tails, log_complement, score_of_log

STANDARDISED = "standardised"

BY_DISTRIBUTION = "standard Exponential, by the distribution function"


def standardised(location: Any, scale: Any, scores: NormalScores | None) -> Form:
    """``value = location + scale * noise``."""
    return Form(
        STANDARDISED,
        lambda key, value: (value - expand_as(location, value)) / expand_as(scale, value),
        lambda noise: expand_as(location, noise) + expand_as(scale, noise) * noise,
        scores=scores,
    )


def with_location(scores: NormalScores) -> Callable[[Any], Form]:
    """The forms of a family with a location and a scale, from the scores of its standard member."""
    return lambda inner: standardised(inner.loc, inner.scale, scores)


def with_scale(scores: NormalScores) -> Callable[[Any], Form]:
    """The forms of a family with a scale alone, from the scores of its standard member."""
    return lambda inner: standardised(0.0, inner.scale, scores)


def student_form(inner: Any) -> Form:
    """The form of a Student distribution; the density of its noise depends on the degrees of freedom."""

    def log_density(noise: Array) -> Array:
        return per_record(dist.StudentT(expand_as(inner.df, noise)).log_prob(noise))

    return standardised(inner.loc, inner.scale, None)._replace(log_density=log_density)


GUMBEL_SCORES = NormalScores(
    scores=lambda noise: -EXPONENTIAL_SCORES.scores(jnp.exp(-noise)),
    noise=lambda normals: -jnp.log(EXPONENTIAL_SCORES.noise(-normals)),
)
"""exp(-x) of a standard Gumbel variable x is standard Exponential."""

LEVY_SCORES = NormalScores(
    scores=lambda noise: -HALF_NORMAL_SCORES.scores(noise**-0.5),
    noise=lambda normals: HALF_NORMAL_SCORES.noise(-normals) ** -2,
)
"""The inverse square root of a standard Lévy variable is half-Normal."""


def asymmetric_laplace_form(inner: Any) -> Form:
    """The form of an asymmetric Laplace distribution: the Normal score of its distribution function."""
    distribution = inner._ald if isinstance(inner, dist.AsymmetricLaplaceQuantile) else inner

    def parts(value: Array) -> tuple[Array, ...]:
        left, right = expand_as(distribution.left_scale, value), expand_as(distribution.right_scale, value)
        return left, right, jnp.log(left / (left + right)), jnp.log(right / (left + right))

    def noise(key: Key, value: Array) -> Array:
        left, right, log_left, log_right = parts(value)
        place = value - expand_as(distribution.loc, value)
        below, above = log_left + jnp.minimum(place, 0.0) / left, log_right - jnp.maximum(place, 0.0) / right
        negative = place < 0
        return score_of_log(
            jnp.where(negative, below, log_complement(above)), jnp.where(negative, log_complement(below), above)
        )

    def value(noise: Array) -> Array:
        left, right, log_left, log_right = parts(noise)
        below, above = both_tails(noise)
        place = jnp.where(below < log_left, left * (below - log_left), -right * (above - log_right))
        return expand_as(distribution.loc, noise) + place

    return Form("a Normal score, by the distribution function", noise, value, scores=NORMAL_SCORES)


def by_exponential(noise: Callable[[Array], Array], value: Callable[[Array], Array]) -> Form:
    """The form with standard Exponential noise, from the map to noise and its inverse."""
    return Form(BY_DISTRIBUTION, lambda key, values: noise(values), value, scores=EXPONENTIAL_SCORES)


def exponential_form(inner: Any) -> Form:
    """The form of an Exponential distribution."""
    return standardised(0.0, 1 / jnp.asarray(inner.rate, float), EXPONENTIAL_SCORES)


def gompertz_form(inner: Any) -> Form:
    """The form of a Gompertz distribution, P(X > x) = exp(-c (exp(r x) - 1))."""
    return by_exponential(
        lambda value: expand_as(inner.concentration, value) * jnp.expm1(value * expand_as(inner.rate, value)),
        lambda noise: jnp.log1p(noise / expand_as(inner.concentration, noise)) / expand_as(inner.rate, noise),
    )


def power_law_form(inner: Any) -> Form:
    """The form of a power law above its lower bound, P(X > x) = (x / low)^(1 + α)."""

    def noise(value: Array) -> Array:
        low = expand_as(inner.low, value)
        return -(1 + expand_as(inner.alpha, value)) * jnp.log1p((value - low) / low)

    def value(noise: Array) -> Array:
        return expand_as(inner.low, noise) * jnp.exp(-noise / (1 + expand_as(inner.alpha, noise)))

    return by_exponential(noise, value)


def dagum_form(inner: Any) -> Form:
    """The form of a Dagum distribution, P(X < x) = (1 + (x / b)^-a)^-p."""

    def noise(value: Array) -> Array:
        ratio = jnp.log(value / expand_as(inner.scale, value))
        return expand_as(inner.concentration, value) * jax.nn.softplus(-expand_as(inner.sharpness, value) * ratio)

    def value(noise: Array) -> Array:
        odds = jnp.expm1(noise / expand_as(inner.concentration, noise))
        return expand_as(inner.scale, noise) * odds ** (-1 / expand_as(inner.sharpness, noise))

    return by_exponential(noise, value)


def gamma_form(inner: Any) -> Form:
    """The form of a Gamma distribution, standardised on the log scale."""

    def moments(value: Array) -> tuple[Array, Array]:
        return log_gamma_moments(expand_as(inner.concentration, value))

    def noise(key: Key, value: Array) -> Array:
        location, scale = moments(value)
        logarithm = log_within(key, value, expand_as(inner.concentration, value)) + jnp.log(
            expand_as(inner.rate, value)
        )
        return (logarithm - location) / scale

    def value(noise: Array) -> Array:
        location, scale = moments(noise)
        return positive_at(location + scale * noise - jnp.log(expand_as(inner.rate, noise)))

    def log_density(noise: Array) -> Array:
        location, scale = moments(noise)
        logarithm, shape = location + scale * noise, expand_as(inner.concentration, noise)
        return per_record(shape * logarithm - jnp.exp(logarithm) - gammaln(shape) + jnp.log(scale))

    return Form("standardised on the log scale", noise, value, log_density)


def beta_form(inner: Any) -> Form:
    """The form of a Beta distribution, standardised on the logit scale."""

    def shapes(value: Array) -> tuple[Array, Array]:
        return expand_as(inner.concentration1, value), expand_as(inner.concentration0, value)

    def noise(key: Key, value: Array) -> Array:
        location, scale = logit_moments(*shapes(value))
        return (logit_within(key, value, *shapes(value)) - location) / scale

    def value(noise: Array) -> Array:
        location, scale = logit_moments(*shapes(noise))
        return value_at(location + scale * noise)

    def log_density(noise: Array) -> Array:
        location, scale = logit_moments(*shapes(noise))
        return per_record(logit_log_density(location + scale * noise, *shapes(noise)) + jnp.log(scale))

    return Form("standardised on the logit scale", noise, value, log_density)


def exponential_noise(words: str, transform: ExponentialTransform) -> Form:
    """The form of a transform of standard Exponential noise."""
    return Form(
        words,
        lambda key, value: noise_within(key, transform, value),
        lambda noise: value_of_noise(transform, noise),
        scores=EXPONENTIAL_SCORES,
    )


def weibull_form(inner: Any) -> Form:
    """The form of a Weibull distribution, a power of standard Exponential noise."""
    return exponential_noise("standardised", weibull(inner.scale, inner.concentration))


def kumaraswamy_form(inner: Any) -> Form:
    """The form of a Kumaraswamy distribution; -log P(X > x), P(X > x) = (1 - x^a)^b, is standard Exponential noise."""
    return exponential_noise(BY_DISTRIBUTION, kumaraswamy(inner.concentration1, inner.concentration0))


def pareto_form(inner: Any) -> Form:
    """The form of a Pareto distribution; -log P(X > x) = shape log(x / scale) is standard Exponential noise."""
    return exponential_noise(BY_DISTRIBUTION, pareto(inner.scale, inner.alpha))
