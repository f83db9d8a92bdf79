"""Figure 2: draws of each algorithm's best, median and worst repeat on the banana, beside exact ones."""

from typing import Any

import jax
import numpy as np

from benchmarks.papers.dphmc.algorithms import NAMES, count_iterations, make_kernel, run_repeats
from benchmarks.papers.dphmc.distances import NUM_REFERENCE, mmd
from benchmarks.papers.dphmc.figure1 import LOOP
from benchmarks.papers.dphmc.problems import Problem, make_problem
from benchmarks.papers.parts import pool, repeats_of

NUM_SHOWN = 500
EPSILON = 15


def measure(repeats: int, cap: int, largest: int, part: int) -> dict[str, Any]:
    """Draws [500, 2] of each repeat at ε = 15 with their MMD, and as many exact ones.

    The loops whose draws are thinned make `cap` iterations at most, the others `largest`.
    """
    problem, places = make_problem("banana"), repeats_of(part, repeats)
    exact = show(problem.draw(np.random.default_rng(3), NUM_SHOWN))
    result: dict[str, Any] = {"epsilon": EPSILON, "exact": exact, "algorithms": {}}
    for name in NAMES:
        kernel, thin = make_kernel(name, problem), LOOP.get(name, 1)
        count, spent = count_iterations(kernel, EPSILON, cap if name in LOOP else largest)
        starts = problem.starts(np.random.default_rng(11), places.stop)
        draws, _ = run_repeats(kernel, jax.random.key(5), starts, count, thin, places)
        shown = [show(one[:, one.shape[1] // 2 :].reshape(-1, 2)) for one in draws]
        far = [round(mmd_of(problem, one), 5) for one in shown]
        told = {"iterations": count, "epsilon_spent": round(spent, 4)}
        result["algorithms"][name] = pool({**told, "mmd_each": far, "draws_each": shown})
    return result


def mmd_of(problem: Problem, shown: list[list[float]]) -> float:
    """The MMD of the draws shown."""
    rng = np.random.default_rng(12)
    return mmd(np.array(shown), problem.draw(rng, NUM_REFERENCE), rng)


def show(draws: np.ndarray) -> list[list[float]]:
    """Evenly spaced draws."""
    places = np.linspace(0, len(draws) - 1, min(NUM_SHOWN, len(draws))).astype(int)
    return [[round(float(number), 3) for number in draw] for draw in draws[places]]


def draw(result: dict[str, Any], figure: Any) -> None:
    """A column for each algorithm, its best, median and worst repeat by MMD; exact draws in grey."""
    axes = figure.subplots(3, len(NAMES), sharex=True, sharey=True)
    exact = np.array(result["exact"])
    for column, (name, found) in enumerate(result["algorithms"].items()):
        order = np.argsort(found["mmd_each"])
        chosen = {"best": order[0], "median": order[len(order) // 2], "worst": order[-1]}
        for row, (which, place) in enumerate(chosen.items()):
            axis = axes[row, column]
            axis.plot(*exact.T, ".", color="0.75", markersize=2)
            axis.plot(*np.array(found["draws_each"][place]).T, ".", markersize=2)
            axis.set_title(f"{name}, {which}", fontsize=8)
