"""Truncated distributions through the logarithms of their tails, accurate for intervals far from the bulk.

A value z is standardised, and reflected if the interval [a, b] lies mostly above 0. The distances of log F(z) to log
F(a) and log F(b) give the logarithms of both tails of the truncated distribution, hence the Normal score.
"""

from math import prod
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from numpyro import distributions as dist
from numpyro.distributions.truncated import (
    LeftTruncatedDistribution,
    RightTruncatedDistribution,
    TwoSidedTruncatedDistribution,
)

from dpjax.adapters.numpyro.form import Form, expand_as
from dpjax.adapters.numpyro.trace import unwrap
from dpjax.base import Array, Key
from dpjax.numerics.normals import standard_normals
from dpjax.numerics.scores import NORMAL_SCORES
from dpjax.numerics.tails import CAUCHY, LAPLACE, LOGISTIC, NORMAL, SOFT_LAPLACE, Symmetric, both_tails, score_of_log

__all__ = ["TRUNCATED", "is_truncated", "truncated_form", "truncated_log_density"]

TRUNCATED = (LeftTruncatedDistribution, RightTruncatedDistribution, TwoSidedTruncatedDistribution)
BASES: dict[Any, Symmetric] = {
    dist.Normal: NORMAL,
    dist.Laplace: LAPLACE,
    dist.Logistic: LOGISTIC,
    dist.Cauchy: CAUCHY,
    dist.SoftLaplace: SOFT_LAPLACE,
}
DESCRIPTION = "a Normal score, by the distribution function"

CATEGORIES = (dist.CategoricalProbs, dist.CategoricalLogits)
MIXTURES = (dist.MixtureSameFamily, dist.MixtureGeneral)


class Interval(NamedTuple):
    """Standardised intervals, one for each value.

    Attributes
    ----------
    flip
        Whether the interval is reflected about 0, so that it lies mostly below 0.
    low
        log F at its lower end.
    high
        log F at its upper end.
    """

    flip: Array
    low: Array
    high: Array


def is_truncated(inner: Any) -> bool:
    """Whether a distribution is a truncated one of a known family."""
    return isinstance(inner, TRUNCATED) and type(inner.base_dist) in BASES


def find_interval(inner: Any, value: Array) -> tuple[Symmetric, Interval]:
    """The standard distribution and the intervals, in the shape of a value."""
    standard = BASES[type(inner.base_dist)]
    loc, scale = expand_as(inner.base_dist.loc, value), expand_as(inner.base_dist.scale, value)
    low, high = ((expand_as(bound, value) - loc) / scale for bound in bounds(inner))
    flip = low + high > 0
    ends = jnp.where(flip, -high, low), jnp.where(flip, -low, high)
    return standard, Interval(flip, *(standard.log_cdf(end) for end in ends))


def bounds(inner: Any) -> tuple[Any, Any]:
    """The ends of the interval."""
    return getattr(inner, "low", -jnp.inf), getattr(inner, "high", jnp.inf)


def truncated_form(inner: Any) -> Form:
    """The form of a truncated distribution: the Normal score of its distribution function."""

    def noise(key: Key, value: Array) -> Array:
        standard, interval = find_interval(inner, value)
        place = (value - expand_as(inner.base_dist.loc, value)) / expand_as(inner.base_dist.scale, value)
        return score(interval, standard.log_cdf(jnp.where(interval.flip, -place, place)))

    def value(noise: Array) -> Array:
        standard, interval = find_interval(inner, noise)
        place = standard.quantile(log_cdf_of(interval, noise))
        place = expand_as(inner.base_dist.scale, noise) * jnp.where(interval.flip, -place, place)
        return jnp.clip(
            expand_as(inner.base_dist.loc, noise) + place,
            *(expand_as(bound, noise) for bound in bounds(inner)),
        )

    return Form(DESCRIPTION, noise, value, scores=NORMAL_SCORES, draw=standard_normals)


def score(interval: Interval, log_cdf: Array) -> Array:
    """The Normal score of a value with this log F; a value rounded to an end has that of the next float."""
    least = jnp.finfo(log_cdf.dtype).eps * (1 + jnp.abs(log_cdf))
    above = jnp.maximum(log_cdf - interval.low, least)
    below = jnp.maximum(interval.high - log_cdf, least)
    log_total = log_mass(interval.high - interval.low)
    sign = jnp.where(interval.flip, -1.0, 1.0).astype(log_cdf.dtype)
    return sign * score_of_log(log_mass(above) - below - log_total, log_mass(below) - log_total)


def log_cdf_of(interval: Interval, noise: Array) -> Array:
    """The inverse of `score`: the log F of a Normal score."""
    reflected = jnp.where(interval.flip, -noise, noise)
    log_total = log_mass(interval.high - interval.low)
    lower, upper = both_tails(reflected)
    from_below = jnp.logaddexp(interval.low - interval.high, lower + log_total)
    from_above = log_mass(-(upper + log_total))
    return interval.high + jnp.minimum(jnp.where(reflected <= 0, from_below, from_above), 0.0)


def log_mass(distance: Array) -> Array:
    """log(1 - exp(-distance)) for distances of at least 0."""
    safe = jnp.maximum(distance, jnp.finfo(distance.dtype).tiny)
    return jnp.where(safe < 0.7, jnp.log(-jnp.expm1(-safe)), jnp.log1p(-jnp.exp(-safe)))


def truncated_log_density(inner: Any, value: Array) -> Array:
    """The log-density of each value, without a check of the bounds."""
    _, interval = find_interval(inner, value)
    return inner.base_dist.log_prob(value) - interval.high - log_mass(interval.high - interval.low)


def log_density(distribution: Any, value: Array) -> Array:
    """The log-density of a value; -inf outside the support."""
    inner = unwrap(distribution)
    if is_truncated(inner):
        return sum_over_events(
            distribution, jnp.where(inner.support(value), truncated_log_density(inner, value), -jnp.inf)
        )
    result = log_probability(distribution, inner, value)
    inside = in_support(inner, value)
    return jnp.where(jnp.all(inside, axis=tuple(range(result.ndim, inside.ndim))), result, -jnp.inf)


def log_probability(distribution: Any, inner: Any, value: Array) -> Array:
    """NumPyro's log-density, but without broadcasting categorical probabilities that all records share.

    A gradient would hold a copy of them for each record.
    """
    if not isinstance(inner, CATEGORIES) or distribution.event_shape or prod(inner.batch_shape) > 1:
        return distribution.log_prob(value)
    logs = jnp.ravel(inner.logits)
    return (logs if isinstance(inner, dist.CategoricalProbs) else jax.nn.log_softmax(logs))[value]


def in_support(inner: Any, value: Array) -> Array:
    """Whether values lie in the support; true for vectors, matrices and mixtures, which are not checked."""
    if inner.event_shape or isinstance(inner, MIXTURES):
        return jnp.ones(value.shape[: value.ndim - len(inner.event_shape)], bool)
    return jnp.broadcast_to(jnp.asarray(inner.support(value)), value.shape)


def sum_over_events(distribution: Any, terms: Array) -> Array:
    """The sum over the event axes of a distribution."""
    return jnp.sum(terms, axis=tuple(range(terms.ndim - len(distribution.event_shape), terms.ndim)))
