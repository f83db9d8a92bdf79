"""The file of a ledger: shared by all processes, with loss and damage detected."""

import glob
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from filelock import FileLock, Timeout

from dpjax._util.files import write_whole
from dpjax._util.validation import fail
from dpjax.private.accounting.query import Budget, Query, total

__all__ = ["Entries", "LedgerFile", "decode", "encode"]

SECONDS_TO_WAIT = 120.0
SECONDS_BETWEEN_TRIES = 0.002


FORMAT = 2


class Entries(NamedTuple):
    """The contents of a ledger's text."""

    budget: Budget
    queries: tuple[Query, ...]
    keys: frozenset[str]
    parts: dict[str, int]


class LedgerFile:
    """The file of a ledger.

    Beside it lie a lock, which one process holds at a time, and a marker of the ledger's existence: where the marker
    is and the ledger is not, somebody has removed what was spent.

    Parameters
    ----------
    path
        Where it is, or will be. Symbolic links are followed, so that all names of a file share one lock.
    """

    def __init__(self, path: Any) -> None:
        remedy = "Pass the path of a file, such as 'ledger.json', in a folder that exists."
        if not isinstance(path, (str, os.PathLike)):
            fail("path", repr(path), "a path", remedy, error=TypeError)
        try:
            self.path = Path(path).resolve()
            is_file = not self.path.is_dir() and self.path.parent.is_dir()
        except (OSError, RuntimeError, ValueError) as error:  # links in a circle, names that no file can have
            fail("path", f"{str(path)!r} ({error})", "a file in an existing folder", remedy)
        if not is_file:
            fail("path", repr(str(path)), "a file in an existing folder", remedy)
        self.marker = self.path.with_name(self.path.name + ".begun")

    @contextmanager
    def locked(self) -> Iterator[None]:
        """A context in which no other process or thread reads in order to write.

        Raises
        ------
        RuntimeError
            If another one holds the lock for minutes, or there can be no lock.
        """
        name = self.path.with_name(self.path.name + ".lock")
        lock = FileLock(name, timeout=SECONDS_TO_WAIT)
        try:
            os.close(os.open(name, os.O_RDWR | os.O_CREAT, 0o666))  # fails at once if no lock is possible
            lock.acquire(poll_interval=SECONDS_BETWEEN_TRIES)
            for left in self.path.parent.glob(glob.escape(self.path.name) + ".*.unfinished"):
                left.unlink(missing_ok=True)  # by a process that was killed while it charged
        except Timeout:
            self.refuse(f"held by another process for {SECONDS_TO_WAIT:g} seconds", "Wait for it, or end it.")
        except (OSError, NotImplementedError) as error:
            self.refuse(f"in a folder where no lock can be had ({error})", "Use a local folder that can be written to.")
        try:
            yield
        finally:
            lock.release()

    def read(self) -> Entries | None:
        """The contents of the file; None if it has never existed.

        Raises
        ------
        RuntimeError
            If the file was removed, has a second name, or cannot be read.
        ValueError
            If it is not a ledger, or damaged.
        """
        try:
            with self.path.open("rb") as file:
                if os.fstat(file.fileno()).st_nlink > 1:
                    remedy = "Keep one name for one budget, and remove the other; a symbolic link may lead to it."
                    self.refuse("with a second name, by a hard link, which the next charge would not reach", remedy)
                return decode(file.read())
        except FileNotFoundError:
            if self.marker.exists():
                remedy = f"Put it back from a backup. To begin with nothing spent, remove {self.marker.name!r} as well."
                self.refuse("that is gone, with the record of what was spent", remedy)
            return None
        except OSError as error:
            return self.refuse(f"that cannot be read ({error})", "Give this process access to it.")

    def write(self, text: str) -> None:
        """Put the text on disk at once: a reader finds the old file or the new one, never half of one.

        Raises
        ------
        RuntimeError
            If it cannot be written; the file is then as it was.
        """
        try:
            write_whole(self.path, partial(put, text), 0o600)
            if not self.marker.exists():
                write_whole(self.marker, partial(put, f"{self.path.name} exists; to forget it, remove both files\n"))
        except OSError as error:
            self.refuse(
                f"that cannot be written ({error})", "Nothing was charged. Make room or give access, and retry."
            )

    def refuse(self, given: str, remedy: str) -> Any:
        """Raise the error of a file that cannot be used."""
        return fail(
            "ledger", f"the file {str(self.path)!r} {given}", "a file that only ledgers use", remedy, error=RuntimeError
        )


def put(text: str, file: BinaryIO) -> None:
    """Write a text to an open file."""
    file.write(text.encode())


def encode(
    budget: Budget, queries: Sequence[Query], keys: Iterable[str] = (), parts: Mapping[str, int] | None = None
) -> str:
    """The text of a ledger, with its runs: hashes of their keys, and how often each part of one was charged.

    Nothing in it was computed from the records.
    """
    content: dict[str, Any] = {"format": FORMAT, "budget": asdict(budget), "keys": sorted(keys), "parts": parts or {}}
    content["queries"] = [asdict(query) for query in queries]
    return json.dumps(content | {"sha256": checksum(content)}, indent=1, default=plain)


def decode(text: str | bytes) -> Entries:
    """What `encode` wrote.

    Raises
    ------
    ValueError
        If the text is not that of a ledger, or is damaged.
    """
    content = parse(text)
    remedy = "Take the ledger from a backup that nothing was charged since, or count the budget as spent."
    if content.pop("sha256", None) != checksum(content):
        fail("ledger", "a text that is not as it was written: its checksum differs", "one without damage", remedy)
    try:
        queries = total([Query(**query) for query in content["queries"]])
        return Entries(Budget(**content["budget"]), queries, frozenset(content["keys"]), dict(content.get("parts", {})))
    except (KeyError, TypeError):
        return refuse("a budget or queries of another form")


def parse(text: str | bytes) -> dict[str, Any]:
    """The text as a dict of this format."""
    try:
        content = json.loads(text)
        if content["format"] == FORMAT:
            return dict(content)
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    return refuse("a text of another form")


def refuse(given: str) -> Any:
    """Raise the error of a text that is not that of a ledger."""
    return fail("ledger", given, f"what Ledger.to_json of format {FORMAT} wrote", "Look at the file.")


def checksum(content: dict[str, Any]) -> str:
    """A hash of JSON content, independent of the order of its keys and of white space."""
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=plain).encode()).hexdigest()


def plain(number: Any) -> Any:
    """A number of numpy's as one of Python's."""
    return number.item()
