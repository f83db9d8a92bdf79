"""The text of a ledger: a budget and queries as JSON, with a checksum against a flipped digit."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

from dpjax.private.accounting.budget import Budget
from dpjax.private.accounting.query import Query, total
from dpjax.validation import fail

__all__ = ["Entries", "decode", "encode"]

FORMAT = 2


class Entries(NamedTuple):
    """What a ledger's text says."""

    budget: Budget
    queries: tuple[Query, ...]
    keys: frozenset[str]


def encode(budget: Budget, queries: Sequence[Query], keys: Iterable[str] = ()) -> str:
    """The text of a ledger, with the digests of the keys of its runs. Nothing in it was computed from the records."""
    content: dict[str, Any] = {"format": FORMAT, "budget": asdict(budget), "keys": sorted(keys)}
    content["queries"] = [asdict(query) for query in queries]
    return json.dumps(content | {"sha256": checksum(content)}, indent=1, default=plain)


def decode(text: str | bytes) -> Entries:
    """What `encode` wrote.

    Raises
    ------
    ValueError
        If the text is none of a ledger, or is not as it was written.
    """
    content = parse(text)
    remedy = "Take the ledger from a backup that nothing was charged since, or count the budget as spent."
    if content.pop("sha256", None) != checksum(content):
        fail("ledger", "a text that is not as it was written: its checksum differs", "one without damage", remedy)
    try:
        queries = total([Query(**query) for query in content["queries"]])
        return Entries(Budget(**content["budget"]), queries, frozenset(content["keys"]))
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
    """Raise the error of a text that is none of a ledger."""
    return fail("ledger", given, f"what Ledger.to_json of format {FORMAT} wrote", "Look at the file.")


def checksum(content: dict[str, Any]) -> str:
    """A digest of JSON content, whatever the order of its keys and the spaces between."""
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=plain).encode()).hexdigest()


def plain(number: Any) -> Any:
    """A number of numpy's as one of Python's."""
    return number.item()
