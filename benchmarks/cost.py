"""CPU time of one record update or attempt, proposals and statistics included, beside the same loops in C."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import dpjax
from benchmarks import native
from benchmarks.rows import Row
from benchmarks.sweeps import time_imputation, time_sweep
from benchmarks.timing import Timing, summarize, time_once
from problems.regression import make_model, published_release


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


@dataclass(frozen=True)
class Size:
    """How many chains and repeats, by how much fewer sweeps, and of which kernels."""

    chains: int = 16
    repeats: int = 5
    divisor: int = 1
    cases: tuple[Case, ...] = CASES


SIZES = {
    "full": Size(),
    "quick": Size(divisor=20),
    "tiny": Size(chains=2, repeats=1, cases=(replace(CASES[0], sweeps=5),)),
}


def measure(size: Size) -> Iterator[Row]:
    """Rows for every kernel: alone, within whole sweeps, and in C."""
    model, release = make_model(), published_release(1)
    loops = native.build()
    for case in size.cases:
        sweeps = case.sweeps // size.divisor
        in_c = None
        if loops is not None and case.attempts is not None:
            in_c = measure_loops(loops, case, release, sweeps, size)
            yield in_c
        timing, acceptance = time_imputation(model, release, case.imputation, size.chains, sweeps, size.repeats)
        figures = to_figures(timing, release, sweeps, size.chains, acceptance)
        if in_c is not None:
            figures["times C"] = figures["µs per update"] / in_c.figures["µs per update"]
        target = None if case.bound is None else ("µs per update", "<=", case.bound)
        yield to_row(case.name, release, size.chains, timing, figures, target)
        timing, acceptance = time_sweep(model, release, case.imputation, size.chains, max(sweeps // 4, 1), size.repeats)
        figures = to_figures(timing, release, max(sweeps // 4, 1), size.chains, acceptance)
        yield to_row(f"{case.name}, whole sweep", release, size.chains, timing, figures)


def measure_loops(loops: Callable[..., float], case: Case, release: dpjax.Release, sweeps: int, size: Size) -> Row:
    """The row of the C loop."""
    call = partial(loops, release.value, release.n, size.chains, sweeps, case.attempts)
    acceptance = call()
    timing = summarize(None, [time_once(call) for _ in range(size.repeats)])
    return to_row(
        f"{case.name}, in C", release, size.chains, timing, to_figures(timing, release, sweeps, size.chains, acceptance)
    )


def to_figures(timing: Timing, release: dpjax.Release, sweeps: int, chains: int, acceptance: float) -> dict[str, float]:
    """Microseconds for each of n updates a sweep, of each chain."""
    scale = 1e6 / (sweeps * chains * release.n)
    return {
        "µs per update": timing.best_seconds * scale,
        "median": timing.median_seconds * scale,
        "acceptance": acceptance,
    }


def to_row(
    case: str,
    release: dpjax.Release,
    chains: int,
    timing: Timing,
    figures: dict[str, float],
    target: tuple[str, str, float] | None = None,
) -> Row:
    """The row of a case."""
    return Row("cost", case, release.n, release.value.size, chains, timing, figures, target=target)
