"""Who is protected: each record by itself, or people who have several rows."""

from collections.abc import Callable, Collection, Iterable
from typing import Any, Literal, NamedTuple
from uuid import UUID

import jax
import numpy as np

from dpjax._util.validation import check_count, check_function, describe, fail, name_of
from dpjax.mechanisms.privacy import Neighbours
from dpjax.private.columns import sort_of, type_name
from dpjax.private.entries import check_plain
from dpjax.statistics import RecordStatistic

__all__ = [
    "EACH_RECORD",
    "UNSAID",
    "People",
    "RowsOfPeople",
    "Unsaid",
    "check_column",
    "check_identifiers",
    "check_said",
    "choose_rows",
    "number_people",
    "read_identifiers",
    "read_people",
]


class Unsaid:
    """The default of ``people=``: nobody has said whose the rows are."""

    def __repr__(self) -> str:
        return "UNSAID"


UNSAID = Unsaid()

KINDS = ("numbers", "texts", "bytes", "unknown")
"""What columns of identifiers can hold."""
PLAIN = (bool, int, str, bytes, UUID)
"""Types of entries whose equality is that of their values, and of nothing else."""


MOST_ROWS = 100_000
"""The most rows of one person: each person is given room for all of them, whoever has fewer."""


class People(NamedTuple):
    """Who is protected.

    Attributes
    ----------
    column
        The field or column that says whose a record is, or None if each record is another person's.
    max_rows
        How many rows of one person enter the sum at most.
    normalise
        From an entry of the column to the identifier; None if entries are identifiers as they stand.
    """

    column: str | None = None
    max_rows: int = 1
    normalise: Callable[[Any], Any] | None = None

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


def read_people(people: Any, max_rows: Any, normalise: Any) -> People:
    """Who is protected, or an error if that is not clear."""
    if isinstance(people, str):
        if normalise is not None:
            check_function("normalise", normalise, "of one identifier")
        remedy = "Say how many rows of one person enter the sum at most."
        most = check_count("max_rows", max_rows, remedy, most=MOST_ROWS)
        return People(people, most, normalise)
    if people is not None and people is not UNSAID:
        remedy = "Pass the name of the column that says whose a record is, or None."
        fail("people", name_of(people), "the name of a column", remedy, error=TypeError)
    for argument, value in (("max_rows", max_rows), ("normalise", normalise)):
        if value is not None:
            remedy = "Pass people=, the column that tells people apart."
            fail(argument, f"{describe(value)}, without people=", "None", remedy)
    return EACH_RECORD


def check_said(people: Any, beside: str) -> None:
    """Raise if nobody has said whose rows are, beside what may say it, in words."""
    if people is UNSAID and beside:
        remedy = "Pass the column that says whose a row is, with max_rows=; or None, if each row is another person's."
        fail("people", f"nothing, beside {beside}", "people=", remedy)


def check_column(column: Any, names: Collection[Any]) -> None:
    """Raise unless the column that says whose a record is is there."""
    if column not in names:
        remedy = "Name the column that says whose a record is."
        fail("people", repr(column), f"one of the columns {list(names)}", remedy)


def check_identifiers(column: Any) -> None:
    """Raise unless a column can hold identifiers: by its type alone, whatever its entries are.

    A column of floats was perhaps made of whole numbers, of which floats do not tell large ones apart.
    """
    check_plain(column)
    if isinstance(column, np.ma.MaskedArray) or sort_of(column) not in KINDS:
        given = "a masked array" if isinstance(column, np.ma.MaskedArray) else f"a column of {type_name(column)}"
        remedy = "Read it as one of these from the start: a float does not tell large whole numbers apart."
        fail("people", given, "whole numbers or texts", remedy, error=TypeError)
    if (ndim := getattr(column, "ndim", 1)) != 1:
        remedy = "Name a column with one entry for each row."
        fail("people", f"a column with {ndim} axes", "one identifier for each row", remedy)


def read_identifiers(column: Any) -> list[Any]:
    """The entries [m] of a column of identifiers, each as it stands."""
    if hasattr(column, "to_pylist"):
        return list(column.to_pylist())
    if isinstance(column, jax.Array):
        column = np.asarray(column)
    return column.tolist() if isinstance(column, np.ndarray) and column.dtype != object else list(column)


def number_people(entries: Iterable[Any], people: People) -> tuple[np.ndarray, np.ndarray]:
    """A number for each person [m], and whether a row has an identifier [m]."""
    numbers: dict[Any, int] = {}
    identifiers = [identify(one, people.normalise) for one in entries]
    known = np.array([one is not None for one in identifiers], bool)
    return np.array([numbers.setdefault(one, len(numbers)) for one in identifiers], int), known


def identify(entry: Any, normalise: Callable[[Any], Any] | None) -> tuple[type, Any] | None:
    """The type and value by which an entry tells a person apart; None if it is missing or of no type that does.

    It depends on no other entry, and raises nothing, whatever the entry is. Floats are of no such type: NaN is a
    missing value, and 7.0 may have been another number.
    """
    try:
        own = entry if normalise is None else normalise(entry)
        own = own.item() if isinstance(own, np.generic) else own
    except Exception:  # whatever a function of the user's may raise
        return None
    return (type(own), own) if type(own) in PLAIN else None


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


def choose_rows(entries: Iterable[Any], people: People) -> RowsOfPeople:
    """At most `max_rows` rows of each person; rows without an identifier are left out.

    Which of a person's rows are chosen follows from how many there are alone, and depends on no other person.
    """
    codes, known = number_people(entries, people)
    order = np.lexsort((np.arange(len(codes)), codes))
    order = order[known[order]]
    owned = np.split(order, np.flatnonzero(np.diff(codes[order])) + 1) if len(order) else []
    places, is_row = np.zeros((len(owned), people.max_rows), int), np.zeros((len(owned), people.max_rows), bool)
    for person, rows in enumerate(owned):
        number = min(len(rows), people.max_rows)
        chosen = np.random.default_rng(len(rows)).choice(rows, number, replace=False)
        places[person], is_row[person, :number] = np.resize(np.sort(chosen), people.max_rows), True
    return RowsOfPeople(places, is_row)
