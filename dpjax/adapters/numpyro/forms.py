"""How the values of a distribution are written as noise that is free of its parameters, or nearly so.

Families with a location or a scale are standardised; others go through their distribution function where that and its
inverse are known; discrete values are a uniform within their cell. Families with a shape have a module of their own.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from numpyro import distributions as dist
from numpyro.distributions.transforms import ComposeTransform

from dpjax.adapters.numpyro.cells import binary_form, category_form, count_form, level_form
from dpjax.adapters.numpyro.floats import on_floats
from dpjax.adapters.numpyro.form import CENTRED, Form, along, per_record
from dpjax.adapters.numpyro.shapes import beta_form, gamma_form, kumaraswamy_form, pareto_form, weibull_form
from dpjax.adapters.numpyro.visit import unwrap
from dpjax.base import Array, Key, NormalScores
from dpjax.models.linear_algebra import product, solve_lower
from dpjax.models.scores import EXPONENTIAL_SCORES, NORMAL_SCORES, UNIFORM_SCORES

STANDARDISED = "standardised"
QUANTILE = "a uniform, by the distribution function"


def form_of(law: Any) -> Form:
    """The form of a distribution; the centred one, in which the values are the noise, where there is no other."""
    inner = unwrap(law)
    for family, build in FAMILIES:
        if isinstance(inner, family):
            return build(inner)
    if isinstance(inner, dist.TransformedDistribution):
        return transformed_form(law, inner)
    if inner.event_shape:
        return centred_form(law)
    if inner.support.is_discrete:
        return count_form(inner)
    return quantile_form(inner) if has_inverse(inner) else centred_form(law)


def draw_value(key: Key, law: Any) -> Array:
    """A draw from a distribution: through its noise, or dpjax's own sampler, where that is faster than NumPyro's."""
    form = form_of(law)
    if form.draw is None:
        return on_floats(law).sample(key)
    return form.value(form.draw(key, law.batch_shape + law.event_shape, float))


def centred_form(law: Any) -> Form:
    """The values themselves, with their density."""
    return Form(CENTRED, lambda key, value: value, lambda noise: noise, on_floats(law).log_prob)


def standardised(location: Any, scale: Any, scores: NormalScores | None) -> Form:
    """``value = location + scale * noise``."""
    return Form(
        STANDARDISED,
        lambda key, value: (value - along(location, value)) / along(scale, value),
        lambda noise: along(location, noise) + along(scale, noise) * noise,
        scores=scores,
    )


def with_location(standard: Any) -> Callable[[Any], Form]:
    """The form of a family with a location and a scale, whose standard member is given."""
    return lambda inner: standardised(inner.loc, inner.scale, quantile_scores(standard))


def with_scale(standard: Any) -> Callable[[Any], Form]:
    """The form of a family with a scale alone, whose standard member is given."""
    return lambda inner: standardised(0.0, inner.scale, quantile_scores(standard))


def quantile_scores(standard: Any) -> NormalScores:
    """Normal scores of noise from a standard law with a distribution function and its inverse."""
    return NormalScores(
        scores=lambda noise: UNIFORM_SCORES.scores(standard.cdf(noise)),
        noise=lambda normals: standard.icdf(UNIFORM_SCORES.noise(normals)),
    )


def normal_form(inner: Any) -> Form:
    """A Normal law."""
    return standardised(inner.loc, inner.scale, NORMAL_SCORES)


def uniform_form(inner: Any) -> Form:
    """A Uniform law, whose bounds may move."""
    return standardised(inner.low, inner.high - inner.low, UNIFORM_SCORES)


def student_form(inner: Any) -> Form:
    """A Student law: the density of its noise has the degrees of freedom."""

    def log_density(noise: Array) -> Array:
        return per_record(dist.StudentT(along(inner.df, noise)).log_prob(noise))

    return standardised(inner.loc, inner.scale, None)._replace(log_density=log_density)


def exponential_form(inner: Any) -> Form:
    """An Exponential law."""
    return standardised(0.0, 1 / jnp.asarray(inner.rate, float), EXPONENTIAL_SCORES)


def multivariate_form(inner: Any) -> Form:
    """A multivariate Normal law, ``value = loc + L noise`` with its lower factor L."""
    factor = inner.scale_tril

    def noise(key: Key, value: Array) -> Array:
        shift = value - along(inner.loc, value)
        if factor.ndim == 2:
            return solve_lower(factor, shift.T).T
        return jax.vmap(lambda one, column: solve_lower(one, column[:, None])[:, 0])(factor, shift)

    def value(noise: Array) -> Array:
        spread = product(noise, factor.T) if factor.ndim == 2 else product(factor, noise[..., None])[..., 0]
        return along(inner.loc, noise) + spread

    return Form("standardised by its Cholesky factor", noise, value, scores=NORMAL_SCORES, draw=jax.random.normal)


def transformed_form(law: Any, inner: Any) -> Form:
    """The form of the distribution that is transformed."""
    base = form_of(inner.base_dist)
    if base.words == CENTRED:
        return centred_form(law)
    transform = ComposeTransform(inner.transforms)
    return base._replace(
        words=f"{base.words}, before its transform",
        noise=lambda key, value: base.noise(key, transform.inv(value)),
        value=lambda noise: transform(base.value(noise)),
    )


def quantile_form(inner: Any) -> Form:
    """A continuous law with a distribution function and its inverse."""

    def noise(key: Key, value: Array) -> Array:
        return jnp.clip(inner.cdf(value), jnp.finfo(value.dtype).tiny, 1 - jnp.finfo(value.dtype).epsneg)

    return Form(QUANTILE, noise, inner.icdf, scores=UNIFORM_SCORES)


def has_inverse(inner: Any) -> bool:
    """Whether NumPyro can compute the distribution function and its inverse here."""
    half = jnp.full(inner.batch_shape, 0.5)
    try:
        jax.eval_shape(lambda value: (inner.cdf(value), inner.icdf(value)), half)
    except Exception:  # NumPyro raises several kinds, one of them for a package that is missing
        return False
    return True


FAMILIES: tuple[tuple[Any, Callable[[Any], Form]], ...] = (
    (dist.Normal, normal_form),
    (dist.Laplace, with_location(dist.Laplace(0.0, 1.0))),
    (dist.Cauchy, with_location(dist.Cauchy(0.0, 1.0))),
    (dist.Logistic, with_location(dist.Logistic(0.0, 1.0))),
    (dist.Gumbel, with_location(dist.Gumbel(0.0, 1.0))),
    (dist.HalfNormal, with_scale(dist.HalfNormal(1.0))),
    (dist.HalfCauchy, with_scale(dist.HalfCauchy(1.0))),
    (dist.StudentT, student_form),
    (dist.Uniform, uniform_form),
    (dist.Exponential, exponential_form),
    (dist.Weibull, weibull_form),
    (dist.Kumaraswamy, kumaraswamy_form),
    (dist.Pareto, pareto_form),
    (dist.Gamma, gamma_form),
    (dist.Beta, beta_form),
    (dist.MultivariateNormal, multivariate_form),
    ((dist.BernoulliProbs, dist.BernoulliLogits), binary_form),
    ((dist.CategoricalProbs, dist.CategoricalLogits), category_form),
    (dist.DiscreteUniform, level_form),
)
"""The families with a form of their own; subclasses, such as Chi2 of Gamma, share it."""
