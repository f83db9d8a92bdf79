"""Targets whose records are people: all rows of a person are one record, so that a promise is made to people."""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.validation import fail, is_traced
from dpjax.base import Array
from dpjax.private.entries import silent
from dpjax.private.people import (
    RowsOfPeople,
    check_column,
    check_identifiers,
    choose_rows,
    read_identifiers,
    read_people,
)

__all__ = ["add_rows", "gather", "split_people"]


def split_people(records: Any, people: Any, max_rows: Any, normalise: Any) -> tuple[Any, RowsOfPeople | None]:
    """The records without the identifiers, and which are whose; None if each record is another person's."""
    protected = read_people(people, max_rows, normalise)
    if protected.column is None:
        return records, None
    if not (isinstance(records, Mapping) and all(isinstance(name, str) for name in records)):
        remedy = "Pass {name: array}, one of which says whose a record is."
        fail("records", f"a {type(records).__name__}", "a dict of arrays, with people=", remedy, error=TypeError)
    check_column(protected.column, records)
    column = records[protected.column]
    check_identifiers(column)
    rest = {name: leaf for name, leaf in records.items() if name != protected.column}
    check_length(len(column), rest)
    with silent():
        return rest, choose_rows(read_identifiers(column), protected)


def check_length(number: int, rest: Mapping[str, Any]) -> None:
    """Raise unless there is one identifier for each row."""
    if {np.shape(leaf)[:1] for leaf in jax.tree.leaves(dict(rest))} != {(number,)}:
        given, remedy = "another number of identifiers than of rows", "Name a column with one entry for each row."
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
