"""A figure or table of a paper: the command that repeats it, and its numbers beside those of the run that is kept."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from benchmarks.experiments import Experiment, read

PAPERS = Path(__file__).parent

EQUAL, STATED, ORDER, ODDS, NONE = "equal within error", "as stated", "same order", "at odds", "no number printed"
"""The verdicts. The first two say that all is well; the last is that of a figure to look at."""

ERRORS = 3.0
"""Numbers are equal if they differ by no more than so many standard errors."""

Read = Callable[[dict[str, Any]], float]
"""A number of a result."""


@dataclass(frozen=True)
class Number:
    """What a paper states of one number, and where it is in the result of a run.

    what, paper
        Its name and unit, and the paper's.
    read
        Ours.
    error
        The standard error of their difference; 0 if it is not known.
    kind
        ``"value"``; ``"at least"`` or ``"at most"``, a bound that ours keeps, within its error, or not; ``"ratio"``,
        for which it matters on which side of 1 it is.
    """

    what: str
    paper: float
    read: Read
    error: Read | float = 0.0
    kind: Literal["value", "at least", "at most", "ratio"] = "value"

    def verdict(self, result: dict[str, Any]) -> str:
        """How the two compare."""
        ours = self.read(result)
        error = self.error(result) if callable(self.error) else self.error
        if (self.kind == "at least" and ours >= self.paper) or (self.kind == "at most" and ours <= self.paper):
            return STATED
        if abs(ours - self.paper) <= ERRORS * error:
            return EQUAL
        if self.kind in ("at least", "at most"):
            return ODDS
        if self.kind == "ratio" and (ours - 1) * (self.paper - 1) < 0:
            return ODDS
        return ORDER if 0.5 * self.paper <= ours <= 2 * self.paper else ODDS


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
        return max(self.verdicts, key=(EQUAL, STATED, ORDER, ODDS).index, default=NONE)


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
