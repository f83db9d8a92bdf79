"""Every possible record of a few fields, where there are not too many."""

from collections.abc import Sequence
from math import prod

import jax
import numpy as np

from dpjax.base import Model

__all__ = ["LARGEST_SUPPORT", "list_places", "support_size"]

LARGEST_SUPPORT = 100_000
"""Up to this many possible records are listed; beyond, a list would cost more than it helps."""


def list_places(sizes: Sequence[int]) -> np.ndarray | None:
    """The places [fields, c] of every possible record among the levels of its fields, the last field fastest.

    None where there are more than `LARGEST_SUPPORT`.
    """
    return None if prod(sizes) > LARGEST_SUPPORT else np.indices(sizes).reshape(len(sizes), -1)


def support_size(model: Model) -> int | None:
    """How many possible records the model lists, without listing them; None where it lists none."""
    if model.support is None:
        return None
    (size,) = {leaf.shape[0] for leaf in jax.tree.leaves(jax.eval_shape(model.support))}
    return size
