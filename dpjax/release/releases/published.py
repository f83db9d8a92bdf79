"""How far published numbers may be from those that were computed: the rounding of print and of floats."""

from typing import Any

import jax.numpy as jnp
import numpy as np

__all__ = ["print_error", "rounding"]

ROUNDINGS = 8
"""How many roundings of floats the computation of a number is taken for; matrices have as many for each column."""


def rounding(value: Any) -> float:
    """How far a computed number may be off, against the largest term: its floats are those given, or dpjax's own."""
    given = np.asarray(value).dtype
    kinds = [given] if given.kind == "f" else []
    return ROUNDINGS * max(float(np.finfo(kind).eps) for kind in [*kinds, jnp.result_type(float)])


def print_error(value: Any) -> float:
    """Half of the last decimal of published numbers [m], of the one with the most decimals; 0 if all are whole."""
    numbers = np.atleast_1d(np.asarray(value))
    if numbers.dtype.kind != "f":
        return 0.0
    decimals = max(len(np.format_float_positional(number, trim="-").partition(".")[2]) for number in numbers.ravel())
    return 10.0**-decimals / 2 if decimals else 0.0
