"""Forms of distributions: their values as noise that depends on their parameters little or not at all.

Families with a location or a scale are standardised. Others use their distribution function if it is known on the log
scale, where neither tail saturates. Discrete values are a uniform within their cell. All other distributions stay
centred.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from numpyro import distributions as dist
from numpyro.distributions.transforms import ComposeTransform

from dpjax.adapters.numpyro.cells import binary_form, category_form, count_form, is_counted, level_form
from dpjax.adapters.numpyro.families import (
    GUMBEL_SCORES,
    LEVY_SCORES,
    asymmetric_laplace_form,
    beta_form,
    dagum_form,
    exponential_form,
    gamma_form,
    gompertz_form,
    kumaraswamy_form,
    pareto_form,
    power_law_form,
    standardised,
    student_form,
    weibull_form,
    with_location,
    with_scale,
)
from dpjax.adapters.numpyro.floats import on_floats
from dpjax.adapters.numpyro.form import CENTRED, Form, expand_as
from dpjax.adapters.numpyro.mixtures import is_normal_mixture, mixture_form
from dpjax.adapters.numpyro.trace import sample, unwrap
from dpjax.adapters.numpyro.truncation import is_truncated, log_density, truncated_form
from dpjax.base import Array, Key
from dpjax.numerics.linear_algebra import product, solve_lower
from dpjax.numerics.normals import standard_normals
from dpjax.numerics.scores import HALF_CAUCHY_SCORES, HALF_NORMAL_SCORES, NORMAL_SCORES, UNIFORM_SCORES
from dpjax.numerics.tails import CAUCHY, LAPLACE, LOGISTIC, SOFT_LAPLACE


def form_of(distribution: Any) -> Form:
    """The form of a distribution; centred, with the values as noise, if there is no other."""
    inner = unwrap(distribution)
    for family, build in FAMILIES:
        if isinstance(inner, family):
            return build(inner)
    if isinstance(inner, dist.FoldedDistribution):
        return folded_form(distribution, inner)
    if isinstance(inner, dist.TransformedDistribution):
        return transformed_form(distribution, inner)
    if is_truncated(inner):
        return truncated_form(inner)
    if is_normal_mixture(inner):
        return mixture_form(inner)
    return count_form(inner) if is_counted(inner) else centred_form(distribution)


def draw_value(key: Key, distribution: Any) -> Array:
    """A draw from a distribution on floats, through its noise if that is faster."""
    form = form_of(distribution)
    if form.draw is None:
        return on_floats(distribution).sample(key)
    return form.value(form.draw(key, distribution.batch_shape + distribution.event_shape, float))


def draw_parameter(key: Key, distribution: Any) -> Array:
    """A draw from a distribution by NumPyro's sampler, unless that is inaccurate in a tail."""
    return draw_value(key, distribution) if is_truncated(unwrap(distribution)) else sample(key, distribution)


def centred_form(distribution: Any) -> Form:
    """The centred form: the values themselves, with their density."""
    return Form(CENTRED, lambda key, value: value, lambda noise: noise, partial(log_density, on_floats(distribution)))


def folded_form(distribution: Any, inner: Any) -> Form:
    """The form of an absolute value: the sign is drawn given the value, then the base distribution's form is used."""
    base = form_of(inner.base_dist)
    if base.description == CENTRED:
        return centred_form(distribution)

    def noise(key: Key, value: Array) -> Array:
        sign_key, noise_key = jax.random.split(key)
        odds = inner.base_dist.log_prob(value) - inner.base_dist.log_prob(-value)
        positive = jax.random.uniform(sign_key, value.shape, value.dtype) < jax.nn.sigmoid(odds)
        return base.noise(noise_key, jnp.where(positive, value, -value))

    return base._replace(
        description=f"{base.description}, before its sign is lost",
        noise=noise,
        value=lambda noise: jnp.abs(base.value(noise)),
    )


def normal_form(inner: Any) -> Form:
    """The form of a Normal distribution."""
    return standardised(inner.loc, inner.scale, NORMAL_SCORES)._replace(draw=standard_normals)


def uniform_form(inner: Any) -> Form:
    """The form of a Uniform distribution, whose bounds may depend on parameters."""
    return standardised(inner.low, inner.high - inner.low, UNIFORM_SCORES)


def multivariate_form(inner: Any) -> Form:
    """The form of a multivariate Normal distribution, ``value = loc + L noise`` with its Cholesky factor L."""
    factor = inner.scale_tril

    def noise(key: Key, value: Array) -> Array:
        shift = value - expand_as(inner.loc, value)
        if factor.ndim == 2:
            return solve_lower(factor, shift.T).T
        return jax.vmap(lambda one, column: solve_lower(one, column[:, None])[:, 0])(factor, shift)

    def value(noise: Array) -> Array:
        shift = product(noise, factor.T) if factor.ndim == 2 else product(factor, noise[..., None])[..., 0]
        return expand_as(inner.loc, noise) + shift

    return Form("standardised by its Cholesky factor", noise, value, scores=NORMAL_SCORES, draw=standard_normals)


def transformed_form(distribution: Any, inner: Any) -> Form:
    """The form of a transformed distribution, that of its base distribution."""
    base = form_of(inner.base_dist)
    if base.description == CENTRED:
        return centred_form(distribution)
    transform = ComposeTransform(inner.transforms)
    return base._replace(
        description=f"{base.description}, before its transform",
        noise=lambda key, value: base.noise(key, transform.inv(value)),
        value=lambda noise: transform(base.value(noise)),
    )


FAMILIES: tuple[tuple[Any, Callable[[Any], Form]], ...] = (
    (dist.Normal, normal_form),
    (dist.Laplace, with_location(LAPLACE.scores())),
    (dist.Cauchy, with_location(CAUCHY.scores())),
    (dist.Logistic, with_location(LOGISTIC.scores())),
    (dist.SoftLaplace, with_location(SOFT_LAPLACE.scores())),
    (dist.Gumbel, with_location(GUMBEL_SCORES)),
    (dist.Levy, with_location(LEVY_SCORES)),
    (dist.HalfNormal, with_scale(HALF_NORMAL_SCORES)),
    (dist.HalfCauchy, with_scale(HALF_CAUCHY_SCORES)),
    (dist.StudentT, student_form),
    (dist.Uniform, uniform_form),
    ((dist.AsymmetricLaplace, dist.AsymmetricLaplaceQuantile), asymmetric_laplace_form),
    (dist.Exponential, exponential_form),
    (dist.Weibull, weibull_form),
    (dist.Kumaraswamy, kumaraswamy_form),
    (dist.Gompertz, gompertz_form),
    (dist.LowerTruncatedPowerLaw, power_law_form),
    (dist.Dagum, dagum_form),
    (dist.Pareto, pareto_form),
    (dist.Gamma, gamma_form),
    (dist.Beta, beta_form),
    (dist.MultivariateNormal, multivariate_form),
    ((dist.BernoulliProbs, dist.BernoulliLogits), binary_form),
    ((dist.CategoricalProbs, dist.CategoricalLogits), category_form),
    (dist.DiscreteUniform, level_form),
)
"""Families and their forms, also for subclasses such as Chi2 of Gamma."""
