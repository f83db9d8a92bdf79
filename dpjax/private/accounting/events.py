"""Queries as dp_accounting events, and their composition by its privacy loss distributions."""

from collections.abc import Sequence
from math import inf, log
from typing import Any

from dpjax.mechanisms.privacy import Neighbours, check_neighbours
from dpjax.private.accounting.query import Query

__all__ = ["accountant", "event", "subsampled_epsilon", "subsampled_log_delta"]


def event(queries: Sequence[Query]) -> Any:
    """The queries as one ``dp_accounting.DpEvent``, for any accountant of that library.

    Its ``GaussianDpEvent`` takes the standard deviation over the bound of one record's norm, as `Query` does, and the
    accountant is told the neighbouring relation: built for REPLACE_ONE it allows for a sensitivity of 2.

    Parameters
    ----------
    queries
        Those of a kernel or a ledger.

    Raises
    ------
    ImportError
        If dp_accounting is not installed.

    Examples
    --------
    >>> from dpjax.private import Query
    >>> composed = event([Query("sum", 5.0, "simulation-grade", count=10)])
    """
    library = _library()
    return library.ComposedDpEvent([_one_kind(library, query) for query in queries])


def accountant(queries: Sequence[Query], neighbours: Neighbours) -> Any:
    """A ``dp_accounting.pld.PLDAccountant`` under the relation named that has composed the queries.

    Parameters
    ----------
    queries
        Those of a kernel or a ledger.
    neighbours
        ``"replace-one"`` or ``"add-or-remove"``.

    Raises
    ------
    ImportError
        If dp_accounting is not installed.
    ValueError
        If the relation is not named.

    Examples
    --------
    >>> from dpjax.private import Query
    >>> told = accountant([Query("sum", 5.0, "simulation-grade", count=10)], "add-or-remove")
    """
    check_neighbours(neighbours)
    library = _library()
    from dp_accounting.pld import PLDAccountant

    relations = library.NeighboringRelation
    relation = relations.REPLACE_ONE if neighbours == "replace-one" else relations.ADD_OR_REMOVE_ONE
    return PLDAccountant(relation).compose(event(queries))


def subsampled_log_delta(queries: Sequence[Query], epsilon: float, neighbours: Neighbours) -> float:
    """An upper bound of log δ at ε of the queries' composition, by privacy loss distributions.

    Parameters
    ----------
    queries
        Those of a kernel or a ledger.
    epsilon
        ε.
    neighbours
        ``"replace-one"`` or ``"add-or-remove"``.

    Examples
    --------
    >>> from dpjax.private import Query
    >>> sums = Query("sum", 5.0, "simulation-grade", count=10)
    >>> subsampled_log_delta([sums], 1.0, "add-or-remove") < -3
    True
    """
    delta = accountant(queries, neighbours).get_delta(epsilon)
    return log(delta) if delta > 0 else -inf


def subsampled_epsilon(queries: Sequence[Query], delta: float, neighbours: Neighbours) -> float:
    """An upper bound of ε at δ of the queries' composition, by privacy loss distributions.

    Parameters
    ----------
    queries
        Those of a kernel or a ledger.
    delta
        δ.
    neighbours
        ``"replace-one"`` or ``"add-or-remove"``.

    Examples
    --------
    >>> from dpjax.private import Query
    >>> sums = Query("sum", 5.0, "simulation-grade", count=10)
    >>> 2.5 < subsampled_epsilon([sums], 1e-5, "add-or-remove") < 3.0
    True
    """
    return float(accountant(queries, neighbours).get_epsilon(delta))


def _one_kind(library: Any, query: Query) -> Any:
    noise = library.GaussianDpEvent(query.noise_multiplier)
    if query.sampling_rate < 1:
        noise = library.PoissonSampledDpEvent(query.sampling_rate, noise)
    return library.SelfComposedDpEvent(noise, query.count)


def _library() -> Any:
    try:
        import dp_accounting
    except ImportError as error:
        need = "expected for privacy accounting of subsampled queries"
        raise ImportError(f'dp_accounting: not installed; {need}. Run pip install "dpjax[privacy]".') from error
    return dp_accounting
