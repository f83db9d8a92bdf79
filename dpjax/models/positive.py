"""Positive parameters of models: known numbers, or unknown ones with a conjugate prior."""

from dataclasses import fields
from typing import Any

import jax.numpy as jnp

from dpjax._util.pytree import PyTree, static
from dpjax._util.validation import check_positive, fail, name_of
from dpjax.base import Array, Key, Parameters
from dpjax.models.arguments import as_scalar, is_numeric
from dpjax.models.bijections import POSITIVE, Bijection
from dpjax.models.priors import GammaPrior, InverseGammaPrior

__all__ = ["Positive", "positive"]


class Positive(PyTree, abstract=True):
    """A positive parameter [] of a model, known or unknown; a known one is not among the draws."""

    def value(self, parameters: Parameters) -> Array:
        """Its value []."""
        raise NotImplementedError

    def sample_prior(self, key: Key) -> Parameters:
        """As in a model, for this parameter alone; ``{}`` if it is known."""
        raise NotImplementedError

    def log_prior(self, parameters: Parameters) -> Array:
        """As in a model, for this parameter alone; 0 if it is known."""
        raise NotImplementedError

    def update(self, key: Key, data: Array) -> Parameters:
        """A draw from the prior's ``posterior(data)``; ``{}`` if it is known."""
        raise NotImplementedError

    def update_log_density(self, new: Parameters, data: Array) -> Array:
        """The log-density [] of that draw; 0 if it is known."""
        raise NotImplementedError

    @property
    def bijections(self) -> dict[str, Bijection]:
        """The map to the real line, by name."""
        raise NotImplementedError


class Known(Positive):
    """A positive parameter with a known value []."""

    number: Array

    def value(self, parameters: Parameters) -> Array:
        """Its value []."""
        return self.number

    def sample_prior(self, key: Key) -> Parameters:
        """No parameters."""
        return {}

    def log_prior(self, parameters: Parameters) -> Array:
        """0."""
        return jnp.zeros((), float)

    def update(self, key: Key, data: Array) -> Parameters:
        """No parameters."""
        return {}

    def update_log_density(self, new: Parameters, data: Array) -> Array:
        """0."""
        return jnp.zeros((), float)

    @property
    def bijections(self) -> dict[str, Bijection]:
        """No maps."""
        return {}


class Learned(Positive):
    """A positive parameter of this name with a prior."""

    name: str = static()
    prior: GammaPrior | InverseGammaPrior

    def value(self, parameters: Parameters) -> Array:
        """Its value []."""
        value: Array = parameters[self.name]
        return value

    def sample_prior(self, key: Key) -> Parameters:
        """A draw from the prior."""
        return {self.name: self.prior.sample(key)}

    def log_prior(self, parameters: Parameters) -> Array:
        """The log-density [] of the prior."""
        return self.prior.log_density(parameters[self.name])

    def update(self, key: Key, data: Array) -> Parameters:
        """A draw given the data [n] of the prior's ``posterior``."""
        return {self.name: self.prior.posterior(data).sample(key)}

    def update_log_density(self, new: Parameters, data: Array) -> Array:
        """The log-density [] of that draw."""
        return self.prior.posterior(data).log_density(new[self.name])

    @property
    def bijections(self) -> dict[str, Bijection]:
        """The logarithm."""
        return {self.name: POSITIVE}


def positive(name: str, given: Any, prior_type: type[GammaPrior] | type[InverseGammaPrior], argument: str) -> Positive:
    """The parameter `name`, given by the user's `argument` as a number or a prior of this type."""
    if isinstance(given, prior_type):
        for field in fields(given):
            as_scalar(
                f"{argument}.{field.name}", getattr(given, field.name), "A prior of one parameter takes one number."
            )
        return Learned(name, given)
    expected, remedy = f"a number or {prior_type.__name__}(...)", "Pass the known value, or a prior to learn it."
    if not is_numeric(given):
        fail(argument, name_of(given), expected, remedy, error=TypeError)
    check_positive(argument, given, remedy)
    return Known(as_scalar(argument, given, remedy))
