"""The forms of families with a location and a scale: their values are standardised."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from numpyro import distributions as dist

from dpjax.adapters.numpyro.form import Form, along, per_record
from dpjax.base import Array, Key, NormalScores
from dpjax.numerics.normal_tails import both_tails, log_complement, score_of_log
from dpjax.numerics.scores import EXPONENTIAL_SCORES, HALF_NORMAL_SCORES, NORMAL_SCORES

STANDARDISED = "standardised"


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
