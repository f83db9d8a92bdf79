"""CPU time of an update as n grows: a sweep should be linear in n, an attempt of SOMA at m records independent of n."""

from collections.abc import Iterator
from dataclasses import dataclass

import dpjax
from benchmarks.rows import Row
from benchmarks.sweeps import time_imputation
from problems.regression import make_model, simulated_release

KERNELS = {
    "IMwG, systematic scan": dpjax.imwg(),
    "IMwG, random scan": dpjax.imwg("random"),
    "SOMA, m = 16": dpjax.soma(16),
}
MOST_UPDATES = 4_000_000
"""Largest n times chains."""
UPDATES = 1_000_000
"""At least so many are timed at once."""
MOST_SECONDS = 5.0
"""A kernel whose run took longer is not tried at the next size."""
REPEATS = 3


@dataclass(frozen=True)
class Size:
    """The numbers of records and of chains, the kernels, and by how much fewer updates are timed."""

    records: tuple[int, ...] = (100, 1_000, 10_000, 100_000, 1_000_000)
    chains: tuple[int, ...] = (1, 4, 16)
    kernels: tuple[str, ...] = tuple(KERNELS)
    updates: int = UPDATES


SIZES = {
    "full": Size(),
    "quick": Size(records=(100, 1_000, 10_000), updates=UPDATES // 10),
    "tiny": Size(records=(20, 40), chains=(2,), kernels=("IMwG, systematic scan",), updates=UPDATES // 10),
}


def measure(size: Size) -> Iterator[Row]:
    """Rows for every kernel, number of chains and n."""
    model = make_model()
    for name in size.kernels:
        for chains in size.chains:
            yield from measure_sizes(name, model, KERNELS[name], chains, size)


def measure_sizes(
    name: str, model: dpjax.Model, imputation: dpjax.base.Imputation, chains: int, size: Size
) -> Iterator[Row]:
    """Rows for n from small to large; the ratio is to the first n."""
    first = None
    for n in size.records:
        if n * chains > MOST_UPDATES:
            return
        release, sweeps = simulated_release(model, n), max(1, size.updates // (n * chains))
        timing, acceptance = time_imputation(model, release, imputation, chains, sweeps, REPEATS)
        cost = timing.best_seconds / (sweeps * chains * n) * 1e6
        first = first or cost
        figures = {"µs per update": cost, "ratio to n = 100": cost / first, "acceptance": acceptance}
        yield Row("scaling", name, n, release.value.size, chains, timing, figures)
        if timing.best_seconds > MOST_SECONDS:
            return
