"""Laws cut to an interval, through the logarithms of their tails: exact where the interval is far outside of the bulk.

In units of the law, and turned so that the interval [a, b] lies mostly below 0, the value z has log F(z) between
log F(a) and log F(b). Its distances to those ends give the logarithms of both tails of the cut law, hence its score.
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

from dpjax.adapters.numpyro.form import Form, along
from dpjax.adapters.numpyro.visit import unwrap
from dpjax.base import Array, Key
from dpjax.numerics.scores import NORMAL_SCORES
from dpjax.numerics.tails import CAUCHY, LAPLACE, LOGISTIC, NORMAL, SOFT_LAPLACE, Symmetric, both_tails, score_of_log

__all__ = ["TRUNCATED", "is_cut", "truncated_form", "truncated_log_density"]

TRUNCATED = (LeftTruncatedDistribution, RightTruncatedDistribution, TwoSidedTruncatedDistribution)
BASES: dict[Any, Symmetric] = {
    dist.Normal: NORMAL,
    dist.Laplace: LAPLACE,
    dist.Logistic: LOGISTIC,
    dist.Cauchy: CAUCHY,
    dist.SoftLaplace: SOFT_LAPLACE,
}
WORDS = "a Normal score, by the distribution function"

CATEGORIES = (dist.CategoricalProbs, dist.CategoricalLogits)
MIXTURES = (dist.MixtureSameFamily, dist.MixtureGeneral)


class Cut(NamedTuple):
    """An interval in the units of a standard law, for each of a set of values.

    Attributes
    ----------
    flip
        Whether the law is turned about 0, so that the interval lies mostly below 0.
    low
        log F at the lower end, after that.
    high
        log F at the upper end, after that.
    """

    flip: Array
    low: Array
    high: Array


def is_cut(inner: Any) -> bool:
    """Whether a law is one of those that are cut here."""
    return isinstance(inner, TRUNCATED) and type(inner.base_dist) in BASES


def find_cut(inner: Any, value: Array) -> tuple[Symmetric, Cut]:
    """The standard law and the interval, in the shape of a value."""
    law = BASES[type(inner.base_dist)]
    loc, scale = along(inner.base_dist.loc, value), along(inner.base_dist.scale, value)
    low, high = ((along(bound, value) - loc) / scale for bound in bounds(inner))
    flip = low + high > 0
    ends = jnp.where(flip, -high, low), jnp.where(flip, -low, high)
    return law, Cut(flip, *(law.log_cdf(end) for end in ends))


def bounds(inner: Any) -> tuple[Any, Any]:
    """The ends of the interval."""
    return getattr(inner, "low", -jnp.inf), getattr(inner, "high", jnp.inf)


def truncated_form(inner: Any) -> Form:
    """A truncated law by the Normal score of its distribution function."""

    def noise(key: Key, value: Array) -> Array:
        law, cut = find_cut(inner, value)
        place = (value - along(inner.base_dist.loc, value)) / along(inner.base_dist.scale, value)
        return score(cut, law.log_cdf(jnp.where(cut.flip, -place, place)))

    def value(noise: Array) -> Array:
        law, cut = find_cut(inner, noise)
        place = law.quantile(log_cdf_of(cut, noise))
        place = along(inner.base_dist.scale, noise) * jnp.where(cut.flip, -place, place)
        return jnp.clip(along(inner.base_dist.loc, noise) + place, *(along(bound, noise) for bound in bounds(inner)))

    return Form(WORDS, noise, value, scores=NORMAL_SCORES, draw=jax.random.normal)


def score(cut: Cut, log_cdf: Array) -> Array:
    """The Normal score of a value with this log F; a value rounded to an end has that of the next number."""
    least = jnp.finfo(log_cdf.dtype).eps * (1 + jnp.abs(log_cdf))
    above = jnp.maximum(log_cdf - cut.low, least)
    below = jnp.maximum(cut.high - log_cdf, least)
    log_total = log_mass(cut.high - cut.low)
    sign = jnp.where(cut.flip, -1.0, 1.0).astype(log_cdf.dtype)
    return sign * score_of_log(log_mass(above) - below - log_total, log_mass(below) - log_total)


def log_cdf_of(cut: Cut, noise: Array) -> Array:
    """The inverse of `score`."""
    turned = jnp.where(cut.flip, -noise, noise)
    log_total = log_mass(cut.high - cut.low)
    lower, upper = both_tails(turned)
    from_below = jnp.logaddexp(cut.low - cut.high, lower + log_total)
    from_above = log_mass(-(upper + log_total))
    return cut.high + jnp.minimum(jnp.where(turned <= 0, from_below, from_above), 0.0)


def log_mass(distance: Array) -> Array:
    """log(1 - exp(-distance)) for distances of at least 0."""
    safe = jnp.maximum(distance, jnp.finfo(distance.dtype).tiny)
    return jnp.where(safe < 0.7, jnp.log(-jnp.expm1(-safe)), jnp.log1p(-jnp.exp(-safe)))


def truncated_log_density(inner: Any, value: Array) -> Array:
    """The log-density of each value; the bounds are not looked at."""
    _, cut = find_cut(inner, value)
    return inner.base_dist.log_prob(value) - cut.high - log_mass(cut.high - cut.low)


def log_density(law: Any, value: Array) -> Array:
    """The log-density of a value; -inf beyond the support."""
    inner = unwrap(law)
    if is_cut(inner):
        return over_events(law, jnp.where(inner.support(value), truncated_log_density(inner, value), -jnp.inf))
    result = log_probability(law, inner, value)
    inside = in_support(inner, value)
    return jnp.where(jnp.all(inside, axis=tuple(range(result.ndim, inside.ndim))), result, -jnp.inf)


def log_probability(law: Any, inner: Any, value: Array) -> Array:
    """NumPyro's log-density; of categories of one law for all records without its copy of the law for each of them.

    A gradient would hold that copy: as many numbers as records times categories.
    """
    if not isinstance(inner, CATEGORIES) or law.event_shape or prod(inner.batch_shape) > 1:
        return law.log_prob(value)
    logs = jnp.ravel(inner.logits)
    return (logs if isinstance(inner, dist.CategoricalProbs) else jax.nn.log_softmax(logs))[value]


def in_support(inner: Any, value: Array) -> Array:
    """Whether single numbers are possible values; vectors, matrices and mixtures are not looked at."""
    if inner.event_shape or isinstance(inner, MIXTURES):
        return jnp.ones(value.shape[: value.ndim - len(inner.event_shape)], bool)
    return jnp.broadcast_to(jnp.asarray(inner.support(value)), value.shape)


def over_events(law: Any, terms: Array) -> Array:
    """The sum over the axes that belong to one value of the law."""
    return jnp.sum(terms, axis=tuple(range(terms.ndim - len(law.event_shape), terms.ndim)))
