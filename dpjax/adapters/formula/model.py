"""A regression in one line: the model of a formula in R's language."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np

from dpjax._util.pytree import static
from dpjax._util.spelling import names_arguments
from dpjax._util.validation import (
    check_array,
    check_instance,
    check_number,
    check_positive_number,
    describe,
    fail,
    plain,
)
from dpjax._util.words import describe_model, quantity
from dpjax.adapters.formula.cells import average_over_cells
from dpjax.adapters.formula.families import Family, find_family
from dpjax.adapters.formula.priors import Priors, Units, prior_in_words
from dpjax.adapters.formula.program import SIGMA, Common, DesignMatrix, Group, regression
from dpjax.adapters.formula.reading import CommonTerm, FormulaTerms, GroupTerm, check_gaps, read_formula, read_frame
from dpjax.adapters.formula.saved import SavedFormula, without_functions
from dpjax.adapters.numpyro.densities import ModelDensities
from dpjax.adapters.numpyro.inspection import find_layout
from dpjax.adapters.numpyro.model import NumPyroModel, find_facts
from dpjax.adapters.numpyro.noncentred import Standardised
from dpjax.base import Array, Model, NonCentred, Parameters
from dpjax.models.checks import check_model
from dpjax.posterior.saving import HasFileForm
from dpjax.release.weights import read_weights

__all__ = ["formula"]


@names_arguments
def formula(
    formula: str,
    data: Any,
    family: str = "gaussian",
    priors: Mapping[str, Any] | None = None,
    *,
    response_mean: float | None = None,
    response_sd: float | None = None,
    fields: Sequence[str] = (),
    weights: Any = None,
) -> Model:
    """The regression that a formula in R's language states, with weakly informative priors.

    The left side names the confidential field that was released; `data` need not have it, and it is not read there.
    Parameters have the names of terms: ``Intercept``, one for each term, ``1|state`` for group effects and
    ``1|state_sigma`` for their standard deviation, ``sigma``, ``nu`` and ``alpha``. Entries have the names of levels.

    Parameters
    ----------
    formula
        As R and Bambi have it: ``y ~ x + z``, interactions ``x:z`` and ``x*z``, no intercept ``0 + x``, group effects
        ``(1 | g)`` and ``(x | g)``, which is ``(x || g)``. Also ``offset(log(x))``, ``C(x)``, ``scale(x)`` and
        ``bs(x, df=4)``. The left side of the binomial family is ``p(successes, trials)``; trials are a column or a
        number. The levels of text are in alphabetical order, and those of categories in theirs. Levels that no record
        has are left out.
    data
        A data frame of pandas, or columns by name: one row for each record, in the order of the release, with all
        covariates. They are public.
    family
        ``"gaussian"`` (or ``"normal"``), ``"t"``, ``"bernoulli"``, ``"binomial"``, ``"poisson"`` or
        ``"negativebinomial"``.
    priors
        By the names of parameters, distributions of NumPyro or priors of `dpjax.models` in place of the default ones.
        Each is for all entries of a parameter, or has one entry for each.
    response_mean
        The mean that the response may have, for the default priors of the families ``"gaussian"`` and ``"t"``. It is to
        be public, or taken from the release.
    response_sd
        Its standard deviation, in the same way.
    fields
        The names of columns that the released statistic reads, such as the group of a grouped sum. Those of text become
        whole numbers 0, 1, ... with the names of their levels: in alphabetical order, those of categories in theirs.
    weights
        The name of a column of survey weights, or the weights [n]; None for none. See `dpjax.Microdata`: what is drawn
        is then a pseudo-posterior, whose intervals `Posterior.sandwich` corrects.

    Returns
    -------
    Model
        ``describe()`` prints the priors. On the real line coefficients are standardised. Group effects are divided by
        the square root of their standard deviation. That is halfway between their centred form, which suits releases
        that say much of each group, and their non-centred form, which suits the others [2]_.

    Raises
    ------
    ImportError
        If formulae is not installed.
    TypeError, ValueError
        If the formula cannot be read, if a column is missing or has gaps, or if a prior does not fit.

    Notes
    -----
    The default priors are scaled as those of Bambi and rstanarm [1]_, with sd(y) = 1 and mean(y) = 0 where the
    response has no scale. The linear predictor at the means of the covariates is N(mean(y), (2.5 sd(y))²), and a
    coefficient N(0, (2.5 sd(y) / sd(x))²). The standard deviation of group effects is half-Normal with the scale of the
    intercept or of the coefficient. ``sigma`` is half-Student with four degrees of freedom and scale sd(y), ``nu``
    Gamma(2, 0.1) and ``alpha`` half-Cauchy(1). The prior of ``Intercept`` is that at the means of the covariates, if it
    is given, too.

    References
    ----------
    .. [1] Capretto, T. and others (2022). Bambi: A simple interface for fitting Bayesian linear models in Python.
       Journal of Statistical Software 103(15).
    .. [2] Papaspiliopoulos, O., Roberts, G. O. and Sköld, M. (2007). A general framework for the parametrization of
       hierarchical models. Statistical Science 22(1).

    Examples
    --------
    >>> from dpjax.models import formula
    >>> counties = {"poverty": [0.1, 0.3, 0.2, 0.4], "state": ["A", "A", "B", "B"], "population": [900, 700, 800, 500]}
    >>> model = formula("cases ~ poverty + (1 | state) + offset(log(population))", counties, family="poisson")
    >>> print(model.describe().partition("parameters:")[0])
    cases ~ poverty + (1 | state) + offset(log(population))
      cases: poisson; the linear predictor is the logarithm of the mean
      Intercept ~ Normal(loc 0, scale 2.5), at the means of the covariates
      poverty ~ Normal(loc 0, scale 22.36)
      1|state_sigma ~ HalfNormal(scale 2.5)
      1|state ~ Normal(loc 0, scale 1|state_sigma), 2 groups
    """
    chosen, frame = find_family(family), read_frame(data)
    terms = read_formula(formula, frame)
    check_family(chosen, terms)
    check_name(terms, chosen)
    design = make_design(terms, chosen, read_priors(priors, chosen, response_mean, response_sd), len(frame))
    columns, levels = read_fields(fields, frame, terms.response.name)
    return build(design, formula, columns, levels, find_weights(weights, frame))


class FormulaModel(NumPyroModel, HasFileForm):
    """The model of a formula."""

    record_weights: Any
    text: str = static()
    levels: tuple[tuple[str, tuple[str, ...]], ...] = static()

    def __repr__(self) -> str:
        return f"FormulaModel({self.text!r}, {self.design.family.name!r}, {quantity(self.design.size, 'record')})"

    def __reduce__(self) -> Any:
        arguments = dict(self.arguments)
        return partial(build, arguments.pop("design"), self.text, arguments, self.levels, self.record_weights), ()

    def file_form(self) -> SavedFormula:
        """The formula with what it was given, as a file holds it."""
        columns = {name: column for name, column in self.arguments.items() if name != "design"}
        return SavedFormula(without_functions(self.design), self.text, columns, self.levels, self.record_weights)

    @property
    def design(self) -> DesignMatrix:
        """The terms with their columns and priors."""
        design: DesignMatrix = self.arguments["design"]
        return design

    @property
    def known_columns(self) -> dict[str, Any]:
        """The columns of terms, the names of groups, offset and trials, and the fields of the records."""
        design, fields = self.design, super().known_columns
        common = {term.name: np.asarray(term.columns) for term in design.common}
        groups = {term.name.partition("|")[2]: np.array(term.groups)[term.index] for term in design.groups}
        beside = {"offset": design.offset, "trials": design.trials}
        known = {name: np.asarray(column) for name, column in beside.items() if column is not None and np.ndim(column)}
        return common | groups | known | fields

    @property
    def log_odds(self) -> tuple[str, ...]:
        """The names of the coefficients, without the intercept, if they are on the scale of log odds."""
        is_logit = self.design.family.name in ("bernoulli", "binomial")
        return tuple(one.name for one in self.design.common if one.name != "Intercept") if is_logit else ()

    @property
    def standardised(self) -> Standardised:
        """The coordinates in which coefficients are standardised, and group effects halfway."""
        return Standardised(self.layout, self.facts.effects, tuple(term.name for term in self.design.groups))

    @property
    def noncentred(self) -> NonCentred:
        """That of the program; without groups its coordinates are the model's own."""
        return super().noncentred if self.design.groups else super().noncentred._replace(coordinates=None)

    def unconstrain(self, parameters: Parameters) -> Parameters:
        """From the parameters to standardised coordinates."""
        return self.standardised.unconstrain(parameters)

    def constrain(self, unconstrained: Parameters) -> Parameters:
        """Its inverse."""
        return self.standardised.constrain(unconstrained)

    def log_jacobian(self, unconstrained: Parameters) -> Array:
        """The log-determinant of the inverse."""
        return self.standardised.log_jacobian(unconstrained)

    def cell_means(self, cells: Any, shares: np.ndarray, draws: Parameters) -> np.ndarray:
        """See `HasCells` of `dpjax.posterior.survey`."""
        return average_over_cells(self.design, self.text, cells, shares, draws)

    @property
    def level_names(self) -> dict[str, tuple[str, ...]]:
        """The names of the levels of fields of text."""
        return dict(self.levels)

    def entry_labels(self, level_names: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[tuple[str, ...], ...]]:
        """The names of columns and groups."""
        del level_names
        common = self.design.common
        labels: dict[str, tuple[tuple[str, ...], ...]] = {one.name: (one.labels,) for one in common if one.labels}
        for term in self.design.groups:
            axis = (term.labels,) if term.labels else ()
            labels[term.name] = (*axis, term.groups)
            if axis:
                labels[term.name + SIGMA] = axis
        return labels

    def describe(self) -> str:
        """The formula, the family, the priors and the codes of levels, and what is said of any model."""
        codes = [
            f"{name}: {', '.join(f'{code} {level}' for code, level in enumerate(own))}" for name, own in self.levels
        ]
        weighted = [] if self.record_weights is None else ["survey weights of the records, scaled to sum to n"]
        lines = [*list_priors(self.design), *codes, *weighted]
        return "\n".join([self.text, *(f"  {line}" for line in lines), describe_model(self)])


