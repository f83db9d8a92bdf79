"""Loops of short steps one after another, of which each takes an accelerator as long as a long one."""

from collections.abc import Callable
from typing import Any

import jax

__all__ = ["scan_short"]

UNROLLED = 4
"""Steps of a body on accelerators. Each more makes the program longer to compile."""


def scan_short(step: Callable[[Any, Any], tuple[Any, Any]], start: Any, inputs: Any) -> tuple[Any, Any]:
    """`jax.lax.scan` of short steps: on accelerators several to a body, as the loop takes its time by the body.

    The steps and their random numbers are the same.
    """
    return jax.lax.scan(step, start, inputs, unroll=1 if jax.default_backend() == "cpu" else UNROLLED)
