"""Queries as dp_accounting events, and their composition by its privacy loss distributions."""

from collections.abc import Sequence
from math import fsum, log
from typing import Any

import numpy as np

from dpjax._util.spelling import names_arguments
from dpjax.mechanisms.privacy import Neighbours, check_neighbours
from dpjax.private.accounting import closed_form
from dpjax.private.accounting.query import Query, check_queries
from dpjax.private.arguments import check_not_negative

__all__ = ["accountant", "event", "subsampled_epsilon", "subsampled_log_delta"]

LEAST_MULTIPLIER, MOST_COMPOSED = 0.05, 10**8
"""Smallest multiplier and largest number of queries composed by transforms; else the other bounds are as good."""

ORDERS = (*range(2, 65), *(2**power for power in range(7, 17)))
RENYI_ERROR = 1e-9
"""Relative rounding error of a divergence."""


@names_arguments
def event(queries: Sequence[Query]) -> Any:
    """The queries as one ``dp_accounting.DpEvent``, for any accountant of that library.

    Its ``GaussianDpEvent`` takes the standard deviation over the bound of one record's norm, as `Query` does. The
    accountant has the neighbouring relation: built for REPLACE_ONE it allows for a sensitivity of 2. Laplace queries
    become its ``LaplaceDpEvent``, which it composes under ADD_OR_REMOVE_ONE.

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
    >>> import dpjax
    >>> from dpjax.private import Query
    >>> composed = dpjax.private.events.event([Query("sum", 5.0, "simulation-grade", count=10)])
    """
    check_queries(queries)
    library = _library()
    return library.ComposedDpEvent([_one_kind(library, query) for query in queries])


@names_arguments
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
    >>> import dpjax
    >>> from dpjax.private import Query
    >>> told = dpjax.private.events.accountant([Query("sum", 5.0, "simulation-grade", count=10)], "add-or-remove")
    """
    check_neighbours(neighbours)
    library = _library()
    from dp_accounting.pld import PLDAccountant

    relations = library.NeighboringRelation
    relation = relations.REPLACE_ONE if neighbours == "replace-one" else relations.ADD_OR_REMOVE_ONE
    return PLDAccountant(relation).compose(event(queries))


@names_arguments
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
    >>> import dpjax
    >>> from dpjax.private import Query
    >>> sums = Query("sum", 5.0, "simulation-grade", count=10)
    >>> dpjax.private.events.subsampled_log_delta([sums], 1.0, "add-or-remove") < -3
    True
    """
    check_queries(queries)
    check_not_negative("epsilon", epsilon)
    bounds = [full_batch_log_delta(queries, epsilon, neighbours)]
    if can_be_transformed(queries):
        error = transform_error(queries)
        found = float(accountant(queries, neighbours).get_delta(epsilon))
        bounds.append(log(min(max(found, 0.0) + error, 1.0)))
    if neighbours == "add-or-remove":
        bounds.append(renyi_log_delta(queries, epsilon))
    return min(bounds)


@names_arguments
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
    >>> import dpjax
    >>> from dpjax.private import Query
    >>> sums = Query("sum", 5.0, "simulation-grade", count=10)
    >>> 2.5 < dpjax.private.events.subsampled_epsilon([sums], 1e-5, "add-or-remove") < 3.0
    True
    """
    check_queries(queries)
    bounds = [closed_form.epsilon(delta, full_batch_mu(queries, neighbours))]
    if can_be_transformed(queries) and delta > transform_error(queries):
        bounds.append(float(accountant(queries, neighbours).get_epsilon(delta - transform_error(queries))))
    if neighbours == "add-or-remove":
        bounds.append(float(renyi(queries).get_epsilon(delta)) * (1 + RENYI_ERROR))
    return min(bounds)


def transform_error(queries: Sequence[Query]) -> float:
    """The largest error of δ from a composed distribution due to rounding in its Fourier transform.

    A transform of N points is off by some units in the last place times log N. The k-th power of it is off by k times
    as much where it is near 1. That is at some √10 times as many frequencies as the composed distribution is wide in
    its window. The constant leaves a factor of about a hundred.
    """
    return 1000 * 2.0**-53 * (len(queries) + sum(query.count for query in queries))


def can_be_transformed(queries: Sequence[Query]) -> bool:
    """Whether loss distributions are small enough to be stored and composed."""
    least = min((query.noise_multiplier for query in queries), default=1.0)
    return least >= LEAST_MULTIPLIER and sum(query.count for query in queries) <= MOST_COMPOSED


def full_batch_mu(queries: Sequence[Query], neighbours: Neighbours) -> float:
    """The mean privacy loss if every record took part in every query: sampling never costs more.

    Laplace queries count as the Gaussian ones that are no harder to distinguish.
    """
    return sum((query.count * mu_of(query, neighbours) for query in queries), 0.0)


def mu_of(query: Query, neighbours: Neighbours) -> float:
    """That of one such sum."""
    if query.noise == "laplace":
        return closed_form.mu_of_pure(closed_form.sensitivity(1.0, neighbours) / query.noise_multiplier)
    return (closed_form.sensitivity(1.0, neighbours) / query.noise_multiplier) ** 2 / 2


def pure_epsilon(queries: Sequence[Query], neighbours: Neighbours) -> float:
    """ε of all Laplace queries together, which add up."""
    step = closed_form.sensitivity(1.0, neighbours)
    return fsum(query.count * step / query.noise_multiplier for query in queries if query.noise == "laplace")


def full_batch_log_delta(queries: Sequence[Query], epsilon: float, neighbours: Neighbours) -> float:
    """log δ at ε if every record took part in every query."""
    return closed_form.log_delta_from_above(epsilon, full_batch_mu(queries, neighbours))


def renyi(queries: Sequence[Query]) -> Any:
    """A ``dp_accounting.rdp.RdpAccountant`` of whole orders, whose sums have no error but rounding; add-or-remove."""
    library = _library()
    from dp_accounting.rdp import RdpAccountant

    return RdpAccountant(ORDERS, library.NeighboringRelation.ADD_OR_REMOVE_ONE).compose(event(queries))


def renyi_log_delta(queries: Sequence[Query], epsilon: float) -> float:
    """An upper bound of log δ at ε by Rényi divergences, which holds however small δ is; add-or-remove."""
    divergences = np.asarray(renyi(queries).rdp)  # δ itself may be too small for a float
    orders = np.asarray(ORDERS, float)
    # Proposition 12 of Canonne, Kamath and Steinke (2020).
    bounds = (
        (orders - 1) * (divergences * (1 + RENYI_ERROR) - epsilon)
        + (orders - 1) * np.log1p(-1 / orders)
        - np.log(orders)
    )
    return float(min(np.min(bounds), 0.0))


def _one_kind(library: Any, query: Query) -> Any:
    family = library.LaplaceDpEvent if query.noise == "laplace" else library.GaussianDpEvent
    noise = family(query.noise_multiplier)
    if query.sampling_rate < 1:
        noise = library.PoissonSampledDpEvent(query.sampling_rate, noise)
    return library.SelfComposedDpEvent(noise, query.count)


def _library() -> Any:
    try:
        import dp_accounting
    except ImportError as error:
        need = "expected for privacy accounting of subsampled queries"
        raise ImportError(
            f"dp_accounting: not installed; {need}. Run pip install cryptography dp-accounting."
        ) from error
    return dp_accounting
