"""Numbers in words."""

from typing import Any

import numpy as np

__all__ = ["SHOWN", "amount", "quantity", "show_shapes"]

SHOWN = 4
"""Numbers that are told one by one."""


def amount(numbers: Any) -> str:
    """One number, a few, or their range."""
    flat = np.unique(np.asarray(numbers, float))
    if len(flat) == 1:
        return f"{flat[0]:.4g}"
    ordered = np.ravel(np.asarray(numbers, float))
    return ", ".join(f"{one:.4g}" for one in ordered) if len(ordered) <= SHOWN else f"{flat[0]:.4g} to {flat[-1]:.4g}"


def quantity(size: int, thing: str) -> str:
    """A number of things."""
    return f"{size:,} {thing}{'' if size == 1 else 's'}"


def show_shapes(fields: dict[str, Any]) -> str:
    """Names, types and shapes of arrays as text."""
    return ", ".join(f"{name} {leaf.dtype}{list(leaf.shape)}" for name, leaf in fields.items()) or "none"
