"""What a formula and a data frame say: columns of terms, groups, offsets and trials, by the library formulae."""

from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from io import StringIO
from typing import Any, NamedTuple, NoReturn

import numpy as np

from dpjax._util.validation import describe, fail, is_refusal, name_of, plain, summarize_error

__all__ = ["CommonTerm", "FormulaTerms", "GroupTerm", "Response", "check_gaps", "read_formula", "read_frame"]

TRIALS = ("p", "prop", "proportion")
"""The functions that join successes and trials on the left side."""

FUNCTIONS: dict[str, Callable[..., Any]] = {
    name: getattr(np, name)
    for name in ("abs", "ceil", "cos", "exp", "floor", "log", "log1p", "log2", "log10", "sin", "sqrt", "tan")
}
"""Functions that a formula can call by their names, beside those of formulae."""

EXAMPLE = 'Write "cases ~ poverty + (1 | state)", for instance.'


class CommonTerm(NamedTuple):
    """A term of all records: its name, the names of its columns if they have any, and the columns [n, k] or [n]."""

    name: str
    labels: tuple[str, ...]
    columns: np.ndarray


class GroupTerm(NamedTuple):
    """A term of groups: as above, without columns for an intercept; and the names of the groups, with each record's."""

    name: str
    labels: tuple[str, ...]
    columns: np.ndarray | None
    groups: tuple[str, ...]
    group: np.ndarray


class Response(NamedTuple):
    """The name of the response, and its trials: a number, the name of a column, or None."""

    name: str
    trials: Any


class FormulaTerms(NamedTuple):
    """All of a formula: what is on its left, whether it has an intercept, terms, offset [n], trials, and levels."""

    response: Response
    has_intercept: bool
    common: tuple[CommonTerm, ...]
    groups: tuple[GroupTerm, ...]
    offset: np.ndarray | None
    trials: Any
    levels: tuple[tuple[str, tuple[str, ...]], ...]


def read_frame(data: Any, argument: str = "data") -> Any:
    """A data frame, from one or from columns by name; `argument` is what errors call it."""
    try:
        from pandas import DataFrame
    except ImportError as error:
        raise ImportError(
            "pandas: not installed; expected for dpjax.models.formula. Run pip install pandas."
        ) from error
    remedy = "Pass a data frame of pandas, or a dict of columns."
    if not isinstance(data, (DataFrame, Mapping)):
        fail(argument, name_of(data), "a data frame", remedy, error=TypeError)
    try:
        frame = data if isinstance(data, DataFrame) else DataFrame(dict(data))
    except Exception as error:  # whatever pandas says of columns
        fail(argument, f"columns that make no data frame ({summarize_error(error)})", "columns of one length", remedy)
    if not len(frame):
        fail(argument, "no rows", "one row or more", "Pass the covariates of the records, or of the cells.")
    return frame


def with_numbers(frame: Any) -> Any:
    """The frame with columns of numbers that are objects, such as decimals, as those of plain numbers."""
    return frame.assign(
        **{name: plain(frame[name]) for name in frame.columns if not hasattr(frame[name].dtype, "categories")}
    )


def in_order(frame: Any) -> Any:
    """The frame with categories in their own order, which formulae keeps of ordered ones, and without unused ones."""
    named = [name for name in frame.columns if hasattr(frame[name].dtype, "categories")]
    return frame.assign(**{name: frame[name].cat.remove_unused_categories().cat.as_ordered() for name in named})