def build(
    design: DesignMatrix,
    text: str,
    columns: dict[str, Any],
    levels: tuple[tuple[str, tuple[str, ...]], ...],
    weights: Any = None,
) -> Model:
    """The model of a design, with columns that are fields of its records, their levels and survey weights."""
    layout = find_layout(regression, [design.response, *columns], None, {"design": design} | columns, tuple(columns))
    is_alike = design.is_alike and not columns
    layout = replace(layout, fixed=not is_alike)
    facts = find_facts(ModelDensities(layout), is_alike, design.standardised)
    model = FormulaModel(layout, facts, read_weights(weights, design.size), text, levels)
    check_model(model)
    return model


def find_weights(weights: Any, frame: Any) -> Any:
    """The survey weights, which may be a column of the data, or an error if there is none of that name."""
    if not isinstance(weights, str):
        return weights
    if weights not in frame.columns:
        given = f"the column {weights!r}, which data does not have"
        fail("weights", given, f"one of {', '.join(map(str, frame.columns))}", "Add it, or check its spelling.")
    check_gaps(frame, weights)
    return np.asarray(frame[weights])


def list_priors(design: DesignMatrix) -> list[str]:
    """The family and the prior of each parameter, one a line."""
    lines = [f"{design.response}: {design.family.name}; the linear predictor is {design.family.link}"]
    if design.intercept is not None:
        where = ", at the means of the covariates" if design.common else ""
        lines.append(f"Intercept ~ {prior_in_words(design.intercept)}{where}")
    lines += [f"{term.name} ~ {prior_in_words(term.prior)}" for term in design.common]
    for term in design.groups:
        lines.append(f"{term.name}{SIGMA} ~ {prior_in_words(term.prior)}")
        lines.append(f"{term.name} ~ Normal(loc 0, scale {term.name}{SIGMA}), {quantity(len(term.groups), 'group')}")
    own = zip(design.family.own, design.own, strict=True)
    return lines + [f"{name} ~ {prior_in_words(prior)}" for name, prior in own]


