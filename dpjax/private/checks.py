"""Checks of the numbers that privacy rests on."""

from math import inf, isnan
from numbers import Real
from typing import Any

from dpjax.validation import check_positive, fail

__all__ = ["check_bound", "check_tau"]


SMALLEST_BOUND, LARGEST_BOUND = 1e-30, 1e30
"""Beyond, float32 does not hold what a contribution is of a bound."""


def check_bound(name: str, bound: Any, *, largest: float = LARGEST_BOUND) -> float:
    """The clip bound, or an error unless it is a positive number; infinite only if `largest` is."""
    if isinstance(bound, bool) or not isinstance(bound, Real) or isnan(bound):
        fail(name, type(bound).__name__, "a number above 0", "Pass one number.", error=TypeError)
    if largest == inf and bound == inf:
        return inf
    check_positive(name, float(bound), "Without a bound on one record's contribution there is no privacy.")
    if not SMALLEST_BOUND <= float(bound) <= LARGEST_BOUND:
        remedy = "Give parameters and log-likelihoods of order 1."
        fail(name, bound, f"a number from {SMALLEST_BOUND:g} to {LARGEST_BOUND:g}", remedy)
    return float(bound)


def check_tau(name: str, tau: Any) -> float:
    """The noise level, or an error unless it is a finite positive number."""
    if isinstance(tau, bool) or not isinstance(tau, Real):
        fail(name, type(tau).__name__, "a number above 0", "Pass one number.", error=TypeError)
    check_positive(name, float(tau), "Without noise there is no privacy; hmc and rwmh are the exact algorithms.")
    return float(tau)
