"""The possible records of a NumPyro model whose fields have finitely many values."""

from typing import Any

import jax
import numpy as np

from dpjax.adapters.numpyro.trace import SiteLayout, unwrap
from dpjax.base import Array
from dpjax.domain import LARGEST_DOMAIN, Domain, LevelNumbers

LARGEST_SUMMARY = 64
"""Largest number of possible records for which the likelihood uses counts."""


def find_domain(layout: SiteLayout) -> Domain | None:
    """The domain of the records; None if there are too many to list."""
    found: dict[str, LevelNumbers | None] = {}

    def collect(name: str, distribution: Any, value: Array) -> None:
        found[name] = numbers_of(distribution, value.dtype)

    layout.trace_fields(collect)
    domain = domain_of_levels({name: numbers for name, numbers in found.items() if numbers is not None})
    return domain if len(domain.fields) == len(found) and domain.size <= LARGEST_DOMAIN else None


def domain_of_levels(found: dict[str, LevelNumbers]) -> Domain:
    """The domain of fields with these numbers."""
    sizes = tuple(len(field.numbers) for field in found.values())
    return Domain(tuple(found), sizes, numbers=tuple(found.values()))


def numbers_of(distribution: Any, dtype: Any) -> LevelNumbers | None:
    """The numbers of a discrete field, if they are few enough to list and the same for all records."""
    values = enumerate_values(distribution, dtype)
    return None if values is None else LevelNumbers(tuple(values.tolist()), values.dtype.str)


def enumerate_values(distribution: Any, dtype: Any) -> np.ndarray | None:
    """The values of a discrete distribution, under the same conditions."""
    if distribution.event_shape or not distribution.has_enumerate_support:
        return None
    inner = unwrap(distribution)
    try:
        with jax.ensure_compile_time_eval():
            if width_of(inner.support) >= LARGEST_DOMAIN:
                return None
            return np.ravel(np.asarray(inner.enumerate_support(expand=False), dtype))
    except (NotImplementedError, jax.errors.JAXTypeError):
        # For instance a Binomial whose number of trials differs between records or is a parameter.
        return None


def width_of(support: Any) -> float:
    """The difference of the bounds of a support; 0 if it has none."""
    ends = [np.asarray(getattr(support, name, 0), float) for name in ("lower_bound", "upper_bound")]
    return float(np.max(ends[1]) - np.min(ends[0]))
