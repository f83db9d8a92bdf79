"""Sweeps of the samplers in a CPU second, and effective draws of the number of clusters.

One core, one thread. Compilation is apart: the same program is called again and the later calls are timed.
"""

import resource
from collections.abc import Iterator
from functools import partial
from itertools import count
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from dpjax.mixture.samplers.relabelled import MarginalScheme
from dpjax.mixture.schemes import functions_of

from benchmarks.mixture.chains import SAMPLERS, time_draws
from benchmarks.mixture.problems import make_problem
from dpjax import diagnostics
from dpjax.mixture.results.report import join
from dpjax.mixture.run import Phase, Run, Status
from dpjax.mixture.samplers.conditional import Problem, Scheme
from dpjax.mixture.starts import start_labels

EPSILON = 10.0
GROUPS = 8
MIN_EFFECTIVE = 400
VARIANTS = ("exact", "metropolis", "4 offers", "Neal 5, m = 1")
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
    """CPU seconds, and the numbers of clusters [chain, sweep] and mean acceptance of the sweeps made in them.

    The seconds are not a number where slots were added.
    """

    seconds: float
    num_clusters: np.ndarray
    acceptance: float


def draw_parts(n: int, sampler: str, num_chains: int, sweeps: int) -> Iterator[Part]:
    """Stretches of one run, without end; compilation and a first stretch are left out."""
    problem, scheme = make_problem(n, EPSILON), SAMPLERS[sampler]
    keys = jax.random.split(jax.random.key(1), num_chains)
    run = Run(problem, functions_of(scheme)[1], (), keys)
    status = Status(scheme, start(problem, scheme, keys))
    for number in count():
        status, seconds = time_draws(run, Phase("stretch", number * sweeps, sweeps, 1), Status(*status[:2]))
        if number > 0:
            draw = join(status.chunks)
            yield Part(seconds, draw.num_clusters.astype(float), float(draw.info.acceptance_rate.mean()))


def describe_row(n: int, variant: str, num_chains: int, parts: list[Part]) -> dict[str, Any]:
    """The speed of the median stretch, and how much all of them tell of the number of clusters."""
    number = np.concatenate([part.num_clusters for part in parts], axis=1)
    seconds = float(np.nanmedian([part.seconds for part in parts])) / parts[0].num_clusters.size
    effective = float(diagnostics.ess_bulk(number)) / number.size
    enough = effective * number.size > MIN_EFFECTIVE
    return {
        "n": n,
        "sampler": variant,
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
def start(problem: Problem, scheme: Scheme | MarginalScheme, keys: jax.Array) -> Any:
    """States [chain, ...] that begin with a few groups."""
    begin, _ = functions_of(scheme)
    labels = start_labels(problem.values, jnp.array(GROUPS))
    return jax.vmap(lambda key: begin(problem, scheme, key, labels, problem.values))(keys)


def draw(result: dict[str, Any], axes: Any) -> None:
    """Sweeps a second against the number of records."""
    for name in VARIANTS:
        rows = [row for row in result["rows"] if row["sampler"] == name and row["chains"] == 1]
        axes.loglog([row["n"] for row in rows], [row["sweeps_per_second"] for row in rows], "o-", label=name)
    axes.loglog(list(REFERENCE), list(REFERENCE.values()), "k^", label="C++")
    axes.set(xlabel="records", ylabel="sweeps per CPU second", title="One chain, one core")
    axes.legend()
