"""Who is protected: each record by itself, or people who have several rows."""

from collections.abc import Collection
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.validation import check_count, fail, is_traced
from dpjax.mechanisms.privacy import Neighbours
from dpjax.statistics import RecordStatistic

__all__ = [
    "EACH_RECORD",
    "People",
    "RowsOfPeople",
    "as_identifiers",
    "check_column",
    "check_identifiers",
    "check_plain",
    "choose_rows",
    "number_people",
    "read_people",
]

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
    if people is not None and not isinstance(people, str):
        remedy = "Pass the name of the column that says whose a record is."
        fail("people", repr(people), "the name of a column", remedy, error=TypeError)
    if people is None and max_rows is None:
        return EACH_RECORD
    most = check_count("max_rows", max_rows, "Say how many rows of one person enter the sum at most.")
    if people is None and most > 1:
        remedy = "Pass people=, the column that tells people apart."
        fail("max_rows", most, "1 or None, if people is None", remedy)
    return People(people, most)


def check_identifiers(names: Collection[str]) -> None:
    """Raise if a field looks as if it says whose a record is, as no one has said that people have one row each."""
    for name in names:
        if name.lower() in IDENTIFIERS or name.lower().endswith("_id"):
            remedy = f"Pass people={name!r} and max_rows=. If no person has two rows, pass max_rows=1 alone."
            fail("records", f"a column {name!r}", "people=, as one person may have several rows", remedy)


def check_column(column: Any, names: Collection[Any]) -> None:
    """Raise unless the column that says whose a record is is there."""
    if column not in names:
        remedy = "Name the column that says whose a record is."
        fail("people", repr(column), f"one of the columns {list(names)}", remedy)


def check_plain(leaf: Any) -> None:
    """Raise if a field is traced, or holds keys."""
    if is_traced(leaf):
        fail("records", "traced arrays", "arrays", "Release outside of jax.jit and jax.vmap.", error=TypeError)
    if isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        fail("records", "an array of keys", "numbers", "Pass the records themselves.", error=TypeError)


def as_identifiers(leaf: Any) -> np.ndarray:
    """Identifiers [m] of any kind. Each entry of a list is one, whatever it holds, so that none raises an error."""
    check_plain(leaf)
    if not isinstance(leaf, (list, tuple)):
        return np.asanyarray(leaf)
    entries = np.empty(len(leaf), object)
    for place, one in enumerate(leaf):
        entries[place] = one
    return entries


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


class RowsOfPeople(NamedTuple):
    """Which rows of a table are whose.

    Attributes
    ----------
    places : [people, max_rows]
        The rows of each person; a row of the same person stands in for each that the person lacks.
    is_row : [people, max_rows]
        Whether it is a row of its own.
    """

    places: np.ndarray
    is_row: np.ndarray


def choose_rows(identifiers: np.ndarray, max_rows: int) -> RowsOfPeople:
    """At most so many rows of each person; rows without an identifier are left out.

    Which of a person's rows are chosen follows from how many there are alone, and depends on no other person.
    """
    codes, known = number_people(identifiers)
    order = np.lexsort((np.arange(len(codes)), codes))
    order = order[known[order]]
    people = np.split(order, np.flatnonzero(np.diff(codes[order])) + 1) if len(order) else []
    places, is_row = np.zeros((len(people), max_rows), int), np.zeros((len(people), max_rows), bool)
    for person, rows in enumerate(people):
        number = min(len(rows), max_rows)
        chosen = np.random.default_rng(len(rows)).choice(rows, number, replace=False)
        places[person], is_row[person, :number] = np.resize(np.sort(chosen), max_rows), True
    return RowsOfPeople(places, is_row)
