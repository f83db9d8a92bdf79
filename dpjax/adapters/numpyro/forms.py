"""How the values of a distribution are written as noise that is free of its parameters, or nearly so.

Families with a location or a scale are standardised; others go through their distribution function where it is known on
the log scale, which neither tail saturates; discrete values are a uniform within their cell. Families with a shape have
a module of their own. A law that is none of these stays centred.
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
from dpjax.adapters.numpyro.form import CENTRED, Form, along
from dpjax.adapters.numpyro.truncation import is_cut, log_density, truncated_form
from dpjax.adapters.numpyro.visit import unwrap
from dpjax.base import Array, Key
from dpjax.numerics.linear_algebra import product, solve_lower
from dpjax.numerics.scores import HALF_CAUCHY_SCORES, HALF_NORMAL_SCORES, NORMAL_SCORES, UNIFORM_SCORES
from dpjax.numerics.tails import CAUCHY, LAPLACE, LOGISTIC, SOFT_LAPLACE


def form_of(law: Any) -> Form:
    """The form of a distribution; the centred one, in which the values are the noise, where there is no other."""
    inner = unwrap(law)
    for family, build in FAMILIES:
        if isinstance(inner, family):
            return build(inner)
    if isinstance(inner, dist.FoldedDistribution):
        return folded_form(law, inner)
    if isinstance(inner, dist.TransformedDistribution):
        return transformed_form(law, inner)
    if is_cut(inner):
        return truncated_form(inner)
    return count_form(inner) if is_counted(inner) else centred_form(law)


def draw_value(key: Key, law: Any) -> Array:
    """A draw from a distribution: through its noise, or dpjax's own sampler, where that is faster than NumPyro's."""
    form = form_of(law)
    if form.draw is None:
        return on_floats(law).sample(key)
    return form.value(form.draw(key, law.batch_shape + law.event_shape, float))


def draw_parameter(key: Key, law: Any) -> Array:
    """NumPyro's own draw from a distribution, unless that would lose a tail."""
    return draw_value(key, law) if is_cut(unwrap(law)) else law.sample(key)


def centred_form(law: Any) -> Form:
    """The values themselves, with their density."""
    return Form(CENTRED, lambda key, value: value, lambda noise: noise, partial(log_density, on_floats(law)))


def folded_form(law: Any, inner: Any) -> Form:
    """The absolute value of a number: its sign is drawn given the value, then the number has the form of its law."""
    base = form_of(inner.base_dist)
    if base.words == CENTRED:
        return centred_form(law)

    def noise(key: Key, value: Array) -> Array:
        sign_key, noise_key = jax.random.split(key)
        odds = inner.base_dist.log_prob(value) - inner.base_dist.log_prob(-value)
        positive = jax.random.uniform(sign_key, value.shape, value.dtype) < jax.nn.sigmoid(odds)
        return base.noise(noise_key, jnp.where(positive, value, -value))

    return base._replace(
        words=f"{base.words}, before its sign is lost",
        noise=noise,
        value=lambda noise: jnp.abs(base.value(noise)),
    )


def normal_form(inner: Any) -> Form:
    """A Normal law."""
    return standardised(inner.loc, inner.scale, NORMAL_SCORES)


def uniform_form(inner: Any) -> Form:
    """A Uniform law, whose bounds may move."""
    return standardised(inner.low, inner.high - inner.low, UNIFORM_SCORES)


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
"""The families with a form of their own; subclasses, such as Chi2 of Gamma, share it."""