def levels_in(frame: Any) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The levels of the columns that are no numbers, by name: those of categories in their order."""
    found = []
    for name in frame.columns:
        if hasattr(frame[name].dtype, "categories"):
            found.append((name, tuple(map(str, frame[name].cat.categories))))
        elif np.asarray(frame[name]).dtype.kind not in "biuf":
            found.append((name, tuple(sorted(set(frame[name].astype(str))))))
    return tuple(found)


def read_formula(formula: Any, frame: Any, argument: str = "data", keep_levels: bool = False) -> FormulaTerms:
    """The terms of a formula with the columns of a data frame; categories that no row has are left out, or kept.

    Raises
    ------
    ImportError
        If formulae is not installed.
    ValueError, TypeError
        If the formula cannot be read, or the data lack what it names.
    """
    if not isinstance(formula, str):
        fail("formula", describe(formula), "a text", EXAMPLE, error=TypeError)
    # Effects of one group are independent in any case, as lme4 writes with two bars.
    formula = formula.replace("||", "|")
    description, (_, tilde, right) = describe_formula(formula), formula.partition("~")
    if not tilde or description.response is None:
        fail("formula", repr(formula), "a response, ~ and terms", EXAMPLE)
    response = read_response(description.response.term.components[0])
    used = describe_formula(right)
    if {term.name for term in used.terms} != {term.name for term in description.terms}:
        fail("formula", repr(formula), "each group effect in parentheses", EXAMPLE)
    names = (used.var_names - {""}) | ({response.trials} if isinstance(response.trials, str) else set())
    check_columns(frame, names, response.name, argument)
    used_columns = with_numbers(frame[sorted(names)])
    used_columns = used_columns if keep_levels else in_order(used_columns)
    terms = split_terms(evaluate(right, used_columns))
    return FormulaTerms(response, *terms, read_trials(response.trials, frame), levels_in(used_columns))


def describe_formula(text: str) -> Any:
    """What formulae reads in a text, or an error."""
    try:
        from formulae import model_description
    except ImportError as error:
        raise ImportError(
            "formulae: not installed; expected for dpjax.models.formula. Run pip install formulae."
        ) from error
    try:
        return model_description(text)
    except Exception as error:  # formulae raises its own kinds
        if "[" in text:
            remedy = "Give the column its levels: data['x'] = pandas.Categorical(data['x'], ['low', 'high'])."
            fail("formula", f"{text.strip()!r}, with a list in brackets", "columns, functions and numbers", remedy)
        return fail("formula", f"{text.strip()!r} ({summarize_error(error)})", "a formula in R's language", EXAMPLE)


def read_response(left: Any) -> Response:
    """The response that the left side of a formula names."""
    call = getattr(left, "call", None)
    if call is None and left.reference is None:
        return Response(left.name, None)
    if call is not None and call.callee in TRIALS and len(call.args) == 2:
        name, trials = getattr(call.args[0], "name", None), getattr(call.args[1], "value", None)
        column = getattr(call.args[1], "name", None)
        if name is not None and (trials is not None or column is not None):
            return Response(name, column if trials is None else trials)
    remedy = "Name the released field as it is: its transforms belong to the release, or to another family."
    return fail("formula", f"the left side {left.name!r}", "the name of a field, or p(field, trials)", remedy)


def check_columns(frame: Any, names: set[str], response: str, argument: str) -> None:
    """Raise unless the data frame has all of these columns without a gap."""
    if response in names:
        remedy = "The response is confidential: only what is released of it can be used."
        fail("formula", f"the response {response!r} on its right side too", "covariates there", remedy)
    missing = sorted(names - set(frame.columns))
    if missing:
        has = f"the columns {', '.join(map(str, frame.columns))}, without {missing[0]!r}"
        fail(argument, has, "every variable of the formula", "Add the column, or check its spelling.")
    for name in sorted(names):
        check_gaps(frame, name, argument)


def check_gaps(frame: Any, name: str, argument: str = "data") -> None:
    """Raise if a column is there twice, or values of it are missing."""
    if list(frame.columns).count(name) > 1:
        fail(argument, f"two columns {name!r}", "one of each name", "Rename one of them, or leave it out.")
    gaps = int(frame[name].isna().sum())
    if gaps:
        rows = "cells out" if argument == "cells" else "records out of data and release"
        remedy = f"Fill in what is missing, or leave these {rows}."
        fail(argument, f"{gaps} missing values in the column {name!r}", "covariates of every record", remedy)


def evaluate(right: str, frame: Any) -> Any:
    """The columns of a formula's right side, or an error."""
    from formulae import design_matrices
    from formulae.environment import Environment

    try:
        with redirect_stdout(StringIO()):  # formulae prints where it fails
            return design_matrices(right, frame, na_action="error", env=Environment([FUNCTIONS | {"np": np}]))
    except Exception as error:  # a formula may call anything
        if is_refusal(error):
            raise
        for name in frame.columns:
            if np.asarray(frame[name]).dtype.kind not in "biufc" and frame[name].nunique() == 1:
                refuse_level(name)
        remedy = f"Beside those of formulae, a formula can call {', '.join(FUNCTIONS)}. Put the rest into columns."
        return fail("formula", f"{right.strip()!r} ({summarize_error(error)})", "terms of the columns of data", remedy)


