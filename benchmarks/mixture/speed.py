"""Sweeps of the conditional sampler in a CPU second, and effective draws of the number of clusters.

One core, one thread. Compilation is apart: the same program is called twice and the second call is timed.
"""

import resource
import time
from functools import partial
from typing import Any

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
MIN_EFFECTIVE = 100
VARIANTS = {"exact": 0, "metropolis": 1, "4 offers": 4}
REFERENCE = {200: 2_980, 1_000: 417}
"""Sweeps a second of a C++ implementation of the slice sampler on another core, for orientation."""


def measure(sweeps: int, largest: int) -> dict[str, Any]:
    """Rows of every variant at n = 200 and 1,000, of 16 chains, and of sizes up to the largest."""
    rows = [measure_row(200, name, 1, 5 * sweeps) for name in VARIANTS]
    rows += [measure_row(200, name, 16, 5 * sweeps // 4) for name in VARIANTS]
    rows += [measure_row(1_000, name, 1, sweeps) for name in VARIANTS]
    sizes = [n for n in (10_000, 100_000) if n <= largest]
    rows += [measure_row(n, name, 1, max(20, 200_000 // n * 5)) for n in sizes for name in ("exact", "metropolis")]
    return {"epsilon": EPSILON, "reference_sweeps": REFERENCE, "rows": rows}


def measure_row(n: int, variant: str, num_chains: int, sweeps: int) -> dict[str, Any]:
    """The figures of one variant."""
    problem, scheme = make_problem(n, EPSILON), Scheme("posterior", CAPACITY, VARIANTS[variant], in_turn=True)
    keys = jax.random.split(jax.random.key(1), num_chains)
    run = partial(run_chunk, sweep, scheme, (), sweeps, problem=problem, chain_keys=keys, thin=np.int32(1))
    length = np.int32(sweeps)
    states = jax.block_until_ready(run(states=start(problem, scheme, keys), start=np.int32(0), length=length))[0]
    began = time.process_time()
    _, draws, made, _ = jax.block_until_ready(run(states=states, start=length, length=length))
    seconds, made = time.process_time() - began, int(made)
    number = np.asarray(draws.num_clusters, float)[:made].T
    effective = float(diagnostics.ess_bulk(number))
    return {
        "n": n,
        "records": variant,
        "chains": num_chains,
        "sweeps": made * num_chains,
        "sweeps_per_second": round(made * num_chains / seconds, 1),
        "microseconds": round(1e6 * seconds / made / num_chains, 1),
        # Shorter runs do not tell.
        "effective_per_1000": round(1_000 * effective / number.size, 1) if effective > MIN_EFFECTIVE else None,
        "effective_per_second": round(effective / seconds, 1) if effective > MIN_EFFECTIVE else None,
        "mean_clusters": round(float(number.mean()), 3),
        "acceptance": round(float(np.mean(np.asarray(draws.info.acceptance_rate)[:made])), 4),
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
