"""What a table of twelve noisy cells and forty noisy counts take with every default: the first call, and one more.

The second call has another key. Programs that depend on the key, as by the length of windows, are compiled again.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
import pandas as pd

import dpjax
from benchmarks.rows import Row
from benchmarks.timing import summarize, time_once

SCALE = 3.0
EFFECTS = np.array([0.5, -0.4, 0.3, -0.6])


def noise(rng: np.random.Generator, n: int) -> np.ndarray:
    """Discrete Laplace noise."""
    difference: np.ndarray = np.subtract(*rng.geometric(1 - np.exp(-1 / SCALE), (2, n)))
    return difference


def table() -> tuple[dpjax.Model, Any, Any]:
    """A log-linear model of ten coefficients, its noisy cells, and these beside the exact totals of one factor."""
    cells = pd.DataFrame(itertools.product("xy", "uv", "pqr"), columns=["A", "B", "C"])
    rng = np.random.default_rng(1)
    flags = [cells["A"] == "y", cells["B"] == "v", cells["C"] == "q", cells["C"] == "r"]
    counts = rng.poisson(np.exp(3.0 + np.stack(flags, axis=1) @ EFFECTS))
    model = dpjax.models.formula("count ~ A*C + B*C + A*B", cells, family="poisson", fields=["C"])
    noisy = dpjax.LocalRelease(counts + noise(rng, 12), dpjax.DiscreteLaplace(SCALE), field="count")
    of_c = dpjax.statistics.group_totals("count", by="C", levels=model.level_names["C"])
    totals = {level: int(counts[cells["C"] == level].sum()) for level in "pqr"}
    return model, noisy, dpjax.joint(noisy, dpjax.Release(totals, dpjax.Exact(), of_c, n=12))


def forty() -> tuple[dpjax.Model, Any]:
    """Forty noisy counts and their regression on one covariate."""
    rng = np.random.default_rng(2)
    areas = pd.DataFrame({"x": rng.uniform(0.0, 1.0, 40)})
    counts = rng.poisson(np.exp(2 + areas["x"])) + noise(rng, 40)
    model = dpjax.models.formula("count ~ x", areas, family="poisson")
    return model, dpjax.LocalRelease(counts, dpjax.DiscreteLaplace(SCALE), field="count")


CASES = ("cells, sample", "cells and totals, sample", "cells, sample_smc", "counts, sample_smc")


@dataclass(frozen=True)
class Size:
    """The cases, draws and steps of warm-up of each of four chains, and particles of each of eight islands."""

    cases: tuple[str, ...] = CASES
    draws: int = 500
    particles: int = 500


SIZES = {"full": Size(), "quick": Size(draws=100, particles=100), "tiny": Size(CASES[-1:], 20, 20)}


def measure(size: Size) -> Iterator[Row]:
    """A row for each case."""
    for name in size.cases:
        problem, sampler = name.split(", ")
        model, release = problem_of(problem)

        def call(number: int, model: Any = model, release: Any = release, sampler: str = sampler) -> Any:
            given = jax.random.key(number), model, release
            if sampler == "sample_smc":
                return dpjax.sample_smc(*given, num_particles=size.particles, progress=False).draws
            return dpjax.sample(*given, num_warmup=size.draws, num_samples=size.draws, progress=False).draws

        first, second = (time_once(lambda number=number, call=call: call(number)) for number in range(2))
        timing = summarize(max(first - second, 0.0), [second])
        runs = 8 if sampler == "sample_smc" else 4
        yield Row("noisy_cells", name, release.n, release.n, runs, timing, {"first s": first, "second s": second})


def problem_of(name: str) -> tuple[dpjax.Model, Any]:
    """The model and the release of a case."""
    if name == "counts":
        return forty()
    model, noisy, both = table()
    return model, both if "totals" in name else noisy