def refuse_level(term: str) -> NoReturn:
    """Raise the error for a term of one level, with which no other can be compared."""
    fail("formula", f"the term {term!r}, which has one level alone", "two levels or more", "Leave it out.")


def split_terms(
    design: Any,
) -> tuple[bool, tuple[CommonTerm, ...], tuple[GroupTerm, ...], np.ndarray | None]:
    """Whether there is an intercept, the terms of all records and of groups, and the offset."""
    terms = list(design.common.terms.values()) if design.common is not None else []
    offsets = [as_column(term).reshape(-1) for term in terms if term.kind == "offset"]
    groups = tuple(read_group(term) for term in design.group.terms.values()) if design.group is not None else ()
    common = tuple(
        CommonTerm(term.name, labels_of(term), as_column(term))
        for term in terms
        if term.kind not in ("intercept", "offset")
    )
    for one in common:
        if one.columns.size == 0:
            refuse_level(one.name)
    return any(term.kind == "intercept" for term in terms), common, groups, np.sum(offsets, axis=0) if offsets else None


def read_group(term: Any) -> GroupTerm:
    """A term of groups, with the groups that occur."""
    found, index = np.unique(np.asarray(term.factor.data).argmax(axis=1), return_inverse=True)
    columns = None if term.kind == "intercept" else as_column(term.expr)
    groups = tuple(str(term.groups[place]) for place in found)
    return GroupTerm(term.name, () if columns is None else labels_of(term.expr), columns, groups, index)


def labels_of(term: Any) -> tuple[str, ...]:
    """The names of a term's columns; empty if it has one column of numbers, or columns without names."""
    return tuple(map(str, term.levels or ())) if np.ndim(term.data) == 2 else ()


def as_column(term: Any) -> np.ndarray:
    """The columns of a term as floats, or an error where they are not finite."""
    if np.iscomplexobj(term.data):
        fail("data", f"complex numbers for the term {term.name!r}", "real numbers", "Pass real and imaginary parts.")
    columns = np.asarray(term.data, float)
    if not np.all(np.isfinite(columns)):
        row = np.argwhere(~np.isfinite(columns))[0][0]
        remedy = "Check the column that it is computed from, such as the logarithm of 0."
        fail("data", f"no finite number for the term {term.name!r} in row {row}", "finite numbers", remedy)
    return columns


def read_trials(trials: Any, frame: Any) -> Any:
    """The number of trials of each record [n], or one number if all have the same; None for none."""
    if trials is None:
        return None
    remedy = "Pass whole numbers of trials, of at least 0."
    values = np.asarray(plain(frame[trials]) if isinstance(trials, str) else [trials])
    if values.dtype.kind not in "biuf" or not np.all((values >= 0) & (values == np.floor(values))):
        fail("formula", f"the trials {trials!r}", "whole numbers of at least 0", remedy)
    return int(values[0]) if np.all(values == values[0]) else values.astype(int)
