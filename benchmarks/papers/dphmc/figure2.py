"""Figure 2: draws of each algorithm's best, median and worst repeat on the banana, beside exact ones."""

from typing import Any

import jax
import numpy as np

from benchmarks.papers.dphmc.algorithms import NAMES, count_iterations, make_kernel, run_repeats
from benchmarks.papers.dphmc.distances import measure as distances
from benchmarks.papers.dphmc.figure1 import LOOP
from benchmarks.papers.dphmc.problems import make_problem

NUM_SHOWN = 500
EPSILON = 15


def measure(repeats: int, cap: int, largest: int) -> dict[str, Any]:
    """Draws [500, 2] of the best, median and worst repeat by MMD at ε = 15, and as many exact ones.

    The loops whose draws are thinned make `cap` iterations at most, the others `largest`.
    """
    problem = make_problem("banana")
    rng = np.random.default_rng(3)
    result: dict[str, Any] = {"epsilon": EPSILON, "exact": show(problem.draw(rng, NUM_SHOWN)), "algorithms": {}}
    for name in NAMES:
        kernel, thin = make_kernel(name, problem), LOOP.get(name, 1)
        count, spent = count_iterations(kernel, EPSILON, cap if name in LOOP else largest)
        starts = problem.starts(np.random.default_rng(11), repeats)
        draws, _ = run_repeats(kernel, jax.random.key(5), starts, count, thin)
        order = np.argsort([distances(problem, one, rng)["mmd"] for one in draws])
        chosen = {"best": order[0], "median": order[len(order) // 2], "worst": order[-1]}
        shown = {which: show(draws[place, :, draws.shape[2] // 2 :].reshape(-1, 2)) for which, place in chosen.items()}
        result["algorithms"][name] = {"iterations": count, "epsilon_spent": round(spent, 4), "draws": shown}
    return result


def show(draws: np.ndarray) -> list[list[float]]:
    """Evenly spaced draws."""
    places = np.linspace(0, len(draws) - 1, min(NUM_SHOWN, len(draws))).astype(int)
    return [[round(float(number), 3) for number in draw] for draw in draws[places]]


def draw(result: dict[str, Any], figure: Any) -> None:
    """A column for each algorithm; exact draws in grey."""
    axes = figure.subplots(3, len(NAMES), sharex=True, sharey=True)
    exact = np.array(result["exact"])
    for column, (name, found) in enumerate(result["algorithms"].items()):
        for row, (which, draws) in enumerate(found["draws"].items()):
            axis = axes[row, column]
            axis.plot(*exact.T, ".", color="0.75", markersize=2)
            axis.plot(*np.array(draws).T, ".", markersize=2)
            axis.set_title(f"{name}, {which}", fontsize=8)
