"""The possible records of a NumPyro model whose fields have finitely many values."""

from math import prod
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dpjax.adapters.numpyro.trace import SiteLayout, unwrap
from dpjax.base import Array, Records
from dpjax.models.record_noise import LARGEST_SUPPORT, list_places
from dpjax.numerics.cells import cells_at, count_cells

LARGEST_SUMMARY = 64
"""Largest number of possible records for which the likelihood uses counts."""


class SiteLevels(NamedTuple):
    """The possible values of a field as plain data."""

    name: str
    values: tuple[Any, ...]
    dtype: str

    @property
    def array(self) -> np.ndarray:
        """The values [levels]."""
        return np.asarray(self.values, self.dtype)


class SiteSupport(NamedTuple):
    """The possible values of each field, of which all possible records are made, in C order of the fields."""

    levels: tuple[SiteLevels, ...]

    @property
    def size(self) -> int:
        """The number c of possible records."""
        return prod(len(field.values) for field in self.levels)

    def list(self) -> Records:
        """The possible records, leading axis [c]."""
        places = list_places([len(field.values) for field in self.levels])
        assert places is not None
        return {field.name: jnp.asarray(field.array[place]) for field, place in zip(self.levels, places, strict=True)}

    def tally(self, records: Records) -> Array:
        """The count of each possible record [c]."""
        place = jnp.zeros((), int)
        for field in self.levels:
            place = place * len(field.values) + place_among(field.array, records[field.name])
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


def find_support(layout: SiteLayout) -> SiteSupport | None:
    """The possible records; None if there are too many to list."""
    found: dict[str, SiteLevels | None] = {}

    def collect(name: str, distribution: Any, value: Array) -> None:
        found[name] = levels_of(name, distribution, value.dtype)

    layout.trace_fields(collect)
    levels = tuple(field for field in found.values() if field is not None)
    is_listed = len(levels) == len(found) and SiteSupport(levels).size <= LARGEST_SUPPORT
    return SiteSupport(levels) if is_listed else None


def levels_of(name: str, distribution: Any, dtype: Any) -> SiteLevels | None:
    """The values of a discrete field, if they are few enough to list and the same for all records."""
    values = enumerate_values(distribution, dtype)
    return None if values is None else SiteLevels(name, tuple(values.tolist()), values.dtype.str)


def enumerate_values(distribution: Any, dtype: Any) -> np.ndarray | None:
    """The values of a discrete distribution, under the same conditions."""
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
