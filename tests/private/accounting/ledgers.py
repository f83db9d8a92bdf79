"""Ledger files and what has been charged to them."""

from pathlib import Path

from dpjax.private import Budget, Ledger

BUDGET = Budget(6.0, 1e-6, "replace-one")


def charged(path: Path) -> dict[str, int]:
    """How often each query has been charged."""
    return {query.name: query.count for query in Ledger(BUDGET, path).queries}