def check_family(family: Family, terms: FormulaTerms) -> None:
    """Raise unless the left side has trials where the family needs them, and only there."""
    has_trials = terms.trials is not None
    if has_trials != family.has_trials:
        name, how = terms.response.name, "with" if has_trials else "without"
        given = f"{name!r} {how} trials on the left side, for the family {family.name!r}"
        remedy = f'Write "p({name}, trials) ~ ..." for the binomial family, and "{name} ~ ..." for others.'
        fail("formula", given, "trials" if family.has_trials else "no trials", remedy)


def check_name(terms: FormulaTerms, family: Family) -> None:
    """Raise if the response has the name of a parameter, or a term that of another one."""
    groups = [name for term in terms.groups for name in (term.name, term.name + SIGMA)]
    taken = ["Intercept", *family.own, *(term.name for term in terms.common), *groups]
    if twice := [name for name in taken if taken.count(name) > 1]:
        given = f"the term {twice[0]!r}, which is the name of another parameter, too"
        fail("formula", given, "terms of other names than parameters have", "Rename the column in data and formula.")
    if terms.response.name in taken:
        remedy = "Give the field another name, in the release too."
        fail("formula", f"the response {terms.response.name!r}", "another name than those of parameters", remedy)


def read_priors(priors: Any, family: Family, mean: Any, sd: Any) -> Priors:
    """The priors that were given, and the units of the default ones."""
    given = {} if priors is None else priors
    check_instance("priors", given, Mapping, 'Pass {"Intercept": NormalPrior(0.0, 1.0)}, for instance.')
    if mean is not None:
        check_number("response_mean", mean)
        check_array("response_mean", mean, np.isfinite, "a finite number", "Pass the mean that the response may have.")
    if sd is not None:
        check_positive_number("response_sd", sd)
    for name, value in (("response_mean", mean), ("response_sd", sd)):
        if value is not None and not family.has_scale:
            remedy = "Leave it out, or pass a prior for the intercept."
            fail(name, describe(value), f"nothing for the family {family.name!r}", remedy)
    return Priors(given, Units(mean, sd) if family.has_scale else Units(0.0, 1.0))


