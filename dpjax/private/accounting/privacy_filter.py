"""Whether queries may be charged whose settings, and whose number, were chosen after earlier answers."""

from collections.abc import Sequence
from dataclasses import replace
from math import inf, log, log1p

from dpjax.private.accounting.events import full_batch_log_delta, pure_epsilon, subsampled_log_delta
from dpjax.private.accounting.query import Budget, Query

__all__ = ["excess"]

KEPT = 2.0**-10
"""The share of δ that a ledger which begins with subsampled queries keeps for queries of other kinds."""


def excess(queries: Sequence[Query], budget: Budget) -> float:
    """At most 0 if queries, of which the first one was charged first, may be all that is charged to a budget.

    Whatever is charged, and whenever that ends, may depend on all answers so far. A composition bound for fixed queries
    does not hold then: which of several bounds is used would be chosen with knowledge of the losses. Here δ is split
    among the cases that a ledger can end in, and each has a bound of its own that holds whatever is chosen.

    Notes
    -----
    *Laplace queries alone* cost the sum of their ε, surely, and use no δ (Rogers, Roth, Ullman and Vadhan 2016).

    *All records in every query*: given the past, the privacy loss of a query is at worst N(m, 2m). The sum of m is
    bounded by μ. So the loss of all is no worse than that of one Gaussian query with μ (Smith and Thakurta 2022;
    Whitehouse, Ramdas, Rogers and Wu 2023). Laplace queries count as Gaussian ones (`closed_form.mu_of_pure`), and
    subsampled ones as if every record took part.

    *Equal subsampled queries alone*, from the first charge on: their number is the only choice. Whoever stops early
    sees a function of what all of them answer, whose number is fixed (Zhu, Dong and Wang 2022).
    """
    pure = pure_epsilon(queries, budget.neighbours) - budget.epsilon
    if any(query.noise == "gaussian" for query in queries):
        pure = inf
    return min(pure, noisy_excess(queries, budget)) if budget.delta > 0 else pure


def noisy_excess(queries: Sequence[Query], budget: Budget) -> float:
    """The excess of log δ over what the case that the queries are in may use."""
    if not queries or queries[0].sampling_rate == 1:
        return full_batch_log_delta(queries, budget.epsilon, budget.neighbours) - log(budget.delta)
    if len({replace(query, name="", grade="secure", count=1) for query in queries}) == 1:
        allowed = log(budget.delta) + log1p(-KEPT)
        return subsampled_log_delta(queries, budget.epsilon, budget.neighbours) - allowed
    return full_batch_log_delta(queries, budget.epsilon, budget.neighbours) - log(budget.delta * KEPT)
