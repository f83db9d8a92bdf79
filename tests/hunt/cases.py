"""The parameters of the hunting tests: one family each, those beyond the quick ones slow."""

from collections.abc import Iterable
from typing import Any

import pytest

from tests.hunt.families import ATOMS, QUICK


def cases(names: Iterable[str], quick: tuple[str, ...] = QUICK) -> list[Any]:
    """The names with their marks."""
    return [pytest.param(name, marks=marks(name, quick)) for name in names]


def marks(name: str, quick: tuple[str, ...]) -> list[Any]:
    found = [] if name in quick else [pytest.mark.slow]
    return [*found, pytest.mark.xfail(reason=ATOMS[name], strict=False)] if name in ATOMS else found
