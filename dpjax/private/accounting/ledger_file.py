"""The file of a ledger: shared by all processes, with loss and damage detected."""

import hashlib
import json
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from functools import partial
from typing import Any, BinaryIO, NamedTuple

from dpjax._util.files import Lock, held, open_regular, write_whole
from dpjax._util.validation import check_count, check_destination, fail
from dpjax.private.accounting.query import MOST_SUMS, Budget, Query, total

__all__ = ["Entries", "LedgerFile", "decode", "encode"]

SECONDS_TO_WAIT = 120.0
FORMAT = 3

Used = tuple[int, str]
"""The iterations up to which a key was used, and the run that did so last."""


class Entries(NamedTuple):
    """The contents of a ledger.

    Attributes
    ----------
    budget
        The promise.
    queries
        What was charged, equal ones counted together.
    parts
        How often the queries of each part of a run were charged.
    keys
        How far keys were used, by their marks. A mark reveals nothing without the secret in another file.
    charges
        How often each `Ledger` was charged, whoever shares the file.
    """

    budget: Budget
    queries: tuple[Query, ...] = ()
    parts: Mapping[str, int] = {}
    keys: Mapping[str, Used] = {}
    charges: Mapping[str, int] = {}

    def includes(self, earlier: "Entries") -> bool:
        """Whether every charge in earlier contents of the file is in these."""
        return all(self.charges.get(name, 0) >= count for name, count in earlier.charges.items())


class LedgerFile:
    """The file of a ledger.

    The file itself is locked by whoever charges it, and nobody else replaces it. Beside it lies a marker of its
    existence: if that is there and the ledger is not, somebody has removed what was spent. Another file has the secret
    by which keys are marked. It is its owner's alone: a key may be guessed, and the ledger must not confirm a guess.

    Parameters
    ----------
    path
        The path of the file, existing or not. Symbolic links are followed, so that all names of a file share one lock.
    """

    def __init__(self, path: Any) -> None:
        remedy = "Pass the path of a file, such as 'ledger.json', in a folder that exists."
        self.path = check_destination("path", path, remedy)
        self.marker = self.path.with_name(self.path.name + ".begun")
        self.lock: Lock | None = None

    @contextmanager
    def locked(self) -> Iterator[None]:
        """A context in which no other process or thread reads in order to write.

        Raises
        ------
        RuntimeError
            If another one holds the lock for minutes, or there can be no lock.
        """
        if not self.path.exists():
            self.check_never_begun()
        with ExitStack() as stack:
            try:
                self.lock = stack.enter_context(held(self.path, SECONDS_TO_WAIT))
            except TimeoutError:
                self.refuse(f"held by another process for {SECONDS_TO_WAIT:g} seconds", "Wait for it, or end it.")
            except (OSError, NotImplementedError) as error:
                remedy = "Use a local folder that can be written to."
                self.refuse(f"in a folder where no lock can be had ({error})", remedy)
            yield

    def read(self) -> Entries | None:
        """The contents of the file; None if it has never had any.

        Raises
        ------
        RuntimeError
            If the file was removed, has a second name, or cannot be read.
        ValueError
            If it is not a ledger, or damaged.
        """
        try:
            with open_regular(self.path) as file:
                if os.fstat(file.fileno()).st_nlink > 1:
                    remedy = "Keep one name for one budget, and remove the other; a symbolic link may lead to it."
                    self.refuse("with a second name, by a hard link, which the next charge would not reach", remedy)
                text = file.read()
        except FileNotFoundError:
            text = b""
        except OSError as error:
            return self.refuse(f"that cannot be read ({error})", "Give this process access to it.")
        if not text:
            self.check_never_begun()
            return None
        return decode(text)

    def check_never_begun(self) -> None:
        """Raise if the file has nothing in it and once had."""
        if self.marker.exists():
            remedy = f"Put it back from a backup. To begin with nothing spent, remove {self.marker.name!r} as well."
            self.refuse("that is gone, with the record of what was spent", remedy)

    def write(self, entries: Entries) -> None:
        """Put the contents on disk at once, under the lock: a reader finds the old file or the new one, never half.

        Raises
        ------
        RuntimeError
            If they cannot be written; the file is then as it was.
        """
        if self.lock is None or not self.lock.is_held():
            self.refuse("that was removed or replaced during a charge", "Put it back. Nothing was charged.")
        try:
            write_whole(self.path, partial(put, encode(entries)), 0o600)
            if not self.marker.exists():
                write_whole(self.marker, partial(put, f"{self.path.name} exists; to forget it, remove both files\n"))
        except OSError as error:
            self.refuse(
                f"that cannot be written ({error})", "Nothing was charged. Make room or give access, and retry."
            )

    def read_secret(self, *, is_new: bool) -> bytes:
        """The secret by which keys are marked, which is made if no key is yet; called under the lock.

        Raises
        ------
        RuntimeError
            If it is gone, cannot be read, or cannot be written.
        """
        path = self.path.with_name(self.path.name + ".secret")
        try:
            if is_new and not path.exists():
                write_whole(path, partial(put, secrets.token_hex(32)), 0o600)
            with open_regular(path) as file:
                return file.read()
        except OSError as error:
            remedy = "Put it back, or use noise.secure, whose draws need no key."
            return self.refuse(f"whose {path.name!r} cannot be used, by which keys are marked ({error})", remedy)

    def refuse(self, given: str, remedy: str) -> Any:
        """Raise the error of a file that cannot be used."""
        return fail(
            "ledger", f"the file {str(self.path)!r} {given}", "a file that only ledgers use", remedy, error=RuntimeError
        )


def put(text: str, file: BinaryIO) -> None:
    """Write a text to an open file."""
    file.write(text.encode())


def encode(entries: Entries) -> str:
    """The text of a ledger. Nothing in it was computed from the records."""
    content = {"format": FORMAT, **entries._asdict(), "budget": asdict(entries.budget)}
    content["queries"] = [asdict(query) for query in entries.queries]
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
        keys = {mark: (check_count("keys", used, least=0), str(run)) for mark, (used, run) in content["keys"].items()}
        parts, charges = (
            {mark: check_count(name, count, least=0, most=MOST_SUMS) for mark, count in content[name].items()}
            for name in ("parts", "charges")
        )
        return Entries(Budget(**content["budget"]), queries, parts, keys, charges)
    except (AttributeError, KeyError, TypeError, ValueError):
        return refuse_text("a budget or queries of another form")


def parse(text: str | bytes) -> dict[str, Any]:
    """The text as a dict of this format."""
    try:
        content = json.loads(text)
        if content["format"] == FORMAT:
            return dict(content)
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    return refuse_text("a text of another form")


def refuse_text(given: str) -> Any:
    """Raise the error of a text that is not that of a ledger."""
    return fail("ledger", given, f"what Ledger.to_json of format {FORMAT} wrote", "Look at the file.")


def checksum(content: dict[str, Any]) -> str:
    """A hash of JSON content, independent of the order of its keys and of white space."""
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=plain).encode()).hexdigest()


def plain(number: Any) -> Any:
    """A number of numpy's as one of Python's."""
    return number.item()
