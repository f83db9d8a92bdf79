"""Targets whose records are people: all rows of a person are one record, so that a promise is made to people."""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.validation import fail, is_traced
from dpjax.base import Array
from dpjax.private.people import (
    RowsOfPeople,
    as_identifiers,
    check_column,
    check_identifiers,
    choose_rows,
    read_people,
)

__all__ = ["add_rows", "gather", "split_people"]


def split_people(records: Any, people: Any, max_rows: Any) -> tuple[Any, RowsOfPeople | None]:
    """The records without the identifiers, and which are whose; None if each record is another person's."""
    protected = read_people(people, max_rows)
    is_named = isinstance(records, Mapping) and all(isinstance(name, str) for name in records)
    if protected.column is None:
        if max_rows is None and is_named:
            check_identifiers(records)
        return records, None
    if not is_named:
        remedy = "Pass {name: array}, one of which says whose a record is."
        fail("records", f"a {type(records).__name__}", "a dict of arrays, with people=", remedy, error=TypeError)
    check_column(protected.column, records)
    identifiers = as_identifiers(records[protected.column])
    rest = {name: leaf for name, leaf in records.items() if name != protected.column}
    check_shape(identifiers, rest)
    return rest, choose_rows(identifiers, protected.max_rows)


def check_shape(identifiers: np.ndarray, rest: Mapping[str, Any]) -> None:
    """Raise unless there is one identifier for each row."""
    lengths = {np.shape(leaf)[:1] for leaf in jax.tree.leaves(dict(rest))}
    if lengths != {identifiers.shape}:
        given, remedy = f"identifiers of shape {list(identifiers.shape)}", "Name a column with one entry for each row."
        fail("people", given, f"one for each row of fields {sorted(rest)}", remedy)


def add_rows(log_likelihood: Callable[[Any, Any], Array]) -> Callable[[Any, Any], Array]:
    """The log-density of one person, whose rows are added up before anything is clipped, from that of one row."""

    def of_person(parameters: Any, person: Any) -> Array:
        densities = jax.vmap(log_likelihood, (None, 0))(parameters, person["rows"])
        return jnp.sum(jnp.where(person["is_row"], densities, 0.0))

    return of_person


def gather(records: Any, rows: RowsOfPeople) -> Any:
    """The records of each person, with leading axes [people, max_rows]."""
    held = jax.tree.map(lambda leaf: (leaf if is_traced(leaf) else np.asarray(leaf))[rows.places], records)
    return {"rows": held, "is_row": rows.is_row}
