"""The families of a regression: the distribution of the response given the linear predictor."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
from jax.nn import sigmoid
from numpyro import distributions as dist

from dpjax._util.validation import check_text, fail
from dpjax.base import Array

__all__ = ["FAMILIES", "Family", "find_family"]


@dataclass(frozen=True)
class Family:
    """The distribution of the response.

    Attributes
    ----------
    name
        Bambi's name.
    link
        What the linear predictor is a function of, in words.
    own
        The names of its own parameters, in the order of the arguments of `distribution`.
    distribution
        ``(predictor, trials, *own) -> distribution``.
    mean
        The mean of the response given the predictor; of trials, that of one.
    has_scale
        Whether the response has a location and a scale, so that priors are in its units.
    has_trials
        Whether the response counts successes among trials.
    """

    name: str
    link: str
    own: tuple[str, ...]
    distribution: Callable[..., Any]
    mean: Callable[[Array], Array]
    has_scale: bool = False
    has_trials: bool = False


def normal(predictor: Array, trials: Any, sigma: Array) -> Any:
    """A Normal response."""
    return dist.Normal(predictor, sigma)


def student(predictor: Array, trials: Any, sigma: Array, nu: Array) -> Any:
    """A response with Student's distribution."""
    return dist.StudentT(nu, predictor, sigma)


def bernoulli(predictor: Array, trials: Any) -> Any:
    """A response of 0 or 1."""
    return dist.Bernoulli(logits=predictor)


def binomial(predictor: Array, trials: Any) -> Any:
    """A number of successes."""
    return dist.Binomial(trials, logits=predictor)


def poisson(predictor: Array, trials: Any) -> Any:
    """A count."""
    return dist.Poisson(jnp.exp(predictor))


def negative_binomial(predictor: Array, trials: Any, alpha: Array) -> Any:
    """A count of variance mean + mean² / alpha."""
    return dist.NegativeBinomial2(jnp.exp(predictor), alpha)


def identity(predictor: Array) -> Array:
    """The linear predictor."""
    return predictor


FAMILIES = (
    Family("gaussian", "the mean", ("sigma",), normal, identity, has_scale=True),
    Family("t", "the location", ("sigma", "nu"), student, identity, has_scale=True),
    Family("bernoulli", "the log-odds", (), bernoulli, sigmoid),
    Family("binomial", "the log-odds of one trial", (), binomial, sigmoid, has_trials=True),
    Family("poisson", "the logarithm of the mean", (), poisson, jnp.exp),
    Family("negativebinomial", "the logarithm of the mean", ("alpha",), negative_binomial, jnp.exp),
)

OTHER_NAMES = {"normal": "gaussian", "studentt": "t", "negbinomial": "negativebinomial"}


def find_family(name: Any) -> Family:
    """The family of this name, however it is spelt, or an error."""
    names = [family.name for family in FAMILIES]
    remedy = f"Pass one of {', '.join(names)}. Write other models in NumPyro, for dpjax.from_numpyro."
    check_text("family", name, remedy)
    plain = "".join(letter for letter in name.lower() if letter.isalpha())
    plain = OTHER_NAMES.get(plain, plain)
    for family in FAMILIES:
        if family.name == plain:
            return family
    return fail("family", repr(name), "the name of a family", remedy)
