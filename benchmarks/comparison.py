"""Posteriors published in five ways at one budget, beside the posterior given the records.

One row for each model, way and ε, at δ = 10⁻⁶ under replace-one neighbours. MMD is that to draws of the posterior given
the records, on its own scale.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import process_time
from typing import Any

import jax
import numpy as np
from scipy.spatial.distance import cdist

from benchmarks.comparison_problems import Problem, make_problem
from benchmarks.comparison_ways import WAYS, Refused, prepare
from benchmarks.rows import Row
from benchmarks.timing import timing_since
from dpjax.coupling import squared_mmd

EXACT = 1_000
"""Draws of the posterior given the records, and those that are compared with them at most."""
LEVEL = 0.9


@dataclass(frozen=True)
class Size:
    """Problems with their numbers of records, budgets, and repeats: each has its own truth, records and noise."""

    problems: tuple[tuple[str, int], ...] = (
        ("logistic", 20_000),
        ("Poisson", 20_000),
        ("banana", 100_000),
        ("Gaussian", 100_000),
    )
    epsilons: tuple[float, ...] = (0.3, 1.0, 3.0, 10.0)
    repeats: int = 8


SIZES = {"full": Size(), "quick": Size(repeats=3), "tiny": Size((("logistic", 200),), (3.0,), 1)}


def measure(size: Size) -> Iterator[Row]:
    """A row for each model, way and ε."""
    for name, n in size.problems:
        problem = make_problem(name, n)
        for epsilon in size.epsilons:
            for way in WAYS:
                yield measure_way(problem, way, epsilon, size.repeats)


def measure_way(problem: Problem, way: str, epsilon: float, repeats: int) -> Row:
    """The means over repeats; no figures but the number of repeats, 0, where the budget buys no run."""
    begin, found = process_time(), []
    try:
        publish = prepare(way, problem, epsilon)
        found = [score(problem, publish, number) for number in range(repeats)]
    except Refused:
        pass
    timing = timing_since(begin)
    figures = {"epsilon": epsilon, "repeats": float(len(found))}
    if found:
        figures |= {name: float(np.mean([one[name] for one in found])) for name in found[0]}
        figures["se of covered"] = float(np.std([one["covered"] for one in found]) / np.sqrt(repeats))
    return Row("comparison", f"{problem.name}, {way}", problem.n, len(problem.guess), 1, timing, figures)


def score(problem: Problem, publish: Callable[[int, Any], np.ndarray], number: int) -> dict[str, float]:
    """How one repeat's draws compare with those given the records, and whether its intervals hold the truth."""
    rng = np.random.default_rng(number)
    truth = problem.truth(rng)
    records = problem.draw_records(jax.random.key(10 + number), truth)
    exact, draws = problem.exact(rng, records, EXACT), publish(number, records)
    low, high = interval(draws)
    centre, deviation = exact.mean(axis=0), exact.std(axis=0)
    return {
        "MMD": distance((draws - centre) / deviation, (exact - centre) / deviation),
        "covered": float(np.mean((low <= truth) & (truth <= high))),
        "width": float(np.mean((high - low) / np.subtract(*interval(exact)[::-1]))),
        "error": float(np.sqrt(np.mean(((draws.mean(axis=0) - centre) / deviation) ** 2))),
    }


def interval(draws: np.ndarray) -> np.ndarray:
    """The limits [2, d] of 90 % intervals."""
    return np.quantile(draws, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)


def distance(draws: np.ndarray, exact: np.ndarray) -> float:
    """The root of the unbiased estimate of MMD², 0 where it is negative; the width is the exact draws' median one."""
    thinned = draws[np.linspace(0, len(draws) - 1, min(EXACT, len(draws))).astype(int)]
    width = float(np.median(cdist(exact[::2], exact[1::2])))
    return float(np.sqrt(max(squared_mmd(thinned, exact, width).value, 0.0)))
