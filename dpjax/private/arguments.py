"""Checks of arguments that may be of another kind altogether."""

from math import inf
from numbers import Real
from typing import Any

from dpjax.validation import fail

__all__ = ["check_not_negative", "check_real"]


def check_real(name: str, value: Any) -> float:
    """The value as a float, or an error unless it is one real number."""
    if isinstance(value, bool) or not isinstance(value, Real):
        given = f"{value!r} of type {type(value).__name__}"
        fail(name, given, "one number", "Pass a single number.", error=TypeError)
    return float(value)


def check_not_negative(name: str, value: Any) -> None:
    """Raise unless a value is a finite number that is not negative."""
    if not 0 <= check_real(name, value) < inf:
        fail(name, value, "a finite number >= 0", "Pass a number that is not negative.")
