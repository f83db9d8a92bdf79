"""CPU time and peak memory of a whole sweep as n grows to ten million: both should be linear in n."""

import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass

import jax

import dpjax
from benchmarks.memory import answer_of, peak
from benchmarks.rows import Row
from benchmarks.timing import summarize
from problems.regression import make_model, parameters, simulated_release

BOUND = 4.0
PLAN = dpjax.data_augmentation.SweepPlan(dpjax.imwg(), True, None, "moved by surrogate")


@dataclass(frozen=True)
class Size:
    """Numbers of records, and how often records are updated in all."""

    records: tuple[int, ...] = (10_000, 100_000, 1_000_000, 10_000_000)
    updates: int = 20_000_000


SIZES = {"full": Size(), "quick": Size(records=(10_000, 100_000)), "tiny": Size((20_000, 40_000), 80_000)}


def measure(size: Size) -> Iterator[Row]:
    """A row for each n, of one chain in a process of its own; the ratio is to the first n."""
    first = None
    for n in size.records:
        command = [sys.executable, "-m", "benchmarks.growth", str(n), str(size.updates)]
        answer = answer_of(command)
        cost = answer["seconds"] / (answer["sweeps"] * n) * 1e6
        first = first or cost
        figures = {"µs per record": cost, f"ratio to n = {size.records[0]:,}": cost / first, "peak GiB": answer["peak"]}
        timing = summarize(answer["compile"], [answer["seconds"]])
        yield Row("growth", "a sweep", n, answer["d"], 1, timing, figures, target=("peak GiB", "<=", BOUND))


def run(n: int, updates: int) -> dict[str, float]:
    """CPU seconds of compilation and of some sweeps, and the peak memory in GiB."""
    model = make_model()
    release = simulated_release(model, n)
    algorithm = dpjax.gibbs(model, release, plan=PLAN)
    state = jax.jit(algorithm.init)(parameters(), jax.random.key(1))
    began = time.process_time()
    step = jax.jit(algorithm.step, donate_argnums=1).lower(jax.random.key(2), state).compile()
    compiled = time.process_time()
    sweeps = max(2, updates // n)
    for sweep in range(sweeps):
        state, _ = jax.block_until_ready(step(jax.random.key(sweep), state))
    seconds = time.process_time() - compiled
    return {"compile": compiled - began, "seconds": seconds, "sweeps": sweeps, "peak": peak(), "d": release.value.size}


if __name__ == "__main__":
    print(json.dumps(run(*map(int, sys.argv[1:]))))