def make_design(terms: FormulaTerms, family: Family, priors: Priors, size: int) -> DesignMatrix:
    """The terms with their priors, as arrays."""
    design = DesignMatrix(
        common=tuple(make_common(term, terms.has_intercept, priors) for term in terms.common),
        groups=tuple(make_group(term, priors) for term in terms.groups),
        intercept=priors.intercept() if terms.has_intercept else None,
        own=tuple(map(priors.own, family.own)),
        offset=None if terms.offset is None else as_array(terms.offset),
        trials=terms.trials if terms.trials is None or np.ndim(terms.trials) == 0 else jnp.asarray(terms.trials),
        family=family,
        response=terms.response.name,
        size=size,
        levels=terms.levels,
    )
    priors.check_names()
    return design


def make_common(term: CommonTerm, centred: bool, priors: Priors) -> Common:
    """A term of all records."""
    mean = np.mean(term.columns, axis=0) * centred
    prior = priors.coefficients(term.name, term.columns)
    return Common(as_array(term.columns), as_array(mean), prior, term.name, term.labels)


def make_group(term: GroupTerm, priors: Priors) -> Group:
    """A term of groups."""
    columns = None if term.columns is None else as_array(term.columns)
    prior = priors.group(term.name + SIGMA, term.columns)
    numbers = range(columns.shape[1] if columns is not None and columns.ndim == 2 else 0)
    labels = term.labels or tuple(map(str, numbers))
    return Group(columns, jnp.asarray(term.group), prior, term.name, labels, term.groups)


def as_array(numbers: Any) -> Array:
    """Numbers in the default type of floats."""
    return jnp.asarray(numbers, float)


def read_fields(
    fields: Any, frame: Any, response: str
) -> tuple[dict[str, Array], tuple[tuple[str, tuple[str, ...]], ...]]:
    """The columns that are fields of the records, and the levels of those of text."""
    if isinstance(fields, str) or not isinstance(fields, Sequence) or not all(isinstance(name, str) for name in fields):
        fail("fields", repr(fields), "names of columns", 'Pass ("state",), for instance.', error=TypeError)
    columns, levels = {}, []
    for name in fields:
        if name not in frame.columns or name in (response, *RESERVED):
            remedy = f"Name covariates that the released statistic reads; no field is called {' or '.join(RESERVED)}."
            fail("fields", repr(name), "columns of data beside the response", remedy)
        check_gaps(frame, name)
        categories = getattr(getattr(frame[name], "cat", None), "categories", None)
        values = np.asarray(plain(frame[name]))
        if categories is not None:
            levels.append((name, tuple(map(str, categories))))
            values = np.asarray(frame[name].cat.codes, int)
        elif values.dtype.kind not in "biuf":
            found, values = np.unique(values.astype(str), return_inverse=True)
            levels.append((name, tuple(map(str, found))))
        columns[name] = as_array(values) if values.dtype.kind == "f" else jnp.asarray(values)
    return columns, tuple(levels)


RESERVED = ("design", "n")
"""Names of other arguments of the program."""
