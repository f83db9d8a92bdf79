"""One row of the accelerator's plan, as a process prints it: ``python -m benchmarks.accelerator_row SIZE NAME CHAINS``.

Sweeps are timed without compilation. Runs are timed twice: the first call compiles or finds its programs.
"""

import json
import sys
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np

import dpjax
from benchmarks.machine import describe
from benchmarks.rows import Row
from benchmarks.summed_out_cases import counties
from benchmarks.timing import summarize
from dpjax.diagnostics import ess_bulk
from problems.regression import make_model, published_release
from problems.seven_programs import STEPS, Case

UPDATES, MOST_STEPS = 2**23, 20
"""A timed program makes so many updates of a record, and at most so many steps."""

MANY_CHAINS = 256
"""With more, a warm-up learns enough from few steps."""

HMC = dpjax.data_augmentation.parameter_kernel("hmc", num_leapfrogs=8)
"""For many chains: a tree of NUTS is as deep for all as for the chain that needs the deepest."""

FOUND = {"/jax/compilation_cache/cache_hits": "programs found", "/jax/compilation_cache/cache_misses": "compiled"}


class Size(NamedTuple):
    """Warm-up and draws of runs with few chains and with many, most units, most steps of a sweep, runs of a sweep."""

    few: tuple[int, int]
    many: tuple[int, int]
    units: int
    steps: int
    repeats: int


SIZES = {"full": Size((300, 200), (100, 100), 3_143, MOST_STEPS, 2), "tiny": Size((20, 20), (20, 20), 30, 2, 1)}


def regression_run(_: int) -> tuple[Any, Any]:
    """The model and release of the private regression with 100 records."""
    return make_model(), published_release(1)


def counties_of(number: int, most: int) -> tuple[Any, Any]:
    """The model and release of counts of counties, or of fewer, whose records are summed out."""
    case = counties(min(number, most), 50)
    return case.read(), case.release


RUNS: dict[str, tuple[Callable[[int], tuple[Any, Any]], dict[str, Any]]] = {
    "sample, every default": (regression_run, {}),
    "summed out, NUTS": (partial(counties_of, 300), {}),
    "summed out, HMC of 8 leapfrogs": (partial(counties_of, 300), {"parameter_kernel": HMC}),
    "summed out, 3,143 units, NUTS": (partial(counties_of, 3_143), {}),
    "summed out, 3,143 units, HMC of 8 leapfrogs": (partial(counties_of, 3_143), {"parameter_kernel": HMC}),
}
"""Problems of runs with at most so many units, and the options of `dpjax.sample`."""


def time_steps(name: str, case: Case, chains: int, size: Size) -> Row:
    """The row of steps of all chains side by side: the best of some runs."""
    steps = min(max(UPDATES // (case.n * chains), 1), size.steps)

    def program(key: jax.Array, states: Any) -> Any:
        def body(states: Any, key: jax.Array) -> tuple[Any, None]:
            return jax.vmap(case.step)(jax.random.split(key, chains), states)[0], None

        return jax.lax.scan(body, states, jax.random.split(key, steps))[0]

    states = jax.jit(jax.vmap(case.start))(jax.random.split(jax.random.key(1), chains))
    key, began = jax.random.key(2), time.perf_counter()
    compiled = jax.jit(program).lower(key, states).compile()
    compile_seconds = time.perf_counter() - began
    jax.block_until_ready(compiled(key, states))
    seconds = [wall_seconds(partial(compiled, key, states)) for _ in range(size.repeats)]
    best = min(seconds) / steps
    figures = {"ms per sweep": best * 1e3, "ns per record": best / case.n / chains * 1e9}
    return Row("accelerator", f"{device()}: {name}", case.n, 0, chains, summarize(compile_seconds, seconds), figures)


def time_run(name: str, chains: int, size: Size) -> Row:
    """The row of a second run: all wall seconds, warm-up included; effective draws of the worst parameter."""
    make, options = RUNS[name]
    model, release = make(size.units)
    num_warmup, num_samples = size.few if chains <= MANY_CHAINS else size.many
    budget = {"num_chains": chains, "num_warmup": num_warmup, "num_samples": num_samples}

    def run() -> dpjax.posterior.Posterior:
        return dpjax.sample(jax.random.key(1), model, release, progress=False, **budget, **options)

    first = wall_seconds(run)
    began = time.perf_counter()
    posterior = run()
    seconds = time.perf_counter() - began
    effective = min(float(np.min(ess_bulk(leaf))) for leaf in posterior.draws.values())
    figures = {
        "wall s": seconds,
        "first call s": first,
        "effective per s": effective / seconds,
        "effective per draw": effective / (chains * num_samples),
    }
    width = release.value.size if isinstance(release, dpjax.Release) else 1
    timing = summarize(first - seconds, [seconds])
    return Row("accelerator", f"{device()}: {name}", release.n, width, chains, timing, figures)


def wall_seconds(call: Callable[[], Any]) -> float:
    """The wall seconds of one call."""
    began = time.perf_counter()
    result = call()
    jax.block_until_ready(getattr(result, "draws", result))
    return time.perf_counter() - began


def device() -> str:
    """The device's name."""
    return str(jax.devices()[0].device_kind)


def main(size: str, name: str, chains: int) -> None:
    """Print a JSON object of the environment and the row, on the last line."""
    programs = Counter[str]()
    jax.monitoring.register_event_listener(lambda event, **_: programs.update([FOUND[event]] if event in FOUND else []))
    dpjax.enable_compilation_cache()
    environment = describe()
    row = time_steps(name, STEPS[name](), chains, SIZES[size]) if name in STEPS else time_run(name, chains, SIZES[size])
    counted = {word: float(programs[word]) for word in FOUND.values()}
    fields = row.as_dict(environment) | {"figures": row.figures | counted}
    print(json.dumps({"environment": environment, "row": fields}, ensure_ascii=False))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
