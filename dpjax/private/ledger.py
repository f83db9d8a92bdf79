"""The record of every noisy query made of one set of records, and what they cost together."""

import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from math import log
from pathlib import Path
from threading import RLock
from typing import Any, NamedTuple

from dpjax.mechanisms.privacy import Neighbours
from dpjax.private.budget import Budget
from dpjax.private.composition import composed_epsilon, composed_log_delta
from dpjax.private.query import Grade, Query, total
from dpjax.private.search import largest_count, nearly_largest_count
from dpjax.validation import check_count, fail

FORMAT = 1


class PrivacySpent(NamedTuple):
    """What the queries so far cost: they are (ε, δ)-DP under the relation named.

    The grade is ``"simulation-grade"`` as soon as one query's noise was: the numbers then describe what the run would
    promise with noise fit for it, and nothing is promised. It is None before the first query.
    """

    epsilon: float
    delta: float
    neighbours: Neighbours
    grade: Grade | None
    num_queries: int


class BudgetExceeded(RuntimeError):
    """A query was refused, before it was made, because the budget does not allow it."""


class Ledger:
    """Every noisy query made of one set of records, charged before it is made.

    A ledger changes in one way only: `charge` adds queries, and nothing takes them away. Whatever reads the same
    records (chains, restarts, pilots, other algorithms) is charged to the same ledger, one after the other.

    Parameters
    ----------
    budget
        The promise that no charge may break.
    path
        A file that holds the ledger, so that the budget survives the process. If it exists, its queries count and its
        budget must be this one. Each charge is on disk before `charge` returns. One run at a time may use it.

    Raises
    ------
    TypeError, ValueError
        If the budget is none, or the file is not a ledger of this budget.

    Notes
    -----
    Full-batch Gaussian queries are composed by the closed form of `accounting`. As soon as one query is subsampled,
    the privacy loss distributions of dp_accounting compose them all, from above.
    """

    def __init__(self, budget: Budget, path: str | os.PathLike[str] | None = None) -> None:
        if not isinstance(budget, Budget):
            fail("budget", repr(budget), "a dpjax.private.Budget", "State ε, δ and the neighbours.", error=TypeError)
        self._budget = budget
        self._path = None if path is None else Path(path)
        self._lock = RLock()
        self._queries = self._on_disk()

    @property
    def budget(self) -> Budget:
        """The promise that no charge may break."""
        return self._budget

    @property
    def queries(self) -> tuple[Query, ...]:
        """The queries charged so far, equal ones counted together."""
        return self._queries

    def charge(self, queries: Sequence[Query], times: int = 1) -> None:
        """Record `queries`, each made `times` times, or refuse them: call it before they are made.

        Raises
        ------
        BudgetExceeded
            If they would exceed the budget. Nothing is recorded then.
        RuntimeError
            If another run has changed the ledger's file.
        """
        times = check_count("times", times)
        with self._lock:
            after = self._after(_checked(queries), times)
            if self._excess(after) > 0:
                raise BudgetExceeded(self._refusal(queries, times))
            if self._path is not None:
                self._check_file()
                _write(self._path, self._text(after))
            self._queries = after

    def affordable(self, queries: Sequence[Query]) -> int:
        """How many more times `queries` can be charged; of an iteration's queries, over all chains.

        The number is exact while all queries read all records. With subsampled ones it may fall short of the largest by
        one in a thousand, and takes some seconds.
        """
        queries = _checked(queries)
        if any(query.sampling_rate < 1 for query in (*self._queries, *queries)):
            return nearly_largest_count(lambda times: self._excess(self._after(queries, times)))
        return largest_count(lambda times: self._excess(self._after(queries, times)) <= 0)

    def privacy_spent(self) -> PrivacySpent:
        """The smallest ε at the budget's δ that the queries so far amount to, with the grade of their noise."""
        spent = composed_epsilon(self._queries, self._budget.delta, self._budget.neighbours)
        count = sum(query.count for query in self._queries)
        return PrivacySpent(spent, self._budget.delta, self._budget.neighbours, _grade(self._queries), count)

    def log_delta(self, epsilon: float) -> float:
        """The smallest log δ at this ε that the queries so far amount to."""
        return composed_log_delta(self._queries, epsilon, self._budget.neighbours)

    def to_json(self) -> str:
        """The ledger as JSON: the budget and the queries. Nothing in it was computed from the records."""
        return self._text(self._queries)

    @classmethod
    def from_json(cls, text: str) -> "Ledger":
        """The ledger that `to_json` wrote.

        Raises
        ------
        ValueError
            If the text is not such a ledger.
        """
        ledger = cls(_budget_of(_parse(text)))
        ledger._queries = _read(text, ledger.budget)
        return ledger

    def _on_disk(self) -> tuple[Query, ...]:
        if self._path is None or not self._path.exists():
            return ()
        return _read(self._path.read_text(encoding="utf-8"), self._budget)

    def _check_file(self) -> None:
        """Raise if the file is not as this ledger left it: what others have spent counts too."""
        if self._on_disk() != self._queries:
            remedy = "Open it anew with Ledger(budget, path), and let one run at a time use it."
            fail("path", "a file that another run has changed", "what this ledger wrote", remedy, error=RuntimeError)

    def _after(self, queries: Sequence[Query], times: int) -> tuple[Query, ...]:
        return total((*self._queries, *total(queries, times)))

    def _excess(self, queries: Sequence[Query]) -> float:
        """How far log δ is above what the budget allows; not above 0 within it."""
        budget = self._budget
        return composed_log_delta(queries, budget.epsilon, budget.neighbours) - log(budget.delta)

    def _refusal(self, queries: Sequence[Query], times: int) -> str:
        spent = f"{self._budget}, of which ε = {self.privacy_spent().epsilon:.6g} is spent"
        asked = ", ".join(f"{query.count * times} × {query.name}" for query in queries)
        return (
            f"budget: given {spent}; asked for {asked}; expected to stay within it. Of {times} such rounds"
            f" {self.affordable(queries)} can be made: ask for no more, add more noise, or start with a larger budget."
        )

    def _text(self, queries: Sequence[Query]) -> str:
        content = {"format": FORMAT, "budget": asdict(self._budget), "queries": [asdict(query) for query in queries]}
        return json.dumps(content, indent=1)

    def __repr__(self) -> str:
        return f"Ledger(budget={self._budget}, queries={self._queries})"


