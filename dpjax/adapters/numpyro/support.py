"""The possible records of a NumPyro model whose fields have finitely many values."""

from math import prod
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dpjax.adapters.numpyro.trace import Layout, unwrap
from dpjax.base import Array, Records
from dpjax.models.record_noise import LARGEST_SUPPORT, list_places
from dpjax.numerics.cells import cells_at, count_cells

LARGEST_SUMMARY = 64
"""Largest number of possible records for which the likelihood uses counts."""


class Support(NamedTuple):
    """The possible values of each field, and all possible records, leading axis [c], in C order of the fields."""

    levels: dict[str, np.ndarray]
    records: dict[str, np.ndarray]

    @property
    def size(self) -> int:
        """The number c of possible records."""
        return prod(len(values) for values in self.levels.values())

    def list(self) -> Records:
        """The possible records, leading axis [c]."""
        return {name: jnp.asarray(values) for name, values in self.records.items()}

    def tally(self, records: Records) -> Array:
        """The count of each possible record [c]."""
        place = jnp.zeros((), int)
        for name, values in self.levels.items():
            place = place * len(values) + place_among(values, records[name])
        return count_cells(place, self.size)


def place_among(values: np.ndarray, given: Array) -> Array:
    """The place [n] of each given value [n] among the listed ones, which may be in any order."""
    whole = values.dtype.kind in "iu"
    if whole and np.all(np.diff(values) == 1):
        return (given - values[0]).astype(int)
    order = np.argsort(values)
    lower, upper = values[order][:-1], values[order][1:]
    half = (upper - lower) // 2 if whole else (upper - lower) / 2
    return jnp.asarray(order)[cells_at(given, jnp.asarray(upper - half))]


def find_support(layout: Layout) -> Support | None:
    """The possible records; None if there are too many to list."""
    levels = find_levels(layout)
    places = None if levels is None else list_places([len(values) for values in levels.values()])
    if levels is None or places is None:
        return None
    listed = zip(levels.items(), places, strict=True)
    return Support(levels, {name: values[place] for (name, values), place in listed})


def find_levels(layout: Layout) -> dict[str, np.ndarray] | None:
    """The possible values of each field; None if a field is a vector or has too many values."""
    levels: dict[str, np.ndarray | None] = {}

    def collect(name: str, distribution: Any, value: Array) -> None:
        levels[name] = values_of(distribution, value.dtype)

    layout.trace_fields(collect)
    return None if any(values is None for values in levels.values()) else levels  # type: ignore[return-value]


def values_of(distribution: Any, dtype: Any) -> np.ndarray | None:
    """The values of a discrete distribution, if they are few enough to list and the same for all records."""
    if distribution.event_shape or not distribution.has_enumerate_support:
        return None
    inner = unwrap(distribution)
    try:
        with jax.ensure_compile_time_eval():
            if width_of(inner.support) >= LARGEST_SUPPORT:
                return None
            return np.ravel(np.asarray(inner.enumerate_support(expand=False), dtype))
    except (NotImplementedError, jax.errors.JAXTypeError):
        # For instance a Binomial whose number of trials differs between records or is a parameter.
        return None


def width_of(support: Any) -> float:
    """The difference of the bounds of a support; 0 if it has none."""
    ends = [np.asarray(getattr(support, name, 0), float) for name in ("lower_bound", "upper_bound")]
    return float(np.max(ends[1]) - np.min(ends[0]))
