"""Weakly informative priors of a regression, in the units of its covariates, and those given in their place."""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpyro import distributions as dist

from dpjax._util.validation import describe, fail, name_of
from dpjax._util.words import amount
from dpjax.adapters.numpyro.argument_checks import arguments_of, name_of as name_of_constraint, violates
from dpjax.adapters.numpyro.refusals import is_positive
from dpjax.adapters.numpyro.trace import unwrap
from dpjax.models.priors import GammaPrior, InverseGammaPrior, NormalPrior

__all__ = ["LOCATION_FAMILIES", "Priors", "Units", "prior_in_words"]

MULTIPLE = 2.5
"""Standard deviations of the response by which it moves with one of the covariate, as in rstanarm and Bambi."""

DEGREES = 4.0
"""The degrees of freedom of the standard deviation's half-Student prior."""

LOCATION_FAMILIES = (dist.Normal, dist.StudentT, dist.Cauchy, dist.Laplace, dist.Logistic)
"""Families that an intercept can have: moved by a number, they are of the same family."""


class Units:
    """The mean and the standard deviation of the response, as far as they are known beforehand."""

    def __init__(self, mean: float | None, sd: float | None) -> None:
        self.given = {"response_mean": mean, "response_sd": sd}

    @property
    def mean(self) -> float:
        """The mean, or an error where it is needed and missing."""
        return self.require("response_mean")

    @property
    def sd(self) -> float:
        """The standard deviation, or an error where it is needed and missing."""
        return self.require("response_sd")

    def require(self, name: str) -> float:
        """One of the two."""
        value = self.given[name]
        if value is None:
            remedy = (
                "Pass what is known of the response beforehand, not what the confidential records say; "
                "or pass a prior for every coefficient and standard deviation."
            )
            fail(name, "nothing", "a number: the default priors have the units of the response", remedy)
        return value


class Priors:
    """The priors by name: those that were given, else the default ones.

    Parameters
    ----------
    given
        Distributions of NumPyro, or priors of `dpjax.models`, by the names of parameters.
    units
        The units of the response.
    """

    def __init__(self, given: Mapping[str, Any], units: Units) -> None:
        self.given, self.units, self.names = given, units, list[str]()

    def choose(self, name: str, shape: tuple[int, ...], default: Callable[[], Any], positive: bool = False) -> Any:
        """The prior of the parameter of this name and shape, as a distribution with that event shape."""
        self.names.append(name)
        prior = as_distribution(name, self.given[name]) if name in self.given else default()
        if positive and not is_positive(prior.support):
            remedy = "Pass a HalfNormal, Exponential or Gamma distribution, for instance."
            fail(f"priors[{name!r}]", name_of(type(prior)), "a distribution of positive numbers", remedy)
        return jax.tree.map(as_float, with_shape(name, prior, shape))

    def intercept(self) -> Any:
        """The prior of the linear predictor at the means of the covariates."""
        prior = self.choose("Intercept", (), lambda: dist.Normal(self.units.mean, MULTIPLE * self.units.sd))
        if type(prior) not in LOCATION_FAMILIES:
            names = ", ".join(family.__name__ for family in LOCATION_FAMILIES)
            remedy = "It is the prior at the means of the covariates, and is moved to where they are 0."
            fail("priors['Intercept']", type(prior).__name__, f"one of {names}", remedy)
        return prior

    def coefficients(self, name: str, columns: np.ndarray) -> Any:
        """The prior of the coefficients of columns [n, k] or [n]."""
        return self.choose(name, columns.shape[1:], lambda: dist.Normal(0.0, self.slope(name, columns)))

    def group(self, name: str, columns: np.ndarray | None) -> Any:
        """The prior of the standard deviations of group effects, of an intercept or of columns [n, k] or [n]."""
        if columns is None:
            return self.choose(name, (), lambda: dist.HalfNormal(MULTIPLE * self.units.sd), positive=True)
        shape = columns.shape[1:]
        return self.choose(name, shape, lambda: dist.HalfNormal(self.slope(name, columns)), positive=True)

    def own(self, name: str) -> Any:
        """The prior of a family's own parameter."""
        return self.choose(name, (), lambda: DEFAULTS[name](self.units), positive=True)

    def slope(self, name: str, columns: np.ndarray) -> np.ndarray:
        """The scale of the coefficients of columns [n, k] or [n]."""
        spread = np.std(columns, axis=0)
        if np.any(spread == 0):
            remedy = "Leave it out, or pass a prior for it."
            fail("formula", f"the term {name!r}, a column of which is constant", "covariates that vary", remedy)
        return MULTIPLE * self.units.sd / spread

    def check_names(self) -> None:
        """Raise if a prior was given that is not used."""
        unknown = sorted(set(self.given) - set(self.names), key=str)
        if unknown:
            remedy = f"The names are {', '.join(map(repr, self.names))}."
            fail("priors", repr(unknown[0]), "names of parameters", remedy)


DEFAULTS: dict[str, Callable[[Units], Any]] = {
    "sigma": lambda units: dist.FoldedDistribution(dist.StudentT(DEGREES, 0.0, units.sd)),
    "nu": lambda units: dist.Gamma(2.0, 0.1),
    "alpha": lambda units: dist.HalfCauchy(1.0),
}


def as_distribution(name: str, given: Any) -> Any:
    """A prior as a distribution of NumPyro."""
    if isinstance(given, dist.Distribution):
        for family, argument, constraint, value in arguments_of(given):
            if violates(constraint, value):
                expected = f"{argument} of {family} within its constraint ({name_of_constraint(constraint)})"
                fail(f"priors[{name!r}]", describe(np.asarray(value)), expected, "Check the arguments of the prior.")
        return given
    if isinstance(given, NormalPrior):
        return dist.Normal(given.mean, given.scale)
    if isinstance(given, GammaPrior):
        return dist.Gamma(given.shape, given.rate)
    if isinstance(given, InverseGammaPrior):
        return dist.InverseGamma(given.shape, given.scale)
    remedy = "Pass numpyro.distributions.Normal(0.0, 1.0) or dpjax.models.NormalPrior(0.0, 1.0), for instance."
    return fail(f"priors[{name!r}]", describe(given), "a distribution", remedy, error=TypeError)


def with_shape(name: str, prior: Any, shape: tuple[int, ...]) -> Any:
    """A distribution of one parameter of this shape, from that of each entry or of all together."""
    found = (*prior.batch_shape, *prior.event_shape)
    if found == shape:
        return prior.to_event(len(prior.batch_shape))
    if not found:
        return prior.expand(shape).to_event(len(shape))
    expected = "one distribution" + (f", or {shape[0]}" if shape else "")
    return fail(f"priors[{name!r}]", f"distributions of shape {list(found)}", expected, "Pass one for all entries.")


def as_float(leaf: Any) -> Any:
    """A number of a distribution in the default type of floats."""
    return jnp.asarray(leaf, float)


def prior_in_words(prior: Any) -> str:
    """A distribution and its arguments."""
    inner, half = unwrap(prior), ""
    if isinstance(inner, dist.FoldedDistribution):
        inner, half = inner.base_dist, "Half"
    arguments = {name: getattr(inner, name) for name in inner.arg_constraints if hasattr(inner, name)}
    if half:
        arguments.pop("loc", None)
    return f"{half}{type(inner).__name__}({', '.join(f'{name} {amount(value)}' for name, value in arguments.items())})"
