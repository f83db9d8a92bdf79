"""The ledger of all noisy queries on one set of records, and their joint privacy cost."""

import hashlib
import hmac
import os
import secrets
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import RLock
from typing import Any, NamedTuple

from dpjax._util.printing import Printed
from dpjax._util.spelling import NamesArguments, names_methods
from dpjax._util.validation import check_count, check_flag, fail, is_tracing
from dpjax._util.words import SHOWN
from dpjax.mechanisms.privacy import Neighbours
from dpjax.private.accounting.closed_form import largest_count, nearly_largest_count
from dpjax.private.accounting.composition import composed_epsilon, composed_log_delta
from dpjax.private.accounting.ledger_file import Entries, LedgerFile, Used, decode, encode
from dpjax.private.accounting.privacy_filter import excess
from dpjax.private.accounting.query import MOST_SUMS, Budget, Grade, NoiseFamily, Query, check_queries, total
from dpjax.private.accounting.remaining import Remaining, what_remains
from dpjax.private.arguments import check_not_negative


class RunPart(NamedTuple):
    """Iterations of a run that one charge covers.

    Attributes
    ----------
    run
        The mark of the run.
    part
        The mark of what one call adds to it.
    key
        The key that noise or samples are drawn by; None if none are.
    first
        The number of the first iteration: of one key, each draws noise of its own.
    last
        The number after the last one.
    """

    run: str
    part: str
    key: bytes | None = None
    first: int = 0
    last: int = 0


class PrivacySpent(NamedTuple):
    """The privacy cost of the queries so far, had their number been fixed beforehand.

    If it depends on draws or records when queries stop, this is no guarantee: quote the ledger's budget instead. The
    grade is ``"simulation-grade"`` as soon as one query's noise was: the numbers then describe what the run would
    promise with noise fit for it, and nothing is promised. It is None before the first query.

    Attributes
    ----------
    epsilon
        ε.
    delta
        δ.
    neighbours
        The neighbouring relation.
    grade
        ``"secure"`` only if the noise of every query is; None if there was no query.
    num_queries
        The number of queries.

    Examples
    --------
    >>> from dpjax import private
    >>> ledger = private.Ledger(private.Budget(1.0, 1e-6, neighbours="replace-one"))
    >>> ledger.charge([private.Query("mean", noise_multiplier=20.0, grade="secure")])
    >>> spent = ledger.privacy_spent()
    >>> round(spent.epsilon, 3), spent.grade, spent.num_queries
    (0.397, 'secure', 1)
    """

    epsilon: float
    delta: float
    neighbours: Neighbours
    grade: Grade | None
    num_queries: int


class BudgetExceeded(RuntimeError):
    """A query was refused, before it was made, because the budget does not allow it.

    Examples
    --------
    >>> import dpjax
    >>> from dpjax import private
    >>> ledger = private.Ledger(private.Budget(1.0, 1e-6, neighbours="replace-one"))
    >>> try:
    ...     ledger.charge([private.Query("mean", noise_multiplier=1.0, grade="secure")])
    ... except dpjax.private.BudgetExceeded:
    ...     ledger.queries
    ()
    """


