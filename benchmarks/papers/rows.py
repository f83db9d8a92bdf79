"""A figure or table of a paper: the command that repeats it, and its numbers beside those of the run that is kept."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from benchmarks.experiments import Experiment, read

PAPERS = Path(__file__).parent

EQUAL, STATED, ORDER, ODDS = "equal within error", "as stated", "same order", "at odds"
UNDECIDED, UNTESTED, NONE = "undecided", "not tested", "no number printed"
"""The verdicts, which `judge` gives; the last is that of a figure to look at."""

KINDLY = (EQUAL, STATED, ORDER, UNTESTED, UNDECIDED, ODDS)
"""From the kindest to the worst."""

HIT, MISS = 2.0, 3.0
"""By how many standard errors a bound is kept at least, and by how many a number misses."""

MATTERS = 0.2
"""The share of the paper's number that matters, if nothing else is said."""

Kind = Literal["value", "at least", "at most", "ratio"]

Read = Callable[[dict[str, Any]], float]
"""A number of a result."""


def exactly(_: dict[str, Any]) -> float:
    """The error of a number that is counted or solved for, and not drawn."""
    return 0.0


def judge(ours: float, error: float | None, paper: float, kind: Kind = "value", matters: float | None = None) -> str:
    """The verdict on a number, by its standard error, and how large a difference matters.

    An error never turns a miss into a hit: what it leaves open is undecided. Without one nothing is tested, but a
    number that is off by more than a factor of two is at odds.
    """
    away = not min(0.5 * paper, 2 * paper) <= ours <= max(0.5 * paper, 2 * paper)
    kept = {"at least": ours - paper, "at most": paper - ours}.get(kind)
    if error is None:
        return ODDS if away and (kept is None or kept < 0) else UNTESTED
    if kept is not None:
        return STATED if kept >= HIT * error else ODDS if kept < -MISS * error else UNDECIDED
    if kind == "ratio" and abs(ours - 1) < HIT * error:
        return UNDECIDED
    if kind == "ratio" and (ours - 1) * (paper - 1) < 0:
        return ODDS
    if abs(ours - paper) > MISS * error:
        return ODDS if away else ORDER
    return EQUAL if error < (MATTERS * abs(paper) if matters is None else matters) / 2 else UNDECIDED


@dataclass(frozen=True)
class Number:
    """What a paper states of one number, and where it is in the result of a run.

    what, paper
        Its name and unit, and the paper's.
    read
        Ours.
    error
        The standard error of their difference, read from the result; None if it is not known, 0 if there is none.
    kind
        ``"value"``; ``"at least"`` or ``"at most"``, a bound that ours keeps or not; ``"ratio"``, for which it matters
        on which side of 1 it is.
    matters
        How large a difference matters; by default a fifth of the paper's number.
    """

    what: str
    paper: float
    read: Read
    error: Read | float | None = None
    kind: Kind = "value"
    matters: float | None = None

    def error_in(self, result: dict[str, Any]) -> float | None:
        """The standard error."""
        return self.error(result) if callable(self.error) else self.error

    def verdict(self, result: dict[str, Any]) -> str:
        """How the two compare."""
        return judge(self.read(result), self.error_in(result), self.paper, self.kind, self.matters)


@dataclass(frozen=True)
class Row:
    """One figure or table.

    place, first
        Its number in the paper, and in the paper's first version if that has another.
    package, name
        The experiment that repeats it: ``python -m benchmarks PACKAGE NAME``.
    shows
        What it shows.
    paper_size
        The size of the paper's own run, if it says.
    numbers
        What the paper states in numbers; what it only draws is in `looks`.
    looks
        Whether our figure looks alike, for what has no numbers.
    cause
        Why a number is at odds, or which causes were excluded.
    file
        The run that is kept, if not that of the experiment's name.
    """

    place: str
    package: str
    name: str
    shows: str
    numbers: tuple[Number, ...] = ()
    paper_size: str = ""
    looks: str = ""
    cause: str = ""
    first: str = ""
    file: str = ""

    @property
    def command(self) -> str:
        """What repeats it."""
        return f"python -m benchmarks {self.package} {self.name}"

    @property
    def path(self) -> Path:
        """The JSON file of the run that is kept."""
        return PAPERS / self.package / "results" / f"{self.file or self.name}.json"

    @property
    def experiment(self) -> Experiment:
        """The experiment, with the settings of its full size."""
        return read(self.package)[self.name]

    @property
    def result(self) -> dict[str, Any]:
        """The run that is kept."""
        return read_result(self.path)

    @property
    def verdicts(self) -> tuple[str, ...]:
        """That of each number."""
        return tuple(number.verdict(self.result) for number in self.numbers)

    @property
    def verdict(self) -> str:
        """The worst of its numbers'."""
        return max(self.verdicts, key=KINDLY.index, default=NONE)


@dataclass(frozen=True)
class Paper:
    """A paper, its rows, and what of it no command repeats, with the reason."""

    title: str
    rows: tuple[Row, ...]
    left_out: dict[str, str]


@cache
def read_result(path: Path) -> dict[str, Any]:
    """A result that is kept."""
    found: dict[str, Any] = json.loads(path.read_text())
    return found
