"""CPU seconds of programs and calls, with compilation apart."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

import jax


@dataclass(frozen=True)
class Timing:
    """CPU seconds of this process.

    compile_seconds
        Tracing and compiling; None where nothing is compiled.
    best_seconds, median_seconds
        Of `repeats` runs.
    """

    compile_seconds: float | None
    best_seconds: float
    median_seconds: float
    repeats: int


def timing_since(began: float) -> Timing:
    """The timing of one run since a reading of `time.process_time`, compilation among it."""
    seconds = time.process_time() - began
    return Timing(None, seconds, seconds, 1)


def time_program(program: Callable, *arguments: Any, repeats: int) -> tuple[Timing, Any]:
    """The timing of a function under jit, and its result."""
    began = time.process_time()
    compiled = jax.jit(program).lower(*arguments).compile()
    compile_seconds = time.process_time() - began
    result = jax.block_until_ready(compiled(*arguments))  # the first run pays for memory
    return summarize(compile_seconds, [time_once(lambda: compiled(*arguments)) for _ in range(repeats)]), result


def time_call(call: Callable[[], Any], repeats: int) -> tuple[Timing, Any]:
    """The timing of a call that compiles what it needs when first made, and its result."""
    began = time.process_time()
    result = jax.block_until_ready(call())
    first = time.process_time() - began
    seconds = [time_once(call) for _ in range(repeats)]
    return summarize(max(first - min(seconds), 0.0), seconds), result


def time_once(call: Callable[[], Any]) -> float:
    """The CPU seconds of one call."""
    began = time.process_time()
    jax.block_until_ready(call())
    return time.process_time() - began


def summarize(compile_seconds: float | None, seconds: list[float]) -> Timing:
    """The timing of several runs."""
    return Timing(compile_seconds, min(seconds), median(seconds), len(seconds))
