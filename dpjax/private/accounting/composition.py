"""The joint privacy cost of queries on the same records."""

from collections.abc import Sequence
from math import exp, inf, log, sqrt

import scipy

from dpjax._util.spelling import names_arguments
from dpjax._util.validation import check_count, check_positive, fail
from dpjax.mechanisms.privacy import Neighbours
from dpjax.private.accounting import closed_form, events
from dpjax.private.accounting.privacy_filter import excess
from dpjax.private.accounting.query import Budget, Query
from dpjax.private.arguments import check_real

__all__ = ["check_gaussian", "composed_epsilon", "composed_log_delta", "composed_mu", "noise_multiplier_for"]

ROUNDING = 1e-14
PRECISION = 1e-4
"""Precision of the logarithm of a noise multiplier whose cost is slow to compute."""


def composed_log_delta(queries: Sequence[Query], epsilon: float, neighbours: Neighbours) -> float:
    """log δ at ε of queries fixed beforehand: by the closed form, or from above if any is subsampled or pure.

    The ε of Laplace queries adds to that of the others; or they count as Gaussian ones.
    """
    others = without_pure(queries)
    left = epsilon - events.pure_epsilon(queries, neighbours)
    if not others:
        return -inf if left >= 0 else events.full_batch_log_delta(queries, epsilon, neighbours)
    apart = noisy_log_delta(others, left, neighbours) if left >= 0 else 0.0
    return min(apart, events.full_batch_log_delta(queries, epsilon, neighbours))


def noisy_log_delta(queries: Sequence[Query], epsilon: float, neighbours: Neighbours) -> float:
    """log δ at ε of Gaussian queries."""
    if any(query.sampling_rate < 1 for query in queries):
        return events.subsampled_log_delta(queries, epsilon, neighbours)
    return events.full_batch_log_delta(queries, epsilon, neighbours)


def composed_epsilon(queries: Sequence[Query], delta: float, neighbours: Neighbours) -> float:
    """ε at δ of queries fixed beforehand: by the closed form, or from above if any is subsampled or pure."""
    others, pure = without_pure(queries), events.pure_epsilon(queries, neighbours)
    if delta == 0:
        return inf if others else pure
    apart = pure + noisy_epsilon(others, delta, neighbours)
    return min(apart, closed_form.epsilon(delta, composed_mu(queries, neighbours))) if pure else apart


def noisy_epsilon(queries: Sequence[Query], delta: float, neighbours: Neighbours) -> float:
    """ε at δ of Gaussian queries."""
    if any(query.sampling_rate < 1 for query in queries):
        return events.subsampled_epsilon(queries, delta, neighbours)
    return closed_form.epsilon(delta, composed_mu(queries, neighbours))


def without_pure(queries: Sequence[Query]) -> list[Query]:
    """The queries with Gaussian noise."""
    return [query for query in queries if query.noise == "gaussian"]


def composed_mu(queries: Sequence[Query], neighbours: Neighbours) -> float:
    """The mean privacy loss Σ Δ² / (2σ²) of full-batch queries (Theorem 2.4), Laplace ones as Gaussian ones."""
    return events.full_batch_mu(queries, neighbours)


def check_gaussian(name: str, budget: Budget) -> None:
    """Raise unless a budget allows Gaussian noise."""
    if budget.delta == 0:
        remedy = "Pass a δ above 0; private.release has Laplace noise."
        fail(name, budget, "one with δ > 0, as Gaussian noise needs", remedy)


@names_arguments
def noise_multiplier_for(budget: Budget, num_queries: int, *, sampling_rate: float) -> float:
    """The least noise multiplier with which a ledger of a budget allows `num_queries` queries.

    Parameters
    ----------
    budget
        What the queries may spend together.
    num_queries
        How many there are, over all chains.
    sampling_rate
        The probability with which each record takes part in one; 1 for all records, for which the closed form answers.
        Otherwise the answer comes from dp_accounting in some seconds, and is from above within one in a thousand.

    Raises
    ------
    TypeError, ValueError
        If an argument is out of range.

    Examples
    --------
    >>> import dpjax
    >>> budget = dpjax.private.Budget(epsilon=1.0, delta=1e-5, neighbours="replace-one")
    >>> dpjax.private.noise_multiplier_for(budget, num_queries=10, sampling_rate=1.0)
    23.6
    """
    if not isinstance(budget, Budget):
        fail("budget", repr(budget), "a dpjax.private.Budget", "State ε, δ and the neighbours.", error=TypeError)
    check_gaussian("budget", budget)
    count = check_count("num_queries", num_queries)
    check_positive("sampling_rate", check_real("sampling_rate", sampling_rate))
    step = closed_form.sensitivity(1.0, budget.neighbours)
    full = step * sqrt(count / (2 * closed_form.largest_mu(budget.epsilon, budget.delta)))

    def over(log_multiplier: float) -> float:
        return excess([Query("query", exp(log_multiplier), "secure", count, sampling_rate)], budget)

    if sampling_rate == 1:
        return full * (1 + ROUNDING)
    high = low = log(full) + 0.1  # subsampling only lowers it, but its cost is computed from above
    while over(low) <= 0:
        high, low = low, low - log(2)
    return exp(scipy.optimize.brentq(over, low, high, xtol=PRECISION) + 2 * PRECISION)
