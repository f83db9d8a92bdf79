"""CPU time of one record update or attempt, proposals and statistics included, beside the same loops in C."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import dpjax
from benchmarks import native
from benchmarks.rows import Row
from benchmarks.sweeps import time_imputation, time_sweep
from benchmarks.timing import Timing, summarize, time_once
from problems.regression import make_model, published_release

CHAINS = 16
REPEATS = 5


@dataclass(frozen=True)
class Case:
    """A kernel.

    sweeps
        How many are timed at once.
    attempts
        What `kernels.c` takes for the same kernel; None where it has none.
    bound
        The most microseconds wanted for an update.
    """

    name: str
    imputation: dpjax.base.Imputation
    sweeps: int
    attempts: int | None = None
    bound: float | None = None


CASES = (
    Case("IMwG, systematic scan", dpjax.imwg(), 10_000, attempts=0, bound=0.12),
    Case("IMwG, random scan", dpjax.imwg("random"), 5_000),
    Case("SOMA, m = 4", dpjax.soma(4), 2_000, attempts=4),
    Case("SOMA, m = 16", dpjax.soma(16), 2_000, attempts=16),
    Case("SOMA, m = 32", dpjax.soma(32), 2_000, attempts=32),
    Case("SOMA, m = n", dpjax.soma(), 1_000, attempts=100, bound=0.8),
)


def measure(quick: bool) -> Iterator[Row]:
    """Rows for every kernel: alone, within whole sweeps, and in C."""
    model, release = make_model(), published_release(1)
    loops = native.build()
    for case in CASES:
        sweeps = case.sweeps // 20 if quick else case.sweeps
        in_c = None
        if loops is not None and case.attempts is not None:
            in_c = measure_loops(loops, case, release, sweeps)
            yield in_c
        timing, acceptance = time_imputation(model, release, case.imputation, CHAINS, sweeps, REPEATS)
        figures = to_figures(timing, release, sweeps, acceptance)
        if in_c is not None:
            figures["times C"] = figures["µs per update"] / in_c.figures["µs per update"]
        target = None if case.bound is None else ("µs per update", "<=", case.bound)
        yield to_row(case.name, release, timing, figures, target)
        timing, acceptance = time_sweep(model, release, case.imputation, CHAINS, sweeps // 4, REPEATS)
        figures = to_figures(timing, release, sweeps // 4, acceptance)
        yield to_row(f"{case.name}, whole sweep", release, timing, figures)


def measure_loops(loops: Callable[..., float], case: Case, release: dpjax.Release, sweeps: int) -> Row:
    """The row of the C loop."""
    call = partial(loops, release.value, release.n, CHAINS, sweeps, case.attempts)
    acceptance = call()
    timing = summarize(None, [time_once(call) for _ in range(REPEATS)])
    return to_row(f"{case.name}, in C", release, timing, to_figures(timing, release, sweeps, acceptance))


def to_figures(timing: Timing, release: dpjax.Release, sweeps: int, acceptance: float) -> dict[str, float]:
    """Microseconds for each of n updates a sweep, of each chain."""
    scale = 1e6 / (sweeps * CHAINS * release.n)
    return {
        "µs per update": timing.best_seconds * scale,
        "median": timing.median_seconds * scale,
        "acceptance": acceptance,
    }


def to_row(
    case: str,
    release: dpjax.Release,
    timing: Timing,
    figures: dict[str, float],
    target: tuple[str, str, float] | None = None,
) -> Row:
    """The row of a case."""
    return Row("cost", case, release.n, release.value.size, CHAINS, timing, figures, target=target)
