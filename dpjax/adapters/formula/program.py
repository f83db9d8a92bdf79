"""The NumPyro model of a regression with group effects, whose covariates and priors are its numbers."""

from typing import Any

import jax.numpy as jnp
import numpyro
from numpyro import distributions as dist

from dpjax._util.pytree import PyTree, static
from dpjax.adapters.formula.families import Family
from dpjax.adapters.numpyro.noncentred import FAMILIES
from dpjax.adapters.numpyro.trace import unwrap
from dpjax.base import Array
from dpjax.numerics.linear_algebra import product

__all__ = ["SIGMA", "Common", "DesignMatrix", "Group", "regression"]

PLATE = "formula records"
"""The name of the records' plate, which is no name of a term."""

SIGMA = "_sigma"
"""What is added to the name of group effects for that of their standard deviation."""


class Term(PyTree, abstract=True):
    """A term, which has a name and adds to the linear predictor."""

    def contribution(self, values: Array, places: Array) -> Array:
        """What it adds to the linear predictor [m] at these places [m], by the values of its parameter."""
        raise NotImplementedError


class Common(Term):
    """The coefficients of one term.

    Attributes
    ----------
    columns
        Its columns [n, k], or one [n].
    mean
        Their means [k] or [], which are subtracted where there is an intercept; 0 where there is none.
    prior
        The distribution of the coefficients [k] or [].
    name
        The term.
    labels
        The names of the coefficients; empty if they have none.
    """

    columns: Array
    mean: Array
    prior: Any
    name: str = static()
    labels: tuple[str, ...] = static()

    def contribution(self, values: Array, places: Array) -> Array:
        """What the coefficients [k] or [] add."""
        columns = self.columns[places]
        return product(columns, values) if columns.ndim == 2 else columns * values


class Group(Term):
    """The effects of one term in each group.

    Attributes
    ----------
    columns
        The columns [n, k] of the term, or one [n]; None for an intercept.
    index
        The group of each record [n].
    prior
        The distribution of the standard deviations [k] or [].
    name
        The term.
    labels
        The names of the columns; empty if they have none.
    groups
        The names of the groups.
    """

    columns: Array | None
    index: Array
    prior: Any
    name: str = static()
    labels: tuple[str, ...] = static()
    groups: tuple[str, ...] = static()

    def contribution(self, values: Array, places: Array) -> Array:
        """What the effects [k, group] or [group] add."""
        own = values[..., self.index[places]]
        if self.columns is None:
            return own
        columns = self.columns[places]
        return jnp.sum(own * columns.T, axis=0) if columns.ndim == 2 else own * columns


class DesignMatrix(PyTree):
    """All that a formula and its data say, without the response.

    Attributes
    ----------
    common
        The terms that all records share.
    groups
        The terms of groups.
    intercept
        The distribution of the linear predictor at the means of the covariates; None without an intercept.
    own
        The distributions of the family's own parameters.
    offset
        What is added to the linear predictor [n]; None for nothing.
    trials
        The number of trials of each record [n], or of all; None where there are none.
    family
        The family of the response.
    response
        Its name.
    size
        The number n of records.
    levels
        The levels of those columns that are no numbers, by name.
    """

    common: tuple[Common, ...]
    groups: tuple[Group, ...]
    intercept: Any
    own: tuple[Any, ...]
    offset: Any
    trials: Any
    family: Family = static()
    response: str = static()
    size: int = static()
    levels: tuple[tuple[str, tuple[Any, ...]], ...] = static(default=())

    def predict(self, parameters: Any, places: Array) -> Array:
        """The linear predictor [m] at some places [m], by the parameters with the intercept of covariates of 0."""
        predictor = jnp.asarray(parameters["Intercept"] if self.intercept is not None else 0.0, float)
        terms: tuple[Common | Group, ...] = (*self.common, *self.groups)
        for term in terms:
            predictor = predictor + term.contribution(parameters[term.name], places)
        return predictor + at(self.offset, places)

    @property
    def is_alike(self) -> bool:
        """Whether all records have the same distribution."""
        numbers = (self.offset, self.trials)
        return not (self.common or self.groups or any(jnp.ndim(each) for each in numbers if each is not None))

    @property
    def standardised(self) -> tuple[str, ...]:
        """The names of the parameters that have a location and a scale."""
        priors = {"Intercept": self.intercept} | {term.name: term.prior for term in self.common}
        located = [name for name, prior in priors.items() if type(unwrap(prior)) in FAMILIES]
        return (*located, *(term.name for term in self.groups))


def regression(design: DesignMatrix, **columns: Any) -> None:
    """The model; `columns` are fields of the records that the released statistic reads."""
    own = [numpyro.sample(name, prior) for name, prior in zip(design.family.own, design.own, strict=True)]
    coefficients = [numpyro.sample(term.name, term.prior) for term in design.common]
    effects = [draw_effects(term) for term in design.groups]
    intercept = draw_intercept(design, coefficients)
    terms: tuple[Common | Group, ...] = (*design.common, *design.groups)
    values = {term.name: own for term, own in zip(terms, (*coefficients, *effects), strict=True)}
    with numpyro.plate(PLATE, design.size) as places:
        predictor = design.predict(values | {"Intercept": intercept}, places)
        numpyro.sample(design.response, design.family.distribution(predictor, at(design.trials, places), *own))


def at(values: Any, places: Array) -> Any:
    """The entries of values [n] at these places; a number for all records, or 0 for nothing."""
    return 0 if values is None else values[places] if jnp.ndim(values) else values


def draw_intercept(design: DesignMatrix, coefficients: list[Array]) -> Any:
    """The linear predictor where all covariates are 0, given the coefficients; its prior is that at their means."""
    if design.intercept is None:
        return 0.0
    shift = sum(jnp.sum(term.mean * values) for term, values in zip(design.common, coefficients, strict=True))
    inner = design.intercept
    arguments = {name: getattr(inner, name) for name in inner.arg_constraints}
    return numpyro.sample("Intercept", type(inner)(**arguments | {"loc": inner.loc - shift}))


def draw_effects(term: Group) -> Array:
    """The effects [k, group] or [group] of a term, Normal around 0."""
    scale = numpyro.sample(term.name + SIGMA, term.prior)
    shape = (*jnp.shape(scale), len(term.groups))
    normal = dist.Normal(jnp.zeros(()), scale[..., None] if jnp.ndim(scale) else scale)
    return numpyro.sample(term.name, normal.expand(shape).to_event(len(shape)))
