"""Very many relabelled SOMA pairs of the perturbed histogram until they meet: seconds on one core."""

import time
from typing import Any

import numpy as np

import dpjax
from benchmarks.papers.soma.meetings import coupled_steps, meet
from benchmarks.papers.soma.problems import histogram
from dpjax.coupling import coupled_gibbs

EPSILON = 5.0
BATCH = 1_024


def measure(n: int, pairs: int, cap: int) -> dict[str, Any]:
    """Seconds for all pairs to meet, those of a first run of one batch, which compiles, and the meeting times."""
    kernel = coupled_gibbs(*histogram(n, EPSILON), dpjax.soma(), proposals=1)
    first = time_pairs(kernel, min(BATCH, pairs), cap)[0]
    seconds, processor_seconds, meetings = time_pairs(kernel, pairs, cap)
    times = coupled_steps(meetings)
    return {
        "seconds": seconds,
        "processor seconds": processor_seconds,
        "seconds of a first batch with compilation": first,
        "mean": float(np.mean(times)),
        "quantiles": {str(q): float(np.quantile(times, q)) for q in (0.5, 0.9, 0.99, 0.999)},
        "largest": max(times),
        "capped": meetings.num_censored,
        "counts": np.histogram(times, bins=np.arange(0, 1_001, 20))[0].tolist(),
    }


def time_pairs(kernel: Any, pairs: int, cap: int) -> tuple[float, float, Any]:
    """Seconds by the clock and of the processor, and the meetings."""
    began, processor_began = time.perf_counter(), time.process_time()
    meetings = meet(kernel, pairs, cap, batch_size=BATCH)
    return time.perf_counter() - began, time.process_time() - processor_began, meetings


def draw(result: dict[str, Any], axes: Any) -> None:
    """The meeting times as a histogram."""
    axes.bar(np.arange(10, 1_000, 20), result["counts"], width=20)
    axes.set_xlabel("proposals until the meeting")
    axes.set_ylabel("pairs")
