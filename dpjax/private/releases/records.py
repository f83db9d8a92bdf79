"""Confidential records, read after the charge: entry by entry, in the types that were fixed before.

Nothing that is read here shows before the charge, and no entry changes what another record contributes.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from dpjax._util.validation import fail, is_refusal
from dpjax.private.columns import column_names, is_table
from dpjax.private.entries import read_column, silent
from dpjax.private.noise import Secure
from dpjax.private.people import People, number_people, read_identifiers
from dpjax.private.releases.layout import REMEDY, Field, ReleaseLayout

__all__ = ["Batch", "charged", "read_batches", "select_rows"]


class Batch(NamedTuple):
    """Records that were read together.

    Attributes
    ----------
    fields
        Arrays [m, ...] by field, with its fixed value in place of each entry that is none, and in fields that are not
        read.
    is_readable : [m]
        Whether a record has nothing in it that was replaced.
    num_left_out
        How many records without an identifier are not among them.
    """

    fields: dict[str, np.ndarray]
    is_readable: np.ndarray
    num_left_out: int = 0


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
        A dict of arrays or lists, a table of pandas, polars or pyarrow, or an iterable of such batches, which is read
        once.
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
    for held in [records] if is_table(records) else records:
        batch = read_batch(held, layout)
        if people.column is not None:
            identifiers = read_identifiers(held[people.column])
            batch = select_rows(batch, identifiers, people, noise, layout.fixed)
        if len(batch.is_readable):
            yield batch


def read_batch(held: Any, layout: ReleaseLayout) -> Batch:
    """The records of a batch."""
    if not is_table(held):
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
    blank = {name: np.broadcast_to(one, (size, *one.shape)) for name, one in layout.fixed.items()}
    readable = np.all([np.ones(size, bool), *(is_readable for _, is_readable in read.values())], axis=0)
    return Batch(blank | {name: values for name, (values, _) in read.items()}, readable)


def read_field(held: Any, field: Field) -> tuple[np.ndarray, np.ndarray]:
    """The entries [m, ...] of a field, with fixed values for some, and which [m] have none; columns each by itself."""
    if isinstance(field.column, list):
        part = field.reading._replace(shape=())
        parts = [read_column(held[column], part) for column in field.column]
        values, is_held = (np.stack(one, axis=1) for one in zip(*parts, strict=True))
    else:
        values, is_held = read_column(held[field.column], field.reading)
    return np.where(is_held, values, field.stand_in), np.all(is_held, axis=tuple(range(1, is_held.ndim)))


def select_rows(
    batch: Batch, entries: list[Any], people: People, noise: Secure, fixed: Mapping[str, np.ndarray]
) -> Batch:
    """At most `max_rows` rows of each person, chosen at random.

    Which rows of a person are chosen depends on no other person. A row without an identifier is left out if the number
    of rows is confidential. Else it counts as another person's, of which nothing can be read.
    """
    if len(entries) != len(batch.is_readable):
        given = f"{people.column!r} with another number of entries than the other columns"
        fail("people", given, "one identifier for each row", "Name a column with one entry for each row.")
    codes, known = number_people(entries, people)
    order = np.lexsort((np.frombuffer(noise.random_bytes(8 * len(codes)), np.uint64), codes))
    in_order = codes[order]
    earlier = np.arange(len(codes)) - np.searchsorted(in_order, in_order)  # rows of the same person before this one
    is_chosen = np.zeros(len(codes), bool)
    is_chosen[order] = earlier < people.max_rows
    chosen = np.flatnonzero(is_chosen & known if people.can_differ else is_chosen | ~known)
    has_one = known[chosen]
    fields = {
        name: np.where(np.reshape(has_one, (-1, *[1] * fixed[name].ndim)), leaf[chosen], fixed[name])
        for name, leaf in batch.fields.items()
    }
    return Batch(fields, batch.is_readable[chosen] & has_one, int(np.sum(~known)) if people.can_differ else 0)
