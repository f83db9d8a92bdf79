"""Posterior predictive checks: how far out a statistic of what was released is among those of what is predicted."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dpjax._util.pickles import is_missing
from dpjax._util.validation import check_no_gaps, describe, fail, name_of
from dpjax.base import Key
from dpjax.diagnostics.summary import Summary
from dpjax.release.weights import check_unweighted

if TYPE_CHECKING:
    from dpjax.posterior.posterior import Posterior

Statistics = Callable[[np.ndarray], Any] | Mapping[str, Callable[[np.ndarray], Any]]
"""A function of released values that returns a number, or several by name."""

ENDS = (0.025, 0.975)


def check_predictions(
    posterior: "Posterior", key: Key, statistic: Statistics, by: Sequence[Any] | None, num_samples: int | None
) -> Summary:
    """The table of a check; see `Posterior.check`."""
    functions = as_functions(statistic)
    if not is_missing(posterior.release):
        # The model draws people of the population, and what was released is of the sample.
        check_unweighted(posterior.model, posterior.release, "posterior", "a check of predictions")
    groups = as_groups(by, posterior.released)
    values, released = posterior.predict(key, num_samples)
    rows, columns = [], []
    for name, function in functions.items():
        for group, members in groups.items():
            chosen = slice(None) if members is None else members
            own = number_from(name, function, np.asarray(released)[chosen])
            drawn = np.array([number_from(name, function, value[chosen]) for value in np.asarray(values)])
            # A tie counts half, so that a statistic with few values is not far out by itself.
            share = np.mean(drawn > own) + np.mean(drawn == own) / 2
            rows.append(name if members is None else f"{name}[{group}]")
            columns.append([own, np.mean(drawn), np.std(drawn), *np.quantile(drawn, ENDS), share])
    names = ("released", "mean", "sd", *(f"{100 * end:g}%" for end in ENDS), "p_value")
    note = f"p_value: the share of {len(values)} predictions above what was released, ties counted half"
    return Summary(tuple(rows), dict(zip(names, np.array(columns, float).T, strict=True)), note)


def as_functions(statistic: Any) -> dict[str, Callable[[np.ndarray], Any]]:
    """The functions by name."""
    found = statistic if isinstance(statistic, Mapping) else {getattr(statistic, "__name__", "statistic"): statistic}
    for name, function in found.items():
        if not callable(function) or isinstance(function, type):
            remedy = "Pass a function of the released values, such as numpy.max, or several by name."
            fail("statistic", name_of(function), "a function that returns a number", remedy, error=TypeError)
        if not isinstance(name, str):
            fail("statistic", f"the name {describe(name)}", "names of functions", "Pass strings.", error=TypeError)
    if not found:
        fail("statistic", "none", "one function or more", "Pass numpy.max, for instance.")
    return dict(found)


def as_groups(by: Any, released: np.ndarray) -> dict[str, np.ndarray | None]:
    """Which of the released values are in each group, in the order of the names; all of them without groups."""
    if by is None:
        return {"": None}
    remedy = "Pass the group of each of them, such as the column of a data frame."
    if isinstance(by, str) or not hasattr(by, "__len__") or np.ndim(by) != 1:
        fail("by", name_of(by), "the group of each released value", remedy, error=TypeError)
    if len(by) != len(released):
        fail("by", f"{len(by)} groups", f"one for each of {len(released)} released values", remedy)
    check_no_gaps("by", by, remedy)
    names = np.array([str(group) for group in by])
    return {group: names == group for group in sorted(set(names.tolist()))}


def number_from(name: str, function: Callable[[np.ndarray], Any], values: np.ndarray) -> float:
    """A statistic of values, which has to be one finite number."""
    found = function(values)
    if np.ndim(found) or np.asarray(found).dtype.kind not in "biuf" or not np.isfinite(found):
        given = f"{name!r}, which returned {describe(found)}"
        fail("statistic", given, "a function that returns a finite number", "Return a float, without NaN.")
    return float(found)
