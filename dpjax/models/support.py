"""Every possible record of a few fields, where there are not too many."""

from collections.abc import Sequence
from math import prod

import numpy as np

__all__ = ["LARGEST_SUPPORT", "list_places"]

LARGEST_SUPPORT = 100_000
"""Up to this many possible records are listed; beyond, a list would cost more than it helps."""


def list_places(sizes: Sequence[int]) -> np.ndarray | None:
    """The places [fields, c] of every possible record among the levels of its fields, the last field fastest.

    None where there are more than `LARGEST_SUPPORT`.
    """
    return None if prod(sizes) > LARGEST_SUPPORT else np.indices(sizes).reshape(len(sizes), -1)
