"""Statistics in words, for descriptions of releases."""

from functools import singledispatch
from typing import Any

import numpy as np

from dpjax._util.validation import name_of
from dpjax.statistics.combinators import Scaled, Stacked
from dpjax.statistics.moments import Gram, LogComposition, Total
from dpjax.statistics.tables import Cells, ClassFeatures, Grouped, Histogram

__all__ = ["amount", "sums"]

SHOWN = 4
"""Numbers that are told one by one."""


def amount(numbers: Any) -> str:
    """One number, a few, or their range."""
    flat = np.unique(np.asarray(numbers, float))
    if len(flat) == 1:
        return f"{flat[0]:.4g}"
    ordered = np.ravel(np.asarray(numbers, float))
    return ", ".join(f"{one:.4g}" for one in ordered) if len(ordered) <= SHOWN else f"{flat[0]:.4g} to {flat[-1]:.4g}"


@singledispatch
def sums(statistic: Any) -> str:
    """What was summed."""
    return f"the sum of {name_of(statistic)}"


def clamped(lower: Any, upper: Any) -> str:
    """How a field was clamped."""
    if lower is None and upper is None:
        return "not clamped"
    sides = ("−∞" if lower is None else amount(lower), "∞" if upper is None else amount(upper))
    return f"clamped to {sides[0]} to {sides[1]}"


@sums.register
def of_total(statistic: Total) -> str:
    return f"the sum of `{statistic.field}`, {clamped(statistic.lower, statistic.upper)}"


@sums.register
def of_gram(statistic: Gram) -> str:
    fields = "(1, x, y)" if statistic.response is not None else "(1, x)"
    response = "" if statistic.response is None else f", y {clamped(*statistic.response)}"
    return f"the sums of the products of {fields}, x {clamped(statistic.lower, statistic.upper)}{response}"


@sums.register
def of_cells(statistic: Cells) -> str:
    axes = zip(statistic.field, statistic.num_categories, strict=True)
    return f"the counts of a table of {' × '.join(f'`{field}` ({size})' for field, size in axes)}"


@sums.register
def of_histogram(statistic: Histogram) -> str:
    low, high = statistic.edges[0], statistic.edges[-1]
    return f"the counts of `{statistic.field}` in {statistic.dimension} bins from {low:g} to {high:g}"


@sums.register
def of_grouped(statistic: Grouped) -> str:
    if statistic.num_groups > 1:
        return f"the counts of {statistic.num_groups} groups of `{statistic.field}`"
    return (
        f"the count of {categories(np.flatnonzero(np.asarray(statistic.groups) == 0).tolist())} of `{statistic.field}`"
    )


def categories(codes: list[int]) -> str:
    """A few category codes as they are, many by their number and ends."""
    if len(codes) <= SHOWN:
        return f"{'category' if len(codes) == 1 else 'categories'} {', '.join(map(str, codes))}"
    return f"{len(codes)} categories from {codes[0]} to {codes[-1]}"


@sums.register
def of_class_features(statistic: ClassFeatures) -> str:
    return (
        f"the counts of {statistic.num_features} features of {statistic.num_levels} levels in each of "
        f"{statistic.num_classes} classes"
    )


@sums.register
def of_log_composition(statistic: LogComposition) -> str:
    return f"the sums of the logarithms of the shares `{statistic.field}`, at least {statistic.lower:g} each"


@sums.register
def of_scaled(statistic: Scaled) -> str:
    return f"{sums(statistic.statistic)}, times {statistic.factor:.4g}"


@sums.register
def of_stacked(statistic: Stacked) -> str:
    return "; ".join(map(sums, statistic.statistics))
