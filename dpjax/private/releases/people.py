"""People with several rows: at most so many of each enter a sum, so that a promise is made to people."""

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Literal, NamedTuple

import numpy as np

from dpjax._util.validation import check_count, fail
from dpjax.mechanisms.privacy import Neighbours
from dpjax.private.noise import Secure
from dpjax.private.releases.records import Batch, Columns, Held, as_fields, check_plain, is_batch, read_batches
from dpjax.statistics import RecordStatistic

__all__ = ["EACH_RECORD", "People", "check_identifiers", "read_people", "read_rows_of_people"]

IDENTIFIERS = {"id", "ids", "uid", "uuid", "userid", "personid", "pid", "ssn"}
"""Names of columns that say whose a record is, in lower case; so do those that end in ``_id``."""


class People(NamedTuple):
    """Who is protected.

    Attributes
    ----------
    column
        The field or column that says whose a record is, or None if each record is another person's.
    max_rows
        How many rows of one person enter the sum at most.
    """

    column: str | None = None
    max_rows: int = 1

    @property
    def can_differ(self) -> bool:
        """Whether people can have different numbers of rows, which are confidential."""
        return self.max_rows > 1

    def sensitivity(self, statistic: RecordStatistic, norm: Literal[1, 2], neighbours: Neighbours) -> float:
        """How far one person can move the sum of a statistic.

        A person who is replaced by one with fewer rows moves it by whole contributions, too.
        """
        of_one = statistic.sensitivity(norm, neighbours)
        return self.max_rows * max(of_one, statistic.radius(norm)) if self.can_differ else of_one


EACH_RECORD = People()
"""Each record is another person's."""


def read_people(people: Any, max_rows: Any) -> People:
    """Who is protected, or an error if that is not clear."""
    if people is None:
        if max_rows is not None and max_rows != 1:
            remedy = "Pass people=, the column that tells people apart."
            fail("max_rows", max_rows, "1 or None, if people is None", remedy)
        return EACH_RECORD
    if not isinstance(people, str):
        remedy = "Pass the name of the column that says whose a record is."
        fail("people", repr(people), "the name of a column", remedy, error=TypeError)
    return People(people, check_count("max_rows", max_rows, "Say how many rows of one person enter the sum at most."))


def check_identifiers(names: Collection[str]) -> None:
    """Raise if a field looks as if it says whose a record is, as no one has said that people have one row each."""
    for name in names:
        if name.lower() in IDENTIFIERS or name.lower().endswith("_id"):
            remedy = f"Pass people={name!r} and max_rows=. If no person has two rows, pass max_rows=1 alone."
            fail("records", f"a column {name!r}", "people=, as one person may have several rows", remedy)


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
    if column not in names:
        fail("people", repr(column), f"one of the columns {names}", "Name the column that says whose a record is.")
    if isinstance(records, Mapping):
        rest = as_fields({name: leaf for name, leaf in records.items() if name != column}, columns)
        return rest, as_identifiers(records[column])
    rest = as_fields(records, columns or {name: name for name in names if name != column})
    return rest, as_identifiers(records[column].to_numpy())


def as_identifiers(leaf: Any) -> np.ndarray:
    """Identifiers [m] of any kind. Each entry of a list is one, whatever it holds, so that none raises an error."""
    check_plain(leaf)
    if not isinstance(leaf, (list, tuple)):
        return np.asanyarray(leaf)
    entries = np.empty(len(leaf), object)
    for place, one in enumerate(leaf):
        entries[place] = one
    return entries


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


def number_people(identifiers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A number for each person [m], and whether a row has an identifier [m]."""
    numbers: dict[str | None, int] = {}
    names = [name_of_person(one) for one in identifiers.tolist()]
    known = np.array([name is not None for name in names], bool)
    return np.array([numbers.setdefault(name, len(numbers)) for name in names], int), known


def name_of_person(one: Any) -> str | None:
    """What an entry calls a person, the same of 7, 7.0 and "7"; None if it is missing or cannot be read.

    It must raise no error before the charge, whatever the entry is.
    """
    try:
        if one is None or not bool(np.all(one == one)):
            return None
        own = one.item() if isinstance(one, np.generic) else one
        return str(int(own)) if isinstance(own, (int, float)) and own == int(own) else str(own)
    except Exception:  # as of the missing value of pandas, which is neither equal to itself nor not
        return None
