"""Figure 1: MMD and mean error of the four algorithms at seven budgets, on both models."""

import json
import sys
import time
from typing import Any

import jax
import numpy as np
from scipy.stats import wilcoxon

from benchmarks.papers.dphmc.algorithms import NAMES, count_iterations, make_kernel, run_repeats
from benchmarks.papers.dphmc.distances import floor, measure as distances
from benchmarks.papers.dphmc.problems import make_problem

EPSILONS = (2, 4, 6, 8, 10, 12, 15)
LOOP = {"DP-SGLD": 20, "DP-SGNHT": 20}
"""Of every so many iterations of the subsampled algorithms a draw is kept."""


def measure(repeats: int, cap: int, budgets: int) -> dict[str, Any]:
    """Every algorithm on both models, `repeats` times, on the last `budgets` of the budgets.

    The settings do not depend on ε, so that a run of a smaller budget is the beginning of a run of a larger one: each
    repeat is run once, for the largest. The subsampled algorithms stop at `cap` iterations of a chain.
    """
    epsilons = EPSILONS[:budgets]
    result: dict[str, Any] = {"epsilons": list(epsilons), "models": {}}
    for model in ("banana", "gaussian"):
        problem = make_problem(model)
        rows = {"floor": round(floor(problem, np.random.default_rng(0)), 4), "algorithms": {}}
        result["models"][model] = rows
        for name in NAMES:
            began = time.perf_counter()
            rows["algorithms"][name] = measure_algorithm(problem, name, repeats, cap, epsilons)
            # A run takes hours: what is measured is shown at once.
            row = json.dumps(rows["algorithms"][name])
            print(f"{model} {name}, {time.perf_counter() - began:.0f} s: {row}", file=sys.stderr, flush=True)
        rows["wilcoxon"] = compare(rows["algorithms"], len(epsilons))
    return result


def measure_algorithm(problem: Any, name: str, repeats: int, cap: int, epsilons: tuple[int, ...]) -> dict[str, Any]:
    """Distances [budget][repeat] of one algorithm."""
    kernel, thin = make_kernel(name, problem), LOOP.get(name, 1)
    counts = [count_iterations(kernel, epsilon, cap if name in LOOP else 10**7) for epsilon in epsilons]
    began = time.perf_counter()
    starts = problem.starts(np.random.default_rng(11), repeats)
    draws, rates = run_repeats(kernel, jax.random.key(5), starts, counts[-1][0], thin)
    seconds = time.perf_counter() - began
    figures = []
    for count, spent in counts:
        rng = np.random.default_rng(12)
        found = [distances(problem, one[:, : max(count // thin, 4)], rng) for one in draws]
        figures.append(
            {"iterations": count, "epsilon_spent": round(spent, 4)}
            | {measure: [round(one[measure], 6) for one in found] for measure in ("mmd", "mean_error")}
        )
    means = {measure: round(float(np.mean(each)), 4) for measure, each in rates.items()}
    return {"seconds": round(seconds, 1), "not_private": means, "budgets": figures}


def compare(algorithms: dict[str, Any], budgets: int) -> dict[str, Any]:
    """Two-sided Wilcoxon signed-rank p-values of the MMD of DP-HMC against each other algorithm, by budget."""
    found: dict[str, Any] = {}
    for name in NAMES[1:]:
        pairs = [
            (algorithms["DP-HMC"]["budgets"][i]["mmd"], algorithms[name]["budgets"][i]["mmd"]) for i in range(budgets)
        ]
        found[name] = [
            {
                "p_value": round(float(wilcoxon(ours, theirs).pvalue), 5),
                "median_difference": round(float(np.median(np.subtract(ours, theirs))), 4),
            }
            for ours, theirs in pairs
        ]
    return found


def draw(result: dict[str, Any], figure: Any) -> None:
    """Medians over repeats, with the range between the quartiles; a row for each model."""
    axes = figure.subplots(2, 2, sharex=True)
    for row, (model, rows) in zip(axes, result["models"].items(), strict=True):
        for axis, kind in zip(row, ("mmd", "mean_error"), strict=True):
            for name, found in rows["algorithms"].items():
                values = np.array([one[kind] for one in found["budgets"]])
                low, middle, high = np.quantile(values, [0.25, 0.5, 0.75], axis=1)
                axis.plot(result["epsilons"], middle, marker="o", markersize=3, label=name)
                axis.fill_between(result["epsilons"], low, high, alpha=0.2)
            axis.set(title=f"{model}: {kind.replace('_', ' ').replace('mmd', 'MMD')}", xlabel="ε", yscale="log")
            if kind == "mmd":
                axis.axhline(rows["floor"], color="black", linewidth=0.8, linestyle=":")
    axes[0, 0].legend(fontsize=7)
