"""At most so many rows of each person enter a sum, so that a promise is made to people."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from dpjax._util.validation import fail
from dpjax.private.noise import Secure
from dpjax.private.people import People, as_identifiers, check_column, number_people
from dpjax.private.releases.records import Batch, Columns, Held, as_fields, is_batch, read_batches

__all__ = ["read_rows_of_people"]


def read_rows_of_people(
    records: Any, columns: Columns | None, check_fields: Callable[[Any], None], people: People, noise: Secure
) -> Iterator[Batch]:
    """At most `max_rows` rows of each person, chosen at random.

    All rows are read at once: those of a person could be in several batches.
    """
    if not is_batch(records):
        remedy = "Pass all rows in one dict of arrays or DataFrame."
        fail("records", f"a {type(records).__name__}", "all rows at once, with people=", remedy, error=TypeError)
    rest, identifiers = split_identifiers(records, columns, people.column)
    for batch in read_batches(rest, None, check_fields):
        if identifiers.shape != batch.is_readable.shape:
            given = f"{people.column!r} of shape {list(identifiers.shape)}"
            fail("people", given, "one identifier for each row", "Name a column with one entry for each row.")
        yield select_rows(batch, identifiers, people.max_rows, noise)


def split_identifiers(records: Any, columns: Columns | None, column: str | None) -> tuple[Held, np.ndarray]:
    """The fields without the identifiers, and the identifiers [m]."""
    names = list(records) if isinstance(records, Mapping) else list(records.columns)
    check_column(column, names)
    if isinstance(records, Mapping):
        rest = as_fields({name: leaf for name, leaf in records.items() if name != column}, columns)
        return rest, as_identifiers(records[column])
    rest = as_fields(records, columns or {name: name for name in names if name != column})
    return rest, as_identifiers(records[column].to_numpy())


def select_rows(batch: Batch, identifiers: np.ndarray, max_rows: int, noise: Secure) -> Batch:
    """At most so many rows of each person, chosen at random; rows without an identifier are unreadable.

    Which rows of a person are chosen depends on no other person.
    """
    codes, known = number_people(identifiers)
    order = np.lexsort((np.frombuffer(noise.keystream(8 * len(codes)), np.uint64), codes))
    in_order = codes[order]
    earlier = np.arange(len(codes)) - np.searchsorted(in_order, in_order)  # rows of the same person before this one
    chosen = np.sort(order[earlier < max_rows])
    return Batch({name: leaf[chosen] for name, leaf in batch.fields.items()}, (batch.is_readable & known)[chosen])
