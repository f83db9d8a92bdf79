"""Effective draws per CPU second of a first call of a sampler, compilation included."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.rows import Row
from benchmarks.timing import timing_since
from dpjax.diagnostics import ess_bulk, split_r_hat


@dataclass(frozen=True)
class Size:
    """The cases, chains, and their steps of warm-up and draws."""

    cases: tuple[str, ...]
    chains: int = 4
    steps: tuple[int, int] = (1_000, 1_000)

    @property
    def options(self) -> dict[str, Any]:
        """The arguments of a sampler of dpjax."""
        warmup, samples = self.steps
        return {"num_chains": self.chains, "num_warmup": warmup, "num_samples": samples, "progress": False}


def measure_first(
    benchmark: str, case: str, shape: tuple[int, int], size: Size, call: Callable[[], dict[str, Any]]
) -> Row:
    """The row of a call that returns draws [chain, draw, ...], of the worst parameter; a shape is n and d."""
    began = time.process_time()
    drawn = [np.asarray(leaf, float) for leaf in call().values()]
    timing = timing_since(began)
    least = min(float(np.min(ess_bulk(leaf))) for leaf in drawn)
    figures = {
        "effective per s": least / timing.best_seconds,
        "effective": least,
        "R-hat": max(float(np.max(split_r_hat(leaf))) for leaf in drawn),
        "s": timing.best_seconds,
    }
    return Row(benchmark, case, *shape, size.chains, timing, figures)
