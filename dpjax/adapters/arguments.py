"""What readers of other tools' results have in common: the arguments of the call that published a number."""

from typing import Any

import numpy as np

from dpjax._util.validation import (
    LARGEST_NUMBER,
    check_array,
    check_count,
    check_number,
    describe,
    fail,
    read_numbers,
    shape_of,
)
from dpjax.base import Array
from dpjax.release import Release
from dpjax.release.checks import as_vector
from dpjax.release.releases.quantiles import interval_quantile
from dpjax.release.unknown_count import UnknownCount, read_number
from dpjax.statistics.base import as_floats

__all__ = [
    "Bounds",
    "as_names",
    "check_far_from_one",
    "quantile_within",
    "read_n",
    "read_range",
    "read_square",
    "read_value",
]

Bounds = tuple[float, float]

SAFE = 20.0
"""How many scales of noise the number of records is above 1 at least, so that a noisy count is hardly below 1."""


def read_range(bounds: Any) -> Bounds:
    """Two increasing numbers, or an error."""
    expected = "two increasing numbers (lower, upper)"
    remedy = "Pass bounds as they were given; bounds taken from the records cannot be used."
    numbers = () if bounds is None else read_numbers("bounds", bounds, expected, remedy).ravel().tolist()
    given = as_floats("bounds", numbers) if numbers and not isinstance(numbers[0], bool) else ()
    if len(given) != 2 or given[0] >= given[1]:
        fail("bounds", describe(bounds), expected, remedy)
    return given[0], given[1]


def as_names(argument: str, names: Any) -> tuple[str, ...]:
    """A list of different names as a tuple, or an error."""
    if not isinstance(names, (list, tuple)) or not names or not all(isinstance(name, str) for name in names):
        fail(argument, describe(names), "at least one name, as text", "Pass a list of texts.", error=TypeError)
    if len(set(names)) < len(names):
        fail(argument, describe(names), "names that differ", "Pass each once.")
    return tuple(names)


def read_n(n: Any, least: int = 1) -> int:
    """The public number of records, or an error: noise or bounds depend on it."""
    return check_count("n", n, "Pass the number of records: the noise or its bounds depend on it.", least=least)


def read_value(value: Any) -> Array:
    """One published number as a vector, or an error."""
    check_number("value", value)
    check_array("value", value, np.isfinite, "a finite number", "Pass the published number; NaN says nothing.")
    return as_vector("value", float(value), "Pass the published number.")


def read_square(value: Any) -> float:
    """The square of a published standard deviation, or an error."""
    check_number("value", value)
    expected, remedy = f"a number from 0 to {LARGEST_NUMBER:g}", "Pass the standard deviation."
    check_array("value", value, lambda array: (array >= 0) & (array <= LARGEST_NUMBER), expected, remedy)
    return float(value) ** 2


def quantile_within(value: Any, probability: Any, bounds: Any, n: Any, **options: Any) -> Release:
    """The release of a quantile drawn between bounds, for n records, with the other options of `interval_quantile`."""
    lower, upper = read_range(bounds)
    remedy = "Read several quantiles one by one, each with its part of epsilon, and pass them to dpjax.joint."
    for name, given in {"value": value, "probability": probability}.items():
        if isinstance(given, (list, tuple)) or getattr(given, "ndim", 0) != 0:
            fail(name, shape_of(given), "one number", remedy)
    return interval_quantile(value, probability, lower=lower, upper=upper, n=read_n(n), **options)


def check_far_from_one(n: Any, scale: float) -> None:
    """Raise if a sum may have been divided by 1 in the place of a noisy count below 1."""
    given = read_number(n)
    if (number := given.prior.bounds[0] if isinstance(given, UnknownCount) else given) < 1 + SAFE * scale:
        remedy = "With so much noise on so few records the noisy count may have been below 1: ask for it."
        fail("n", f"{number} records, noise of scale {scale:.3g}", f"at least {1 + SAFE * scale:.0f} records", remedy)
