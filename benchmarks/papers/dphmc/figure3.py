"""Figure 3: what clipping the log-likelihood ratios does to the law that is reached, without any noise."""

import sys
from math import inf
from typing import Any

import jax
import numpy as np

from benchmarks.papers.dphmc.algorithms import JITTER, run_repeats
from benchmarks.papers.dphmc.distances import measure as distances
from benchmarks.papers.dphmc.problems import Problem, make_problem
from benchmarks.papers.parts import pool, repeats_of
from dpjax import private

HMC = {
    "banana": {"step_size": 0.01, "num_leapfrog": 100, "gradient_bound": 10.0},
    "gaussian": {"step_size": 5e-4, "num_leapfrog": 12, "gradient_bound": 100.0},
}
WALK = {"banana": 0.3, "gaussian": 7e-4}
ITERATIONS = {"HMC": {"banana": 1_000, "gaussian": 1_000}, "RWMH": {"banana": 12_000, "gaussian": 25_000}}


def measure(repeats: int, divisor: int, bounds: dict[str, tuple[float, ...]], part: int) -> dict[str, Any]:
    """MMD and the clipped fraction at each bound, with a `divisor`-th of the paper's iterations."""
    result: dict[str, Any] = {"models": {}}
    for model, tried in bounds.items():
        problem = make_problem(model)
        result["models"][model] = {}
        for name in ("RWMH", "HMC"):
            result["models"][model][name] = [
                measure_bound(problem, name, bound, repeats_of(part, repeats), divisor) for bound in (*tried, inf)
            ]
            print(f"{model} {name}", file=sys.stderr, flush=True)
    return result


def measure_bound(problem: Problem, name: str, bound: float, places: range, divisor: int) -> dict[str, Any]:
    """One clip bound, for the repeats at some places."""
    if name == "HMC":
        settings = dict(HMC[problem.name])
        steps = private.halton_steps(settings.pop("step_size"), **JITTER, rng=np.random.default_rng(7))
        kernel = private.hmc(problem.target, step_size=steps, ratio_bound=bound, **settings)
    else:
        kernel = private.rwmh(problem.target, proposal_scale=WALK[problem.name], ratio_bound=bound)
    starts = problem.starts(np.random.default_rng(11), places.stop)
    count = ITERATIONS[name][problem.name] // divisor
    draws, rates = run_repeats(kernel, jax.random.key(6), starts, count, places=places)
    found = [distances(problem, one, np.random.default_rng(12)) for one in draws]
    shown = bound if bound < inf else None
    figures = {f"{measure}_each": each for measure, each in rates.items()}
    return pool({"bound": shown, **figures, "mmd_each": [round(one["mmd"], 5) for one in found]})


def draw(result: dict[str, Any], figure: Any) -> None:
    """MMD over the bound and over the clipped fraction; a row for each model."""
    axes = figure.subplots(2, 2)
    for row, (model, algorithms) in zip(axes, result["models"].items(), strict=True):
        for name, found in algorithms.items():
            clipped = [one for one in found if one["bound"] is not None]
            middle = [one["mmd"] for one in clipped]
            row[0].plot([one["bound"] for one in clipped], middle, marker="o", markersize=3, label=name)
            fractions = [one["clipped_ratios"] for one in clipped]
            row[1].plot(fractions, middle, marker="o", markersize=3, label=name)
        row[0].set(title=model, xlabel="clip bound", ylabel="MMD", xscale="log", yscale="log")
        row[1].set(title=model, xlabel="fraction clipped", yscale="log")
    axes[0, 0].legend(fontsize=7)
