"""Sweeps of the samplers in a CPU second, and effective draws of the number of clusters.

One core, one thread. Compilation and warm-up are apart: see `benchmarks.papers.mixture.chains.run_chains`.
"""

import resource
from typing import Any

import numpy as np

from benchmarks.papers.mixture.chains import Length, run_chains
from benchmarks.papers.mixture.problems import make_problem
from dpjax import diagnostics
from dpjax.mixture import MixturePosterior

EPSILON = 10.0
MIN_EFFECTIVE = 400
MIN_WARMUP = 20
REFERENCE = {200: 2_980, 1_000: 417}
"""Sweeps a second of a C++ implementation of the slice sampler on another core, for orientation."""


def measure(sweeps: int, largest: int, variants: tuple[str, ...]) -> dict[str, Any]:
    """Rows of every variant at n = 200 with 1 and 16 chains, at n = 1,000, and of sizes up to the largest."""
    rows = []
    for name in variants:
        rows += measure_rows(200, name, {1: 5 * sweeps, 16: 5 * sweeps // 16})
    for name in variants:
        rows += measure_rows(1_000, name, {1: sweeps})
    for n in (10_000, 100_000):
        if n <= largest:
            rows += [
                row for name in ("exact", "metropolis") for row in measure_rows(n, name, {1: max(20, 200_000 // n)})
            ]
    return {"epsilon": EPSILON, "reference_sweeps": REFERENCE, "rows": rows}


def measure_rows(n: int, variant: str, lengths: dict[int, int], repeats: int = 5) -> list[dict[str, Any]]:
    """The figures of one variant for numbers of chains with their sweeps a chain; they take turns on the machine."""
    runs: dict[int, list[tuple[MixturePosterior, float]]] = {chains: [] for chains in lengths}
    for repeat in range(repeats):
        for chains, found in runs.items():
            length = Length(max(MIN_WARMUP, lengths[chains] // 5), lengths[chains])
            found.append(run_chains(variant, make_problem(n, EPSILON), repeat, length, num_chains=chains))
    return [describe_row(n, variant, chains, found) for chains, found in runs.items()]


def describe_row(n: int, variant: str, num_chains: int, runs: list[tuple[MixturePosterior, float]]) -> dict[str, Any]:
    """The speed of the median run, and how much all of them tell of the number of clusters."""
    number = np.concatenate([posterior.draws["num_clusters"].astype(float) for posterior, _ in runs])
    seconds = float(np.median([seconds for _, seconds in runs])) * len(runs) / number.size
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
        "acceptance": round(float(np.mean([posterior.info["acceptance_rate"].mean() for posterior, _ in runs])), 4),
        "peak_megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


def draw(result: dict[str, Any], axes: Any) -> None:
    """Sweeps a second against the number of records."""
    for name in dict.fromkeys(row["sampler"] for row in result["rows"]):
        rows = [row for row in result["rows"] if row["sampler"] == name and row["chains"] == 1]
        axes.loglog([row["n"] for row in rows], [row["sweeps_per_second"] for row in rows], "o-", label=name)
    axes.loglog(list(REFERENCE), list(REFERENCE.values()), "k^", label="C++")
    axes.set(xlabel="records", ylabel="sweeps per CPU second", title="One chain, one core")
    axes.legend()
