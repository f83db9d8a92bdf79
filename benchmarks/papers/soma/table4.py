"""Table 4: CPU seconds of a single chain of every problem and sampler, beside the paper's seconds."""

from typing import Any

import jax
import jax.numpy as jnp

import dpjax
from benchmarks.papers.soma.problems import SAMPLERS, Problem, histogram, regression, two_records
from benchmarks.timing import time_call

ITERATIONS = {"two records": 5_000, "histogram": 10_000, "regression": 10_000}
PAPER = {
    "two records, beta, ε = 5": (2.1578, 1.4616, 2.6208),
    "two records, beta, ε = 10": (2.1750, 1.4904, 2.6344),
    "two records, beta, ε = 50": (2.2103, 1.5545, 2.6941),
    "two records, exponential, ε = 1": (1.8642, 1.2175, 2.3435),
    "two records, exponential, ε = 2": (1.8794, 1.2341, 2.3652),
    "two records, exponential, ε = 10": (1.9076, 1.2896, 2.4150),
    "histogram, n = 10, ε = 3": (1.2632, 0.9367, 1.6948),
    "histogram, n = 20, ε = 3": (1.2571, 0.9405, 1.6990),
    "histogram, n = 50, ε = 3": (1.2634, 0.9457, 1.7182),
    "regression, n = 100, ε = 30": (110.6691, 102.5582, 216.3009),
    "regression, n = 10, ε = 30": (19.4360, 18.4205, 29.0447),
    "regression, n = 10, ε = 3": (20.2298, 18.8668, 29.1283),
}
"""Seconds on a CPU, Intel Core i9-10900K, in the order of `SAMPLERS`."""


def measure(divisor: int, repeats: int) -> dict[str, Any]:
    """CPU seconds of each row and sampler, scaled up from a `divisor`-th of the paper's iterations.

    An iteration is one proposal of the histogram, whose times in the paper do not grow with n; a sweep of two proposals
    of the two records; and an update of the parameters with a sweep of n proposals of the regression. Compilation is
    left out.
    """
    rows: dict[str, Any] = {}
    programs: dict[Any, Any] = {}
    for name, paper in PAPER.items():
        problem = make_problem(name)
        rows[name] = {}
        for (sampler, imputation), theirs in zip(SAMPLERS.items(), paper, strict=True):
            sweeps = count_sweeps(name, problem[1].n) // divisor
            # Rows that differ in ε alone share a program.
            key = (sampler, name.rsplit(",", 1)[0])
            if key not in programs:
                programs[key] = make_program(problem[0], imputation, sweeps)
            timing, rate = time_call(lambda run=programs[key], release=problem[1]: run(release), repeats)
            seconds = timing.median_seconds * divisor
            figures = {"seconds": seconds, "paper": theirs, "times faster": theirs / seconds}
            rows[name][sampler] = figures | {"acceptance_rate": float(rate)}
    return {"rows": rows}


def make_problem(name: str) -> Problem:
    """The problem of a row."""
    kind, size, budget = name.split(", ")
    epsilon = int(budget.split("=")[1])
    if kind == "two records":
        return two_records(size, epsilon)
    n = int(size.split("=")[1])
    return histogram(n, epsilon) if kind == "histogram" else regression(n, epsilon)


def count_sweeps(name: str, n: int) -> int:
    """How many sweeps of n proposals are the paper's iterations of a row."""
    kind = name.split(",")[0]
    return ITERATIONS[kind] // n if kind == "histogram" else ITERATIONS[kind]


def make_program(model: dpjax.Model, imputation: dpjax.base.Imputation, sweeps: int) -> Any:
    """A chain of so many sweeps at a release, as a program that returns its acceptance rate."""
    tuning = dpjax.data_augmentation.initial_tuning(jax.random.key(0), model)

    @jax.jit
    def run(release: dpjax.Release) -> jax.Array:
        parameter_key, records_key, run_key = jax.random.split(jax.random.key(5), 3)
        algorithm = dpjax.gibbs(model, release, imputation, interweave=False, tuning=tuning)
        state = algorithm.init(model.sample_prior(parameter_key), records_key)

        def step(state: dpjax.data_augmentation.GibbsState, index: jax.Array) -> tuple:
            state, info = algorithm.step(jax.random.fold_in(run_key, index), state)
            return state, info.imputation.acceptance_rate

        return jnp.mean(jax.lax.scan(step, state, jnp.arange(sweeps))[1])

    return run


def draw(result: dict[str, Any], axes: Any) -> None:
    """How many times faster than the paper's each row is."""
    rows = result["rows"]
    for shift, sampler in enumerate(SAMPLERS):
        places = [place + 0.25 * (shift - 1) for place in range(len(rows))]
        axes.barh(places, [row[sampler]["times faster"] for row in rows.values()], 0.25, label=sampler)
    axes.set_yticks(range(len(rows)), list(rows))
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlabel("times faster than the paper's CPU")
    axes.legend()
