"""Confidential records, read after the charge: entry by entry, in the types that were fixed before.

Nothing that is read here shows before the charge, and no entry changes what another record contributes.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from dpjax._util.validation import fail, is_refusal
from dpjax.private.entries import read_column, silent
from dpjax.private.noise import Secure
from dpjax.private.people import People, number_people, read_identifiers
from dpjax.private.releases.layout import REMEDY, Field, ReleaseLayout, column_names, is_batch

__all__ = ["Batch", "charged", "read_batches", "select_rows"]


class Batch(NamedTuple):
    """Records that were read together.

    Attributes
    ----------
    fields
        Arrays [m, ...] by field, 0 in place of what the field's type does not hold, and in fields that are not read.
    is_readable : [m]
        Whether a record has nothing in it that was replaced.
    """

    fields: dict[str, np.ndarray]
    is_readable: np.ndarray


@contextmanager
def charged() -> Iterator[None]:
    """The one door to the records: in it nothing is warned of, and whatever is raised says that it was charged."""
    try:
        with silent():
            yield
    except Exception as error:
        if is_refusal(error):
            error.args = (f"{error} The ledger was charged.",)
            raise
        given, remedy = f"what raised {type(error).__name__} when it was read", "See the error above."
        try:
            fail("records", given, "records that can be read", f"{remedy} The ledger was charged.")
        except ValueError as refused:
            raise refused from error


def read_batches(records: Any, layout: ReleaseLayout, people: People, noise: Secure) -> Iterator[Batch]:
    """The records in batches, without empty ones, and with at most `max_rows` rows of each person.

    Parameters
    ----------
    records
        A dict of arrays or lists, anything with ``columns`` and ``[name].to_numpy()``, such as a pandas DataFrame, or
        an iterable of such batches, which is read once.
    layout
        The columns and types of fields, and which of them are read; others are 0.
    people
        Who is protected. People with several rows have all of them in one batch.
    noise
        The source of the numbers by which rows of people are chosen.

    Raises
    ------
    TypeError, ValueError
        If a batch is none, lacks a field, or has fields of unequal length.
    """
    for held in [records] if is_batch(records) else records:
        batch = read_batch(held, layout)
        if people.column is not None:
            batch = select_rows(batch, read_identifiers(held[people.column]), people, noise)
        if len(batch.is_readable):
            yield batch


def read_batch(held: Any, layout: ReleaseLayout) -> Batch:
    """The records of a batch."""
    if not is_batch(held):
        fail("records", f"a batch that is a {type(held).__name__}", "records by field", REMEDY, error=TypeError)
    names = column_names(held)
    if missing := [column for column in layout.columns if column not in names]:
        fail("records", f"a batch without {missing}", "all fields in every batch", "Give all batches the same fields.")
    read = {name: read_field(held, layout.fields[name]) for name in sorted(layout.read)}
    sizes = {len(values) for values, _ in read.values()}
    sizes |= {len(held[column]) for column in layout.columns} if isinstance(held, Mapping) else set()
    if len(sizes) > 1:
        remedy = "Give every field one entry for each record."
        fail("records", "fields of unequal length", "fields with one entry for each record", remedy)
    size = sizes.pop() if sizes else len(held)
    blank = {name: np.zeros((size, *one.shape), one.dtype) for name, one in layout.fields.items()}
    readable = np.all([np.ones(size, bool), *(is_readable for _, is_readable in read.values())], axis=0)
    return Batch(blank | {name: values for name, (values, _) in read.items()}, readable)


def read_field(held: Any, field: Field) -> tuple[np.ndarray, np.ndarray]:
    """The entries [m, ...] of a field, and which of them [m] are readable; of several columns each by itself."""
    if not isinstance(field.column, list):
        return read_column(held[field.column], field.dtype, field.shape, field.largest)
    parts = [read_column(held[column], field.dtype, (), field.largest) for column in field.column]
    values, readable = zip(*parts, strict=True)
    return np.stack(values, axis=1), np.all(readable, axis=0)


def select_rows(batch: Batch, entries: list[Any], people: People, noise: Secure) -> Batch:
    """At most `max_rows` rows of each person, chosen at random; rows without an identifier are unreadable.

    Which rows of a person are chosen depends on no other person.
    """
    if len(entries) != len(batch.is_readable):
        given = f"{people.column!r} with another number of entries than the other columns"
        fail("people", given, "one identifier for each row", "Name a column with one entry for each row.")
    codes, known = number_people(entries, people)
    order = np.lexsort((np.frombuffer(noise.keystream(8 * len(codes)), np.uint64), codes))
    in_order = codes[order]
    earlier = np.arange(len(codes)) - np.searchsorted(in_order, in_order)  # rows of the same person before this one
    chosen = np.sort(order[earlier < people.max_rows])
    return Batch({name: leaf[chosen] for name, leaf in batch.fields.items()}, (batch.is_readable & known)[chosen])
