"""The parameters of the hunting tests: one family each, those beyond the quick ones slow."""

from collections.abc import Iterable
from typing import Any

import pytest

from tests.adapters.numpyro.families import QUICK


def cases(names: Iterable[str], quick: tuple[str, ...] = QUICK) -> list[Any]:
    """The names with their marks."""
    return [pytest.param(name, marks=() if name in quick else pytest.mark.slow) for name in names]
