"""Checks of arguments of any type."""

from math import inf
from numbers import Real
from typing import Any

from dpjax._util.validation import check_positive, describe, fail, is_traced, read_numbers
from dpjax.private.targets.target import Target

__all__ = [
    "check_bound",
    "check_noise",
    "check_not_negative",
    "check_numbers",
    "check_real",
    "check_target",
    "check_tau",
]


SMALLEST_BOUND, LARGEST_BOUND = 1e-30, 1e30
"""Range of clip bounds; beyond, the ratio of a contribution to the bound is not a float32."""


def check_real(name: str, value: Any) -> float:
    """The value as a float, or an error unless it is one real number."""
    if isinstance(value, bool) or not isinstance(value, Real):
        given = f"{describe(value)} of type {type(value).__name__}"
        fail(name, given, "one number", "Pass a single number.", error=TypeError)
    try:
        return float(value)
    except OverflowError:
        return fail(name, "a number beyond the range of floats", "one that a float holds", "Pass a smaller number.")


def check_not_negative(name: str, value: Any) -> None:
    """Raise unless a value is a finite number that is not negative."""
    if not 0 <= check_real(name, value) < inf:
        fail(name, value, "a finite number >= 0", "Pass a number that is not negative.")


def check_numbers(name: str, value: Any) -> None:
    """Raise unless a value is a number or an array of numbers, so that its range can be checked."""
    if is_traced(value):
        return
    remedy = "Pass one number, or one for each coordinate."
    if read_numbers(name, value, "numbers", remedy).dtype.kind not in "iuf":
        fail(name, f"{value!r} of type {type(value).__name__}", "numbers", remedy, error=TypeError)


def check_target(name: str, target: Any) -> None:
    """Raise unless it is a target."""
    if not isinstance(target, Target):
        remedy = "Build it with private.target, private.model_target or private.numpyro_target."
        fail(name, f"a {type(target).__name__}", "a dpjax.private.Target", remedy, error=TypeError)


def check_noise(noise: Any) -> None:
    """Raise unless it is a source of noise."""
    if isinstance(noise, type) or not all(callable(getattr(noise, name, None)) for name in ("release", "query")):
        remedy = "Pass private.noise.secure for draws that are published, and private.noise.jax for simulations."
        fail("noise", repr(noise), "a source of noise", remedy, error=TypeError)


def check_bound(name: str, bound: Any, *, largest: float = LARGEST_BOUND) -> float:
    """The clip bound, or an error unless it is a positive number; infinite only if `largest` is."""
    number = check_real(name, bound)
    if largest == inf and number == inf:
        return inf
    check_positive(name, number, "Without a bound on one record's contribution there is no privacy.")
    if not SMALLEST_BOUND <= number <= LARGEST_BOUND:
        remedy = "Give parameters and log-likelihoods of order 1."
        fail(name, bound, f"a number from {SMALLEST_BOUND:g} to {LARGEST_BOUND:g}", remedy)
    return number


def check_tau(name: str, tau: Any) -> float:
    """The noise level, or an error unless it is a finite positive number."""
    level = check_real(name, tau)
    check_positive(name, level, "Without noise there is no privacy; hmc and rwmh are the exact algorithms.")
    return level
