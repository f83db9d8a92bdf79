"""Checks of the numbers that privacy rests on."""

from math import inf, isnan
from numbers import Real
from typing import Any

from dpjax.validation import check_positive, fail

__all__ = ["check_bound", "check_tau"]


def check_bound(name: str, bound: Any, *, largest: float = 0.0) -> None:
    """Raise unless a clip bound is a positive number; finite unless `largest` is infinite."""
    if largest == inf and isinstance(bound, Real) and bound == inf:
        return
    if not isinstance(bound, Real) or isnan(bound):
        fail(name, type(bound).__name__, "a number above 0", "Pass one number.", error=TypeError)
    check_positive(name, float(bound), "Without a bound on one record's contribution there is no privacy.")


def check_tau(name: str, tau: Any) -> None:
    """Raise unless a noise level is a finite positive number."""
    if not isinstance(tau, Real):
        fail(name, type(tau).__name__, "a number above 0", "Pass one number.", error=TypeError)
    check_positive(name, float(tau), "Without noise there is no privacy; hmc and rwmh are the exact algorithms.")
