"""One positive parameter of a model: a known number, or learned under a prior."""

from collections.abc import Callable
from dataclasses import fields
from typing import Any, NamedTuple

import jax.numpy as jnp

from dpjax.base import Array, Key, Parameters
from dpjax.models.arguments import as_scalar, is_numeric
from dpjax.models.bijections import POSITIVE, Bijection
from dpjax.models.priors import GammaPrior, InverseGammaPrior
from dpjax.validation import check_positive, fail

__all__ = ["Positive", "positive"]


class Positive(NamedTuple):
    """What a model asks of a positive parameter [], known or learned; a known one is left out of the draws.

    Attributes
    ----------
    value
        ``parameters -> []``.
    sample_prior
        As in a model, for this parameter alone: ``{}`` where it is known.
    log_prior
        As in a model, for this parameter alone: 0 where it is known.
    update
        ``(key, data) -> parameters``, a draw from the prior's ``posterior(data)``: ``{}`` where it is known.
    update_log_density
        ``(new, data) -> []``, the log-density of that draw: 0 where it is known.
    bijections
        The map to the real line, by name.
    """

    value: Callable[[Parameters], Array]
    sample_prior: Callable[[Key], Parameters]
    log_prior: Callable[[Parameters], Array]
    update: Callable[[Key, Array], Parameters]
    update_log_density: Callable[[Parameters, Array], Array]
    bijections: dict[str, Bijection]


def positive(name: str, given: Any, prior_type: type[GammaPrior] | type[InverseGammaPrior], argument: str) -> Positive:
    """The parameter `name`, given by the user's `argument` as a number or as a prior of the one type that fits."""
    if isinstance(given, prior_type):
        for field in fields(given):
            as_scalar(
                f"{argument}.{field.name}", getattr(given, field.name), "A prior of one parameter takes one number."
            )
        return learned(name, given)
    expected, remedy = f"a number or {prior_type.__name__}(...)", "Pass the known value, or a prior to learn it."
    if not is_numeric(given):
        fail(argument, type(given).__name__, expected, remedy, error=TypeError)
    check_positive(argument, given, remedy)
    return known(as_scalar(argument, given, remedy))


def known(value: Array) -> Positive:
    """A parameter that is not learned."""
    return Positive(
        value=lambda parameters: value,
        sample_prior=lambda key: {},
        log_prior=lambda parameters: jnp.zeros((), float),
        update=lambda key, data: {},
        update_log_density=lambda new, data: jnp.zeros((), float),
        bijections={},
    )


def learned(name: str, prior: GammaPrior | InverseGammaPrior) -> Positive:
    """A parameter with a prior."""
    return Positive(
        value=lambda parameters: parameters[name],
        sample_prior=lambda key: {name: prior.sample(key)},
        log_prior=lambda parameters: prior.log_density(parameters[name]),
        update=lambda key, data: {name: prior.posterior(data).sample(key)},
        update_log_density=lambda new, data: prior.posterior(data).log_density(new[name]),
        bijections={name: POSITIVE},
    )
