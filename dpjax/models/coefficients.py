"""The coefficients and noise variance of a regression under three kinds of priors."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from dpjax.base import Array, Key, Parameters
from dpjax.models.arguments import as_array, as_scalar, as_shape
from dpjax.models.bijections import POSITIVE, Bijection
from dpjax.models.joint_priors import NormalInverseGammaPrior
from dpjax.models.positive import Positive
from dpjax.models.priors import NormalPrior
from dpjax.numerics.linear_algebra import draw_normal, normal_log_density, product
from dpjax.validation import fail

__all__ = ["Coefficients", "conjugate_coefficients", "independent_coefficients"]


class Coefficients(NamedTuple):
    """What a regression asks of ``coef`` [k] and the noise variance.

    Attributes
    ----------
    variance
        ``parameters -> []``.
    sample_prior
        As in a model, for these parameters alone.
    log_prior
        As in a model, for these parameters alone.
    update
        ``(key, parameters, design [k, n], response [n]) -> parameters``, invariant for their law given the records.
    update_log_density
        ``(new, parameters, design, response) -> []``, the log-density of that draw.
    """

    variance: Callable[[Parameters], Array]
    sample_prior: Callable[[Key], Parameters]
    log_prior: Callable[[Parameters], Array]
    update: Callable[[Key, Parameters, Array, Array], Parameters]
    update_log_density: Callable[[Parameters, Parameters, Array, Array], Array]
    bijections: dict[str, Bijection]


def independent_coefficients(prior: Any, noise: Positive, dim: int) -> Coefficients:
    """Coefficients with a Normal prior that does not depend on the noise variance, known or learned.

    The update draws the coefficients given the variance, which is all where it is known, and then the
    variance given the coefficients.
    """
    mean, precision = check_normal(prior, dim)

    def sample_prior(key: Key) -> Parameters:
        key_coef, key_noise = jax.random.split(key)
        return {"coef": prior.sample(key_coef, (dim,)), **noise.sample_prior(key_noise)}

    def posterior(parameters: Parameters, design: Array, response: Array) -> tuple[Array, Array]:
        products = product(design, jnp.concatenate([design, response[None]]).T) / noise.value(parameters)
        return jnp.diag(precision) + products[:, :-1], precision * mean + products[:, -1]

    def update(key: Key, parameters: Parameters, design: Array, response: Array) -> Parameters:
        key_coef, key_noise = jax.random.split(key)
        coef = draw_normal(key_coef, *posterior(parameters, design, response))
        return {"coef": coef, **noise.update(key_noise, response - product(coef, design))}

    def update_log_density(new: Parameters, parameters: Parameters, design: Array, response: Array) -> Array:
        log_coef = normal_log_density(new["coef"], *posterior(parameters, design, response))
        return log_coef + noise.update_log_density(new, response - product(new["coef"], design))

    def log_prior(parameters: Parameters) -> Array:
        return prior.log_density(parameters["coef"]) + noise.log_prior(parameters)

    return Coefficients(noise.value, sample_prior, log_prior, update, update_log_density, noise.bijections)


def conjugate_coefficients(prior: NormalInverseGammaPrior, dim: int) -> Coefficients:
    """Coefficients whose prior scales with the noise variance; the update is an exact joint draw."""
    check_conjugate(prior, dim)

    def named(coef: Array, variance: Array) -> Parameters:
        return {"coef": coef, "variance": variance}

    def update(key: Key, parameters: Parameters, design: Array, response: Array) -> Parameters:
        del parameters
        return named(*prior.posterior(design, response).sample(key, dim))

    def update_log_density(new: Parameters, parameters: Parameters, design: Array, response: Array) -> Array:
        del parameters
        return prior.posterior(design, response).log_density(new["coef"], new["variance"])

    return Coefficients(
        variance=lambda parameters: parameters["variance"],
        sample_prior=lambda key: named(*prior.sample(key, dim)),
        log_prior=lambda parameters: prior.log_density(parameters["coef"], parameters["variance"]),
        update=update,
        update_log_density=update_log_density,
        bijections={"variance": POSITIVE},
    )


def check_normal(prior: Any, dim: int) -> tuple[Array, Array]:
    """The mean [dim] and the precision [dim] of the coefficients."""
    if not isinstance(prior, NormalPrior):
        remedy = "Pass NormalPrior(mean, scale), or a NormalInverseGammaPrior as noise_variance."
        fail("coef_prior", type(prior).__name__, "a NormalPrior", remedy, error=TypeError)
    mean, scale = (as_coefficients(f"coef_prior.{name}", getattr(prior, name), dim) for name in ("mean", "scale"))
    return mean, scale**-2


def check_conjugate(prior: NormalInverseGammaPrior, dim: int) -> None:
    """Raise unless the prior is one law of `dim` coefficients and a variance."""
    as_coefficients("noise_variance.mean", prior.mean, dim)
    for name in ("shape", "scale"):
        as_scalar(f"noise_variance.{name}", getattr(prior, name), "Pass one number.")
    precision = as_array("noise_variance.precision", prior.precision, "numbers", "Pass numbers.")
    if precision.ndim:
        remedy = "The intercept is the first coefficient; a single number stands for a multiple of the identity."
        as_shape("noise_variance.precision", prior.precision, (dim, dim), remedy)


def as_coefficients(argument: str, value: Any, dim: int) -> Array:
    """One number for each coefficient [dim], from one number or from [dim]."""
    remedy = "The intercept is the first coefficient; a single number stands for all."
    array = as_array(argument, value, f"one number or {dim}", remedy)
    return jnp.broadcast_to(array if array.ndim == 0 else as_shape(argument, value, (dim,), remedy), (dim,))
