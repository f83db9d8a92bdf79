"""The numbers next to one on either side, where processors take the smallest numbers for 0, and those near others."""

from typing import Any

import numpy as np

__all__ = ["next_above", "next_below", "where_near"]


def next_below(number: Any, dtype: Any) -> Any:
    """The largest number of a float type below each number; those so small that they count as 0 are passed over."""
    kind = np.dtype(dtype).type
    held = np.asarray(number, kind)
    below = np.asarray(np.minimum(np.nextafter(held, kind(-np.inf)), held - np.finfo(kind).tiny), float)
    return below if below.ndim else below.item()


def next_above(number: Any, dtype: Any) -> Any:
    """The smallest number of a float type above each number; those so small that they count as 0 are passed over."""
    return -next_below(-number, dtype)


def where_near(value: np.ndarray, target: Any, error: np.ndarray) -> np.ndarray:
    """The target if the value [d] is within its error [d] of it, else the value."""
    return np.where(np.abs(value - target) <= error, target, value)