def _grade(queries: Sequence[Query]) -> Grade | None:
    if not queries:
        return None
    return "secure" if all(query.grade == "secure" for query in queries) else "simulation-grade"


def _checked(queries: Sequence[Query]) -> tuple[Query, ...]:
    if not queries or not all(isinstance(query, Query) for query in queries):
        fail("queries", f"{queries!r}", "at least one dpjax.private.Query", "Pass a sequence of them.", error=TypeError)
    return tuple(queries)


def _write(path: Path, text: str) -> None:
    """Put the text on disk at once: a reader finds the old file or the new one, never half of one."""
    draft = path.with_name(path.name + ".new")
    with draft.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


def _parse(text: str) -> dict[str, Any]:
    try:
        content = json.loads(text)
        if content["format"] == FORMAT:
            return dict(content)
    except (json.JSONDecodeError, KeyError, TypeError):
        pass
    return fail(
        "ledger", "a text of another form", f"what Ledger.to_json of format {FORMAT} wrote", "Look at the file."
    )


def _budget_of(content: dict[str, Any]) -> Budget:
    try:
        return Budget(**content["budget"])
    except (KeyError, TypeError):
        return fail("ledger", "a budget of another form", "epsilon, delta and neighbours", "Look at the file.")


def _read(text: str, budget: Budget) -> tuple[Query, ...]:
    content = _parse(text)
    if _budget_of(content) != budget:
        fail("budget", budget, f"that of the file, {_budget_of(content)}", "Keep one ledger for one set of records.")
    try:
        return total([Query(**query) for query in content["queries"]])
    except (KeyError, TypeError):
        return fail("ledger", "queries of another form", "the fields of Query", "Look at the file.")
