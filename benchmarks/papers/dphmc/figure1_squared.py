"""What the authors' dynamics of DP-SGLD approach, at any budget: the square of the posterior."""

from typing import Any

import numpy as np

from benchmarks.papers.dphmc.distances import NUM_REFERENCE, mmd
from benchmarks.papers.dphmc.problems import TWIST, Problem, make_problem
from benchmarks.papers.rows import PAPERS, read_result


def measure(repeats: int) -> dict[str, Any]:
    """MMD of exact draws of the square to those of the posterior, and over that of DP-HMC by ε, of the run kept."""
    kept = read_result(PAPERS / "dphmc" / "results" / "figure1.json")
    result: dict[str, Any] = {"epsilons": kept["epsilons"]}
    for model in ("banana", "gaussian"):
        problem, rng = make_problem(model), np.random.default_rng(13)
        found = [
            mmd(squared(problem, rng, NUM_REFERENCE), problem.draw(rng, NUM_REFERENCE), rng) for _ in range(repeats)
        ]
        private = [np.median(budget["mmd"]) for budget in kept["models"][model]["algorithms"]["DP-HMC"]["budgets"]]
        result[model] = {
            "mmd": float(np.mean(found)),
            "standard_error": float(np.std(found, ddof=1) / np.sqrt(repeats)),
            "over_dp_hmc": [float(np.mean(found) / one) for one in private],
        }
    return result


def squared(problem: Problem, rng: np.random.Generator, count: int) -> np.ndarray:
    """Exact draws of the square of the posterior density: where it is Normal, deviations are shorter by √2."""
    straight = straighten(problem, problem.draw(rng, 100 * count), 1)
    mean = straight.mean(axis=0)
    return straighten(problem, mean + (straight[:count] - mean) / np.sqrt(2), -1)


def straighten(problem: Problem, draws: np.ndarray, sign: int) -> np.ndarray:
    """The map under which the banana is Normal, or back; it keeps volumes, so that it maps the square's draws, too."""
    if problem.name != "banana":
        return draws
    return np.stack([draws[:, 0], draws[:, 1] + sign * TWIST * draws[:, 0] ** 2], axis=1)


def draw(result: dict[str, Any], figure: Any) -> None:
    """The ratio against ε."""
    axis = figure.subplots()
    for model in ("banana", "gaussian"):
        axis.plot(result["epsilons"], result[model]["over_dp_hmc"], marker="o", label=model)
    axis.axhline(1, color="black", linewidth=0.8, linestyle=":")
    axis.set(xlabel="ε", ylabel="least MMD of the authors' DP-SGLD over that of DP-HMC", yscale="log")
    axis.legend()
