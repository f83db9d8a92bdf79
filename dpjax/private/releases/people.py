"""At most so many rows of each person enter a sum, so that a promise is made to people."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from dpjax._util.validation import fail
from dpjax.private.noise import Secure
from dpjax.private.people import People, check_column, check_identifiers, number_people, read_identifiers
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
    rest, column = split_identifiers(records, columns, people.column)
    check_identifiers(column)
    entries = read_identifiers(column)
    for batch in read_batches(rest, None, check_fields):
        if len(entries) != len(batch.is_readable):
            given = f"{people.column!r} with another number of entries than the other columns"
            fail("people", given, "one identifier for each row", "Name a column with one entry for each row.")
        yield select_rows(batch, entries, people, noise)


def split_identifiers(records: Any, columns: Columns | None, column: str | None) -> tuple[Held, Any]:
    """The fields without the identifiers, and the column of these."""
    names = list(records) if isinstance(records, Mapping) else list(records.columns)
    check_column(column, names)
    if isinstance(records, Mapping):
        return as_fields({name: leaf for name, leaf in records.items() if name != column}, columns), records[column]
    return as_fields(records, columns or {name: name for name in names if name != column}), records[column]


def select_rows(batch: Batch, entries: list[Any], people: People, noise: Secure) -> Batch:
    """At most `max_rows` rows of each person, chosen at random; rows without an identifier are unreadable.

    Which rows of a person are chosen depends on no other person.
    """
    codes, known = number_people(entries, people)
    order = np.lexsort((np.frombuffer(noise.keystream(8 * len(codes)), np.uint64), codes))
    in_order = codes[order]
    earlier = np.arange(len(codes)) - np.searchsorted(in_order, in_order)  # rows of the same person before this one
    chosen = np.sort(order[earlier < people.max_rows])
    return Batch({name: leaf[chosen] for name, leaf in batch.fields.items()}, (batch.is_readable & known)[chosen])
