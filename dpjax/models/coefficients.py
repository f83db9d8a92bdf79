"""The coefficients of a regression and its noise variance, with independent or conjugate priors."""

from typing import Any

import jax
import jax.numpy as jnp

from dpjax._util.pytree import PyTree, static
from dpjax._util.validation import fail, name_of
from dpjax.base import Array, Key, Parameters
from dpjax.models.arguments import as_array, as_scalar, as_shape
from dpjax.models.bijections import POSITIVE, Bijection
from dpjax.models.positive import Positive, positive
from dpjax.models.priors import InverseGammaPrior, NormalInverseGammaPrior, NormalPrior, broadcast
from dpjax.numerics.linear_algebra import cross_products, draw_normal, normal_log_density, product

__all__ = ["Coefficients", "choose_coefficients"]


class Coefficients(PyTree, abstract=True):
    """The coefficients ``coef`` [k] and the noise variance of a regression."""

    def variance(self, parameters: Parameters) -> Array:
        """The noise variance []."""
        raise NotImplementedError

    def sample_prior(self, key: Key) -> Parameters:
        """As in a model, for these parameters alone."""
        raise NotImplementedError

    def log_prior(self, parameters: Parameters) -> Array:
        """As in a model, for these parameters alone."""
        raise NotImplementedError

    def update(self, key: Key, parameters: Parameters, design: Array, response: Array) -> Parameters:
        """A draw that leaves their posterior invariant, given a design [k, n] and a response [n]."""
        raise NotImplementedError

    def update_log_density(self, new: Parameters, parameters: Parameters, design: Array, response: Array) -> Array:
        """The log-density [] of that draw."""
        raise NotImplementedError

    @property
    def bijections(self) -> dict[str, Bijection]:
        """The map of an unknown variance to the real line."""
        raise NotImplementedError


class IndependentCoefficients(Coefficients):
    """Coefficients [k] with a Normal prior that does not depend on the noise variance, known or unknown.

    The update draws the coefficients given the variance, and then an unknown variance given the coefficients.
    """

    prior: NormalPrior
    noise: Positive
    dim: int = static()

    def variance(self, parameters: Parameters) -> Array:
        """The noise variance []."""
        return self.noise.value(parameters)

    def sample_prior(self, key: Key) -> Parameters:
        """A draw from the prior."""
        key_coef, key_noise = jax.random.split(key)
        return {"coef": self.prior.sample(key_coef, (self.dim,)), **self.noise.sample_prior(key_noise)}

    def log_prior(self, parameters: Parameters) -> Array:
        """The log-density [] of the prior."""
        return self.prior.log_density(parameters["coef"]) + self.noise.log_prior(parameters)

    def update(self, key: Key, parameters: Parameters, design: Array, response: Array) -> Parameters:
        """A draw of the coefficients, and then of the variance given them."""
        key_coef, key_noise = jax.random.split(key)
        coef = draw_normal(key_coef, *self.given(parameters, design, response))
        return {"coef": coef, **self.noise.update(key_noise, response - product(coef, design))}

    def update_log_density(self, new: Parameters, parameters: Parameters, design: Array, response: Array) -> Array:
        """The log-density [] of that draw."""
        log_coef = normal_log_density(new["coef"], *self.given(parameters, design, response))
        return log_coef + self.noise.update_log_density(new, response - product(new["coef"], design))

    def given(self, parameters: Parameters, design: Array, response: Array) -> tuple[Array, Array]:
        """The precision [k, k] and the precision times the mean [k] of the coefficients given the variance."""
        mean, scale = broadcast((self.dim,), self.prior.mean, self.prior.scale)
        precision = scale**-2
        products = cross_products(design, jnp.concatenate([design, response[None]])) / self.variance(parameters)
        return jnp.diag(precision) + products[:, :-1], precision * mean + products[:, -1]

    @property
    def bijections(self) -> dict[str, Bijection]:
        """The map of an unknown variance to the real line."""
        return self.noise.bijections


class ConjugateCoefficients(Coefficients):
    """Coefficients [k] whose prior scales with the noise variance; the update is an exact joint draw."""

    prior: NormalInverseGammaPrior
    dim: int = static()

    def variance(self, parameters: Parameters) -> Array:
        """The noise variance []."""
        variance: Array = parameters["variance"]
        return variance

    def sample_prior(self, key: Key) -> Parameters:
        """A draw from the prior."""
        return as_parameters(*self.prior.sample(key, self.dim))

    def log_prior(self, parameters: Parameters) -> Array:
        """The log-density [] of the prior."""
        return self.prior.log_density(parameters["coef"], parameters["variance"])

    def update(self, key: Key, parameters: Parameters, design: Array, response: Array) -> Parameters:
        """An exact draw from their posterior."""
        del parameters
        return as_parameters(*self.prior.posterior(design, response).sample(key, self.dim))

    def update_log_density(self, new: Parameters, parameters: Parameters, design: Array, response: Array) -> Array:
        """The log-density [] of that draw."""
        del parameters
        return self.prior.posterior(design, response).log_density(new["coef"], new["variance"])

    @property
    def bijections(self) -> dict[str, Bijection]:
        """The logarithm of the variance."""
        return {"variance": POSITIVE}


def as_parameters(coef: Array, variance: Array) -> Parameters:
    """The coefficients and the variance by their names."""
    return {"coef": coef, "variance": variance}


def choose_coefficients(prior: Any, noise: Any, dim: int) -> Coefficients:
    """The coefficients and the variance, from the two arguments that may describe their prior."""
    if not isinstance(noise, NormalInverseGammaPrior):
        variance = positive("variance", noise, InverseGammaPrior, "noise_variance")
        check_normal(prior, dim)
        return IndependentCoefficients(prior, variance, dim)
    if prior is not None:
        expected = "nothing beside a NormalInverseGammaPrior"
        fail("coef_prior", name_of(prior), expected, "That prior includes coef; leave coef_prior out.")
    check_conjugate(noise, dim)
    return ConjugateCoefficients(noise, dim)


def check_normal(prior: Any, dim: int) -> None:
    """Raise unless the prior is that of `dim` coefficients."""
    if not isinstance(prior, NormalPrior):
        remedy = "Pass NormalPrior(mean, scale), or a NormalInverseGammaPrior as noise_variance."
        fail("coef_prior", name_of(prior), "a NormalPrior", remedy, error=TypeError)
    for name in ("mean", "scale"):
        check_coefficients(f"coef_prior.{name}", getattr(prior, name), dim)


def check_conjugate(prior: NormalInverseGammaPrior, dim: int) -> None:
    """Raise unless the prior is that of `dim` coefficients and a variance."""
    check_coefficients("noise_variance.mean", prior.mean, dim)
    for name in ("shape", "scale"):
        as_scalar(f"noise_variance.{name}", getattr(prior, name), "Pass one number.")
    precision = as_array("noise_variance.precision", prior.precision, "numbers", "Pass numbers.")
    if precision.ndim:
        remedy = "The intercept is the first coefficient; one number is a multiple of the identity."
        as_shape("noise_variance.precision", prior.precision, (dim, dim), remedy)


def check_coefficients(argument: str, value: Any, dim: int) -> None:
    """Raise unless there is one number, or one for each coefficient [dim]."""
    remedy = "The intercept is the first coefficient; one number is used for all."
    if as_array(argument, value, f"one number or {dim}", remedy).ndim:
        as_shape(argument, value, (dim,), remedy)
