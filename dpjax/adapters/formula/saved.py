"""The model of a formula as a file holds it: its design, with the family and the priors by names and numbers."""

from dataclasses import dataclass, replace
from inspect import signature
from typing import Any, NamedTuple

import jax
from numpyro import distributions as dist

from dpjax.adapters.formula.families import find_family
from dpjax.adapters.formula.priors import as_float
from dpjax.adapters.formula.program import DesignMatrix
from dpjax.base import Model
from dpjax.posterior.saving import FileForm, Unsaved

__all__ = ["SavedFormula", "without_functions"]

INNER = {
    dist.Independent: ("base_dist", "reinterpreted_batch_ndims"),
    dist.ExpandedDistribution: ("base_dist", "batch_shape"),
    dist.FoldedDistribution: ("base_dist",),
}
"""The arguments of distributions that are made of another one."""


class SavedPrior(NamedTuple):
    """A distribution of NumPyro by its name and arguments, of which one may be a distribution."""

    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True)
class SavedFormula(FileForm):
    """What the model of a formula is made from, without functions.

    Attributes
    ----------
    design
        The terms, with the family's name and a `SavedPrior` in the place of each distribution.
    text
        The formula.
    columns
        The columns that are fields of the records.
    levels
        The names of their levels.
    weights
        The survey weights of the records, or None.
    """

    design: DesignMatrix
    text: str
    columns: dict[str, Any]
    levels: tuple[tuple[str, tuple[str, ...]], ...]
    weights: Any = None

    def remake(self) -> Model:
        """The model."""
        from dpjax.adapters.formula.model import build

        return build(with_functions(self.design), self.text, self.columns, self.levels, self.weights)


def without_functions(design: DesignMatrix) -> DesignMatrix:
    """The design with names and numbers in the place of its family and distributions."""
    return replace(with_priors(design, write_prior), family=design.family.name)  # type: ignore[arg-type]


def with_functions(design: DesignMatrix) -> DesignMatrix:
    """Its inverse."""
    made = with_priors(design, lambda saved: jax.tree.map(as_float, read_prior(saved)))
    return replace(made, family=find_family(design.family))


def with_priors(design: DesignMatrix, change: Any) -> DesignMatrix:
    """The design with each of its distributions changed."""
    return replace(
        design,
        common=tuple(replace(term, prior=change(term.prior)) for term in design.common),
        groups=tuple(replace(term, prior=change(term.prior)) for term in design.groups),
        intercept=None if design.intercept is None else change(design.intercept),
        own=tuple(map(change, design.own)),
    )


def write_prior(prior: Any) -> SavedPrior:
    """A distribution by its name and arguments, if it is one of NumPyro's that are made of numbers."""
    kind = type(prior)
    names = INNER.get(kind, tuple(name for name in signature(kind).parameters if name != "validate_args"))
    is_made_of = kind in INNER or set(names) <= set(kind.arg_constraints)
    if getattr(dist, kind.__name__, None) is not kind or not is_made_of:
        raise Unsaved(f"the prior {kind.__name__}, which is more than its numbers")
    given = {name: getattr(prior, name) for name in names}
    return SavedPrior(
        kind.__name__,
        {name: write_prior(value) if isinstance(value, dist.Distribution) else value for name, value in given.items()},
    )


def read_prior(saved: SavedPrior) -> Any:
    """The distribution; of a name that is none of NumPyro's an error."""
    kind = getattr(dist, saved.name, None)
    if not (isinstance(kind, type) and issubclass(kind, dist.Distribution)):
        raise ValueError(f"{saved.name!r} is no distribution")
    given = saved.arguments.items()
    return kind(**{name: read_prior(value) if isinstance(value, SavedPrior) else value for name, value in given})