@names_methods
class Ledger(NamesArguments, Printed):
    """Every noisy query made of one set of records, charged before it is made.

    What may be quoted is the budget, whatever was spent of it: see `privacy_spent`.

    A ledger changes in one way only: `charge` adds queries, and nothing takes them away. Whatever reads the same
    records (chains, restarts, pilots, other algorithms) is charged to the same ledger, one after the other.

    Parameters
    ----------
    budget
        The promise that no charge may break.
    path
        A file that holds the ledger, so that the budget survives the process. If it exists, its queries count and its
        budget must be this one. Each charge is on disk before `charge` returns. Several processes may share it, under
        any names that symbolic links give it: each sees what the others have charged.

    Raises
    ------
    TypeError, ValueError
        If the budget is none, the path leads nowhere, or the file is damaged or not a ledger of this budget.
    RuntimeError
        If the file was removed, has a second name by a hard link, or cannot be locked, read or written.

    Notes
    -----
    The budget holds though queries, and when they end, are chosen after earlier answers. Queries of all records are
    composed by the closed form of `accounting`. In a ledger that begins with subsampled queries, these are composed by
    the privacy loss distributions of dp_accounting, from above, for as long as all queries are equal. In any other
    ledger a subsampled query costs as much as one of all records.

    A budget with δ = 0 allows Laplace noise alone, of which ε adds up.

    The checksum in the file detects damage, not forgery. An unpickled ledger, and one that `from_json` reads, is a
    copy that cannot be charged, since its original may be.

    Examples
    --------
    >>> import dpjax
    >>> from dpjax import private
    >>> ledger = dpjax.private.Ledger(private.Budget(1.0, 1e-6, neighbours="replace-one"))
    >>> queries = [private.Query("mean", noise_multiplier=50.0, grade="secure")]
    >>> ledger.charge(queries, times=10)
    >>> ledger.affordable(queries) > 10
    True
    """

    def __init__(self, budget: Budget, path: str | os.PathLike[str] | None = None) -> None:
        if not isinstance(budget, Budget):
            fail("budget", repr(budget), "a dpjax.private.Budget", "State ε, δ and the neighbours.", error=TypeError)
        self._entries = Entries(budget)
        self._lock = RLock()
        self._is_copy = False
        self._process = os.getpid()
        self._name, self._secret = secrets.token_hex(8), secrets.token_bytes(32)
        self._file = None if path is None else LedgerFile(path)
        if self._file is not None:
            self._open(self._file)

    @property
    def budget(self) -> Budget:
        """The promise that no charge may break."""
        return self._entries.budget

    @property
    def queries(self) -> tuple[Query, ...]:
        """The queries charged so far, by whoever shares the file; equal ones counted together."""
        with self._lock:
            self._catch_up()
            return self._entries.queries

    def charge(self, queries: Sequence[Query], times: int = 1, *, part: RunPart | None = None) -> None:
        """Record `queries`, each made `times` times, or refuse them: call it before they are made.

        Parameters
        ----------
        queries
            What is asked of the records.
        times
            How often each is.
        part
            The part of a run that asks, for `times_charged` and `check_key`.

        Raises
        ------
        BudgetExceeded
            If they would exceed the budget. Nothing is recorded then.
        RuntimeError
            If the ledger's file was removed or cannot be written, or this ledger is a copy. Nothing is
            recorded then, either.
        TypeError, ValueError
            If an argument is out of range, another run used the key, or the ledger's file is damaged.
        """
        times = check_count("times", times, most=MOST_SUMS)
        queries = check_queries(queries)
        if is_tracing():
            remedy = "Charge outside of jax.jit: a compiled program is charged once, however often it runs."
            fail("ledger", "a charge within a traced program", "one outside", remedy, error=RuntimeError)
        with self._lock, self._alone():
            after = self._after(queries, times)
            fits = self._excess(after) <= 0
            if fits:
                self._record(after, part, times)
        if not fits:
            raise BudgetExceeded(self._refusal(queries, times))  # composed without keeping others waiting

    def check_key(self, part: RunPart) -> None:
        """Raise if another run has used the key at these iterations, or later ones.

        Raises
        ------
        ValueError
            If one has: queries are composed as if their noise were independent.
        """
        with self._lock, self._alone():
            self._keys_after(part)

    def times_charged(self, part: str) -> int:
        """How often the queries of this part of a run were charged here."""
        with self._lock:
            self._catch_up()
            return self._entries.parts.get(part, 0)

    def affordable(self, queries: Sequence[Query]) -> int:
        """How many more times `queries` can be charged; of an iteration's queries, over all chains.

        The number is exact while all queries read all records. With subsampled ones it may fall short of the largest by
        one in a thousand, and takes some seconds.
        """
        queries = check_queries(queries)
        if any(query.sampling_rate < 1 for query in (*self.queries, *queries)):
            return nearly_largest_count(lambda times: self._excess(self._after(queries, times)))
        return largest_count(lambda times: self._excess(self._after(queries, times)) <= 0)

    def remaining(self, noise: NoiseFamily | None = None, *, count: int = 1) -> Remaining:
        """What is left for queries of one kind: the largest ε and ρ, and the least noise, that still fit.

        Parameters
        ----------
        noise
            The family of their noise; by default Laplace noise if the budget's δ is 0, and else Gaussian noise.
        count
            How many of them, of all records, share what is left.

        Returns
        -------
        Remaining
            Charging any of its numbers leaves nothing.

        Raises
        ------
        TypeError, ValueError
            If an argument is out of range, or the budget does not allow such noise.

        Notes
        -----
        It is exact for queries of all records, whatever was charged before. After subsampled queries it is often
        nothing, although `privacy_spent` is below the budget. There are two reasons: such queries are then charged as
        if they had used all records, and at δ / 1024, which at ε = 1 and δ = 10⁻⁶ leaves 0.75 of the ε. Only more of
        the same queries fit then, and `affordable` says how many. What subsampled queries need in a ledger of their own
        is `noise_multiplier_for`.

        Examples
        --------
        >>> from dpjax import private
        >>> ledger = private.Ledger(private.Budget(1.0, 0.0, neighbours="add-or-remove"))
        >>> ledger.charge([private.Query("count", noise_multiplier=4.0, grade="secure", noise="laplace")])
        >>> round(ledger.remaining().epsilon, 6)
        0.75
        """
        return what_remains(self.queries, self.budget, noise, count)

    def privacy_spent(self) -> PrivacySpent:
        """The smallest ε at the budget's δ that the queries so far amount to, with the grade of their noise.

        It may depend on the records: a run that stops early does so because of its draws. So it is for planning, and
        only `budget` may be quoted as what is guaranteed.
        """
        queries = self.queries
        spent = composed_epsilon(queries, self.budget.delta, self.budget.neighbours)
        count = sum(query.count for query in queries)
        return PrivacySpent(spent, self.budget.delta, self.budget.neighbours, _grade(queries), count)

    def log_delta(self, epsilon: float) -> float:
        """The smallest log δ at this ε that the queries so far amount to."""
        check_not_negative("epsilon", epsilon)
        return composed_log_delta(self.queries, epsilon, self.budget.neighbours)

    def to_json(self) -> str:
        """The ledger as JSON: the budget, the queries and their runs, without the keys that its file remembers.

        Nothing in it was computed from the records.
        """
        with self._lock:
            self._catch_up()
            return encode(self._entries._replace(keys={}))

    @classmethod
    def from_json(cls, text: str, *, chargeable: bool = False) -> "Ledger":
        """The ledger that `to_json` wrote, to be read; the one to be charged is the original, or its file.

        Parameters
        ----------
        text
            What `to_json` wrote.
        chargeable
            Whether it takes the place of the original. Charged beside it, it would be a second budget for the same
            records.

        Raises
        ------
        TypeError, ValueError
            If the text is not such a ledger, or damaged.
        """
        if not isinstance(text, (str, bytes)):
            remedy = "Pass the text itself; to open a file, Ledger(budget, path)."
            fail("text", type(text).__name__, "what Ledger.to_json wrote", remedy, error=TypeError)
        check_flag("chargeable", chargeable)
        entries = decode(text)
        ledger = cls(entries.budget)
        ledger._is_copy = not chargeable
        ledger._entries = entries
        return ledger

    def _open(self, file: LedgerFile) -> None:
        """Take up the file, or begin it."""
        with file.locked():
            entries = file.read()
            if entries is None:
                file.write(self._entries)
            else:
                self._take_in(entries)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """A context in which nobody else charges, with all earlier charges known."""
        if self._is_copy:
            remedy = "Open its file. If nothing else will be charged to it, Ledger.from_json(text, chargeable=True)."
            fail("ledger", "a copy, of a pickle or JSON", "the ledger itself", remedy, error=RuntimeError)
        if self._file is None:
            self._check_process()
            yield
            return
        with self._file.locked():
            self._catch_up()
            yield

    def _check_process(self) -> None:
        """Raise in a fork: its parent process would not know of charges to a ledger in memory."""
        if os.getpid() != self._process:
            remedy = "Open Ledger(budget, path) with a file, which processes share."
            fail("ledger", "one in the memory of another process", "a ledger of this one", remedy, error=RuntimeError)

    def _catch_up(self) -> None:
        """Count what others have charged to the file."""
        if self._file is None:
            return
        entries = self._file.read()
        if entries is None:
            remedy = "Put it back from a backup, or with what Ledger.to_json wrote."
            self._file.refuse("that is gone, with the record of what was spent", remedy)
        else:
            self._take_in(entries)

    def _take_in(self, entries: Entries) -> None:
        """Take the contents of the file, which must include all known charges."""
        if entries.budget != self.budget:
            remedy = "Keep one ledger for one set of records."
            fail("budget", self.budget, f"that of the file, {entries.budget}", remedy)
        if not entries.includes(self._entries):
            remedy = "Put back the newest one: an older copy forgets what was spent."
            assert self._file is not None
            self._file.refuse("in which queries are missing that were charged", remedy)
        self._entries = entries

    def _record(self, queries: tuple[Query, ...], part: RunPart | None, times: int) -> None:
        """Keep what is charged, in the file if there is one, with the part of the run and how far its key is used."""
        keys = self._entries.keys if part is None else self._keys_after(part)
        parts = {} if part is None else {part.part: self._entries.parts.get(part.part, 0) + times}
        charges = {self._name: self._entries.charges.get(self._name, 0) + 1}
        after = Entries(
            self.budget, queries, {**self._entries.parts, **parts}, keys, {**self._entries.charges, **charges}
        )
        if self._file is not None:
            self._file.write(after)
        self._entries = after

    def _keys_after(self, part: RunPart) -> Mapping[str, Used]:
        """How far keys are used after these iterations, or an error if another run has used this one further."""
        keys = self._entries.keys
        if part.key is None:
            return keys
        secret = self._secret if self._file is None else self._file.read_secret(is_new=not keys)
        mark = hmac.new(secret, part.key, hashlib.sha256).hexdigest()
        used, run = keys.get(mark, (0, part.run))
        if used > part.first and run != part.run:
            remedy = "Pass another, such as jax.random.fold_in(key, 1)."
            fail("key", "the key of an earlier run charged to this ledger", "a key of its own", remedy)
        return {**keys, mark: (max(used, part.last), part.run)}

    def _after(self, queries: Sequence[Query], times: int) -> tuple[Query, ...]:
        return total((*self._entries.queries, *total(queries, times)))

    def _excess(self, queries: Sequence[Query]) -> float:
        """At most 0 if these may be all that is charged to the budget."""
        return excess(queries, self.budget)

    def _refusal(self, queries: Sequence[Query], times: int) -> str:
        spent = f"{self.budget}, of which ε = {self.privacy_spent().epsilon:.6g} is spent"
        asked = ", ".join(f"{query.count * times} × {query.name}" for query in queries)
        left = self.remaining("laplace" if all(query.noise == "laplace" for query in queries) else None)
        return (
            f"budget: given {spent}; asked for {asked}; expected to stay within it. Left is {left}. Of {times} such "
            f"rounds {self.affordable(queries)} can be made: ask for no more, add more noise, or start with a larger "
            "budget."
        )

    def __getstate__(self) -> dict[str, Any]:
        return {"entries": self._entries._replace(keys={})}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._entries = state["entries"]
        self._lock, self._is_copy, self._file = RLock(), True, None
        self._process, self._name, self._secret = os.getpid(), "", b""

    def __repr__(self) -> str:
        made = Counter[str]()
        for query in self._entries.queries:
            made[query.name] += query.count
        names = [f"{count:,} × {name}" for name, count in made.most_common(SHOWN)] or ["none"]
        left = what_remains(self._entries.queries, self.budget, None, 1)
        kind = " for queries of all records" * any(query.sampling_rate < 1 for query in self._entries.queries)
        shown = f"{', '.join(names)}{', …' * (len(made) > SHOWN)}"
        return f"Ledger\nbudget: {self.budget}\nqueries: {shown}\nleft{kind}: {left}"


def _grade(queries: Sequence[Query]) -> Grade | None:
    if not queries:
        return None
    return "secure" if all(query.grade == "secure" for query in queries) else "simulation-grade"
