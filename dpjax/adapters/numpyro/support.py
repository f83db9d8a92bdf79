"""Every possible record, where the fields of a NumPyro model have finitely many values."""

from math import prod
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dpjax.adapters.numpyro.visit import Layout, unwrap
from dpjax.base import Array, Records
from dpjax.models.record_noise import LARGEST_SUPPORT, list_places
from dpjax.numerics.cells import count_cells

LARGEST_SUMMARY = 64
"""Up to this many possible records, counts stand for the records in the likelihood of the parameters."""


class Support(NamedTuple):
    """The possible values of each field, and all records made of them, leading axis [c], the last field fastest."""

    levels: dict[str, np.ndarray]
    records: dict[str, np.ndarray]

    @property
    def size(self) -> int:
        """The number c of possible records."""
        return prod(len(values) for values in self.levels.values())

    def list(self) -> Records:
        """Every possible record."""
        return {name: jnp.asarray(values) for name, values in self.records.items()}

    def tally(self, records: Records) -> Array:
        """How often each possible record occurs [c]."""
        place = jnp.zeros((), int)
        for name, values in self.levels.items():
            place = place * len(values) + (records[name] - values[0]).astype(int)
        return count_cells(place, self.size)


def find_support(layout: Layout) -> Support | None:
    """The possible records; None where there are too many to list."""
    levels = find_levels(layout)
    places = None if levels is None else list_places([len(values) for values in levels.values()])
    if levels is None or places is None:
        return None
    listed = zip(levels.items(), places, strict=True)
    return Support(levels, {name: values[place] for (name, values), place in listed})


def find_levels(layout: Layout) -> dict[str, np.ndarray] | None:
    """The possible values of each field; None where one has a vector of them, or infinitely many."""
    levels: dict[str, np.ndarray | None] = {}

    def look(name: str, law: Any, value: Array) -> None:
        levels[name] = values_of(law, value.dtype)

    layout.watch_fields(look)
    return None if any(values is None for values in levels.values()) else levels  # type: ignore[return-value]


def values_of(law: Any, kind: Any) -> np.ndarray | None:
    """The values of a single discrete number, if they are not too many to list and the same for all records."""
    if law.event_shape or not law.has_enumerate_support:
        return None
    inner = unwrap(law)
    try:
        with jax.ensure_compile_time_eval():
            if span(inner.support) >= LARGEST_SUPPORT:
                return None
            return np.ravel(np.asarray(inner.enumerate_support(expand=False), kind))
    except (NotImplementedError, jax.errors.JAXTypeError):
        # Such as a Binomial whose number of trials differs between records or is a parameter.
        return None


def span(support: Any) -> float:
    """How far the possible values reach; 0 where they are told otherwise than by bounds."""
    ends = [np.asarray(getattr(support, name, 0), float) for name in ("lower_bound", "upper_bound")]
    return float(np.max(ends[1]) - np.min(ends[0]))
