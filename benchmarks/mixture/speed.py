"""Sweeps of the conditional sampler in a CPU second, and effective draws of the number of clusters.

One core, one thread. Compilation is apart: the same program is called again and the later calls are timed.
"""

import resource
import time
from collections.abc import Iterator
from functools import partial
from itertools import count
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.mixture.problems import make_problem
from dpjax import diagnostics
from dpjax.mixture.chunks import run_chunk
from dpjax.mixture.conditional import Problem, Scheme, start_state, sweep
from dpjax.mixture.starts import start_labels

EPSILON = 10.0
CAPACITY = 40
GROUPS = 8
MIN_EFFECTIVE = 400
VARIANTS = {"exact": 0, "metropolis": 1, "4 offers": 4}
REFERENCE = {200: 2_980, 1_000: 417}
"""Sweeps a second of a C++ implementation of the slice sampler on another core, for orientation."""


def measure(sweeps: int, largest: int) -> dict[str, Any]:
    """Rows of every variant at n = 200 with 1 and 16 chains, at n = 1,000, and of sizes up to the largest."""
    rows = []
    for name in VARIANTS:
        rows += measure_rows(200, name, {1: 5 * sweeps, 16: 5 * sweeps // 16})
    for name in VARIANTS:
        rows += measure_rows(1_000, name, {1: sweeps})
    for n in (10_000, 100_000):
        if n <= largest:
            rows += [
                row for name in ("exact", "metropolis") for row in measure_rows(n, name, {1: max(4, 200_000 // n)})
            ]
    return {"epsilon": EPSILON, "reference_sweeps": REFERENCE, "rows": rows}


def measure_rows(n: int, variant: str, lengths: dict[int, int], repeats: int = 5) -> list[dict[str, Any]]:
    """The figures of one variant for numbers of chains with their sweeps a chain; they take turns on the machine."""
    parts: dict[int, list[Part]] = {chains: [] for chains in lengths}
    series = {chains: draw_parts(n, variant, chains, length) for chains, length in lengths.items()}
    for _ in range(repeats):
        for chains, found in parts.items():
            found.append(next(series[chains]))
    return [describe_row(n, variant, chains, found) for chains, found in parts.items()]


class Part(NamedTuple):
    """CPU seconds, and the numbers of clusters [chain, sweep] and mean acceptance of the sweeps made in them."""

    seconds: float
    num_clusters: np.ndarray
    acceptance: float


def draw_parts(n: int, variant: str, num_chains: int, sweeps: int) -> Iterator[Part]:
    """Stretches of one run, without end; compilation and a first stretch are left out."""
    problem, scheme = make_problem(n, EPSILON), Scheme("posterior", CAPACITY, VARIANTS[variant], in_turn=True)
    keys = jax.random.split(jax.random.key(1), num_chains)
    length = np.int32(sweeps)
    advance = partial(
        run_chunk, sweep, scheme, (), sweeps, problem=problem, chain_keys=keys, thin=np.int32(1), length=length
    )
    states = jax.block_until_ready(advance(states=start(problem, scheme, keys), start=np.int32(0)))[0]
    for number in count(1):
        began = time.process_time()
        states, draws, made, _ = jax.block_until_ready(advance(states=states, start=np.int32(number * sweeps)))
        seconds = time.process_time() - began
        if made < sweeps:
            raise RuntimeError(f"{CAPACITY} slots do not suffice for {n} records.")
        yield Part(seconds, np.asarray(draws.num_clusters, float).T, float(draws.info.acceptance_rate.mean()))


def describe_row(n: int, variant: str, num_chains: int, parts: list[Part]) -> dict[str, Any]:
    """The speed of the median stretch, and how much all of them tell of the number of clusters."""
    number = np.concatenate([part.num_clusters for part in parts], axis=1)
    seconds = float(np.median([part.seconds for part in parts])) / parts[0].num_clusters.size
    effective = float(diagnostics.ess_bulk(number)) / number.size
    enough = effective * number.size > MIN_EFFECTIVE
    return {
        "n": n,
        "records": variant,
        "chains": num_chains,
        "sweeps": number.size,
        "sweeps_per_second": round(1 / seconds, 1),
        "microseconds": round(1e6 * seconds, 1),
        # Shorter runs do not tell.
        "effective_per_1000": round(1_000 * effective, 1) if enough else None,
        "effective_per_second": round(effective / seconds, 1) if enough else None,
        "mean_clusters": round(float(number.mean()), 3),
        "acceptance": round(float(np.mean([part.acceptance for part in parts])), 4),
        "peak_megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


@partial(jax.jit, static_argnames="scheme")
def start(problem: Problem, scheme: Scheme, keys: jax.Array) -> Any:
    """States [chain, ...] that begin with a few groups."""
    labels = start_labels(problem.values, jnp.array(GROUPS))
    return jax.vmap(lambda key: start_state(problem, scheme, key, labels, problem.values))(keys)


def draw(result: dict[str, Any], axes: Any) -> None:
    """Sweeps a second against the number of records."""
    for name in VARIANTS:
        rows = [row for row in result["rows"] if row["records"] == name and row["chains"] == 1]
        axes.loglog([row["n"] for row in rows], [row["sweeps_per_second"] for row in rows], "o-", label=name)
    axes.loglog(list(REFERENCE), list(REFERENCE.values()), "k^", label="C++")
    axes.set(xlabel="records", ylabel="sweeps per CPU second", title="Conditional sampler, one chain, one core")
    axes.legend()
