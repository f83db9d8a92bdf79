"""NumPyro's distributions as priors of the models that come with dpjax."""

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any

import jax.numpy as jnp

from dpjax._util.spelling import check_names
from dpjax._util.validation import fail
from dpjax.base import Array, Model
from dpjax.models.priors import GammaPrior, InverseGammaPrior, NormalPrior

__all__ = ["accept_distributions"]

PRIORS: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "Normal": (NormalPrior, ("loc", "scale")),
    "Gamma": (GammaPrior, ("concentration", "rate")),
    "Exponential": (lambda rate: GammaPrior(jnp.ones_like(rate), rate), ("rate",)),
    "InverseGamma": (InverseGammaPrior, ("concentration", "rate")),
    "Dirichlet": (lambda concentration: concentration, ("concentration",)),
}
"""For each of NumPyro's families, what makes the same prior here, and of which of its attributes."""

WRAPPERS = ("Independent", "ExpandedDistribution")


def accept_distributions(build: Callable[..., Model]) -> Callable[..., Model]:
    """A function that returns a model, with arguments that may be distributions of NumPyro instead of priors.

    It names arguments that it lacks, and those that are missing.
    """
    parameters = tuple(signature(build).parameters.values())

    @wraps(build)
    def accepting(*arguments: Any, **keywords: Any) -> Model:
        check_names(build.__name__, parameters, len(arguments), set(keywords))
        given = {name: as_prior(name, value) for name, value in keywords.items()}
        return build(*(as_prior("prior", value) for value in arguments), **given)

    return accepting


def as_prior(argument: str, value: Any) -> Any:
    """The prior that a distribution of NumPyro is, with one entry for each of its own; any other value as it is.

    Raises
    ------
    TypeError
        If there is no such prior.
    """
    if not is_distribution(value):
        return value
    shape, inner = value.batch_shape + value.event_shape, value
    while type(inner).__name__ in WRAPPERS:
        inner = inner.base_dist
    family = type(inner).__name__
    if family not in PRIORS:
        remedy = "Write the model in NumPyro and pass it to dpjax.from_numpyro: any prior will do there."
        fail(argument, f"a {family} distribution", f"one of {', '.join(PRIORS)}, or a prior", remedy, error=TypeError)
    make, names = PRIORS[family]
    return make(*(spread(getattr(inner, name), shape) for name in names))


def is_distribution(value: Any) -> bool:
    """Whether a value is one of NumPyro's distributions, which are not imported here."""
    return any(kind.__module__.startswith("numpyro.distributions") for kind in type(value).__mro__[:-1])


def spread(parameter: Any, shape: tuple[int, ...]) -> Array:
    """A parameter of a distribution as floats of its whole shape."""
    return jnp.broadcast_to(jnp.asarray(parameter, float), shape)
