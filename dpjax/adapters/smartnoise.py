"""Counts and sums of SmartNoise SQL, whose noise follows from its accuracies; that library itself is not imported.

Its accuracy at α is that of real noise, also for integer noise: scale · log(1 / α) of Laplace noise, and a quantile of
a Normal distribution of Gaussian noise. So the scale follows from it, to the digits that were given. See ``accuracy``
of the classes in ``snsql/sql/_mechanisms``.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dpjax._util.spelling import names_arguments
from dpjax._util.validation import check_positive_number, check_share, describe, fail
from dpjax.mechanisms import Censored, DiscreteGaussian, DiscreteLaplace, Gaussian, Laplace
from dpjax.release import Release, joint, mechanism_from_published

__all__ = ["mechanism_from_smartnoise", "read_result"]

Noise = Laplace | Gaussian | DiscreteLaplace | DiscreteGaussian

CLASSES: dict[str, type[Any]] = {
    "laplace": Laplace,
    "gaussian": Gaussian,
    "geometric": DiscreteLaplace,
    "discrete_laplace": DiscreteLaplace,
    "discrete_gaussian": DiscreteGaussian,
}
"""Its names of mechanisms. The scale of geometric noise is that of discrete Laplace noise."""


@names_arguments
def mechanism_from_smartnoise(mechanism: Any) -> Noise:
    """The mechanism of one column of a query.

    Parameters
    ----------
    mechanism
        An object of that library, read by its attributes ``mechanism``, a member of its enumeration or the member's
        name, and ``scale``. A reader lists them for a query that it has parsed.

    Raises
    ------
    TypeError, ValueError
        If an attribute is missing, the mechanism is of another name, or the scale is not positive.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from dpjax.adapters.smartnoise import mechanism_from_smartnoise
    >>> mechanism_from_smartnoise(SimpleNamespace(mechanism="discrete_laplace", scale=2.0))
    DiscreteLaplace(scale=2.0, privacy=None)
    """
    if missing := [name for name in ("mechanism", "scale") if not hasattr(mechanism, name)]:
        remedy = "Pass one of the mechanisms that its reader lists."
        fail("mechanism", f"{describe(mechanism)} without {missing}", "its attributes", remedy, error=TypeError)
    name = getattr(mechanism.mechanism, "name", mechanism.mechanism)
    if not isinstance(name, str) or name not in CLASSES:
        fail("mechanism", describe(name), f"one of {sorted(CLASSES)}", "Only noise that is added to a sum can be read.")
    check_positive_number("mechanism.scale", mechanism.scale, "Pass it as its reader gives it.")
    return CLASSES[name](float(mechanism.scale))


@names_arguments
def read_result(
    result: Any,
    accuracies: Sequence[float | None],
    *,
    alpha: float,
    statistics: Mapping[str, Any],
    n: Any,
    by: str | None = None,
    levels: Sequence[Any] | None = None,
    gaussian: Sequence[str] = (),
    clamped: Sequence[str] = (),
) -> Release:
    """The release of the counts and sums of a query.

    Parameters
    ----------
    result
        The rows of ``execute``, of which the first has the names of the columns; or a data frame of ``execute_df``.
    accuracies
        The accuracies of ``get_simple_accuracy``, one for each column. They are ``None`` for groups and averages.
    alpha
        The α of the accuracies.
    statistics
        The columns that are read, by name, each with its statistic: one coordinate for each row. A column that is
        missing here is left out.
    n
        The number of records, as in `dpjax.Release`: often a `dpjax.UnknownCount`.
    by
        The column by which the query groups; ``None`` for one row.
    levels
        The groups, in the order of the coordinates. Rows come in any order.
    gaussian
        The columns that have Gaussian noise, which a user of that library has to choose. The others have Laplace noise.
    clamped
        The counts that were set to 0 if they were negative, as by ``clamp_counts``.

    Returns
    -------
    Release
        With discrete noise where numbers are whole, as that library has it. Joined, if several columns are read.

    Raises
    ------
    TypeError, ValueError
        If a column has no accuracy, such as an average, or is not there. If groups are missing, repeated or not among
        the levels. If a statistic has another number of coordinates.

    Notes
    -----
    Groups that the library withheld because few persons are in them tell that their own noisy count was small. This is
    not read: with ``censor_dims`` take groups that are far above the threshold.

    Examples
    --------
    >>> import dpjax
    >>> from dpjax.adapters.smartnoise import read_result
    >>> release = read_result(
    ...     [("sex", "n"), ("m", 71), ("f", 80)],
    ...     [None, 6.0],
    ...     alpha=0.05,
    ...     statistics={"n": dpjax.statistics.cells("sex", 2)},
    ...     n=150,
    ...     by="sex",
    ...     levels=["f", "m"],
    ... )
    >>> release.value.tolist(), round(release.mechanism.scale, 3)
    ([80.0, 71.0], 2.003)
    """
    check_share("alpha", alpha, "Pass the α of the accuracies, such as 0.05.")
    names, rows = read_rows(result)
    if not (isinstance(accuracies, (list, tuple)) and len(accuracies) == len(names)):
        remedy = "Pass what get_simple_accuracy gives for the query."
        fail("accuracies", describe(accuracies), f"one for each of the columns {names}", remedy)
    if not (isinstance(statistics, Mapping) and statistics):
        remedy = "Pass such as {'n': dpjax.statistics.cells(...)}."
        fail("statistics", describe(statistics), "the statistics of columns by name", remedy, error=TypeError)
    for argument, given in {"statistics": statistics, "gaussian": gaussian, "clamped": clamped}.items():
        if unknown := [name for name in given if name not in names]:
            fail(argument, unknown, f"some of the columns {names}", "Take the names of the first row.")
    rows = ordered(names, rows, by, levels)
    parts = []
    for name, statistic in statistics.items():
        place = names.index(name)
        numbers = [row[place] for row in rows]
        if accuracies[place] is None:
            remedy = "Averages and variances are functions of noisy sums: see dpjax.releases.quotient and moments."
            fail(f"accuracies[{place}]", "None", f"that of the column {name!r}", remedy)
        family = "gaussian" if name in gaussian else "laplace"
        scale = mechanism_from_published(f"{family}_accuracy", accuracies[place], alpha=alpha).scale
        whole = all(isinstance(number, (int, np.integer)) for number in numbers)
        noise = CLASSES[f"discrete_{family}" if whole else family](float(scale))
        mechanism = Censored(noise, lower=0.0) if name in clamped else noise
        value: Any = np.asarray(numbers)
        parts.append(Release(value, mechanism, statistic, n))
    return parts[0] if len(parts) == 1 else joint(*parts)


def read_rows(result: Any) -> tuple[list[str], list[list[Any]]]:
    """The names of the columns of a result, and its rows."""
    frame = hasattr(result, "columns") and hasattr(result, "itertuples")
    table = [result.columns, *result.itertuples(index=False)] if frame else result
    remedy = "Pass what execute gives, with the names of the columns first."
    if isinstance(table, (str, bytes)) or not isinstance(table, Sequence) or len(table) < 2:
        fail("result", describe(result), "the names of the columns, and rows", remedy, error=TypeError)
    names, *rows = map(list, table)
    if not all(isinstance(name, str) for name in names) or any(len(row) != len(names) for row in rows):
        fail("result", describe(table[0]), "names of columns, as many as each row has numbers", remedy)
    return names, rows


def ordered(names: list[str], rows: list[list[Any]], by: str | None, levels: Sequence[Any] | None) -> list[list[Any]]:
    """The rows in the order of the levels, or the one row of a query without groups."""
    if by is None:
        if len(rows) != 1 or levels is not None:
            fail("by", "None", "the column by which the query groups", "Rows come in any order: pass by and levels.")
        return rows
    if by not in names or levels is None:
        fail(
            "by, levels", f"{by!r} and {describe(levels)}", f"one of the columns {names}, and its groups", "Pass both."
        )
    found = [row[names.index(by)] for row in rows]
    if sorted(map(repr, found)) != sorted(map(repr, levels)):
        remedy = (
            "A group that is missing was withheld: leave it out of the levels and the statistic, or take another query."
        )
        fail("levels", describe(list(levels)), f"the groups of the result, each once: {describe(found)}", remedy)
    return [rows[found.index(level)] for level in levels]
