"""Table 3: coupling times of the regression with 10 records, a step being an update and 10 proposals."""

from typing import Any

import numpy as np

import dpjax
from benchmarks.papers.soma.meetings import acceptance_rate, coupled_steps, meet
from benchmarks.papers.soma.problems import SAMPLERS, regression
from dpjax.coupling import convergence_rate, coupled_gibbs

PAPER = {
    3: {
        "imwg_random": (156.04, 0.9937, 94.80),
        "imwg_systematic": (99.60, 0.9904, 94.81),
        "soma": (152.98, 0.9937, 99.49),
    },
    30: {
        "imwg_random": (900.79, 0.9989, 50.95),
        "imwg_systematic": (549.07, 0.9982, 50.94),
        "soma": (120.64, 0.9909, 91.91),
    },
}
"""Mean coupling time, rate and acceptance in per cent, by ε."""

KERNELS = {
    "soma": ("soma", True),
    "soma_equal_indices": ("soma", False),
    "imwg_random": ("imwg_random", False),
    "imwg_systematic": ("imwg_systematic", False),
}


def measure(
    pairs: int, cap: int, parameters: str, epsilons: tuple[int, ...], kernels: tuple[str, ...]
) -> dict[str, Any]:
    """By ε and kernel: mean and quartiles of the coupling time, the rate with its interval, and the acceptance.

    Parameters are coupled by common random numbers or as `parameters` says, such as ``"maximal"``; the paper does not
    say how. Means are restricted at the cap.
    """
    return {str(epsilon): measure_budget(epsilon, kernels, pairs, cap, parameters) for epsilon in epsilons}


def measure_budget(epsilon: int, kernels: tuple[str, ...], pairs: int, cap: int, parameters: Any) -> dict[str, Any]:
    """The rows of one privacy budget."""
    problem = regression(10, epsilon)
    chosen = {name: KERNELS[name] for name in kernels}
    samplers = dict.fromkeys(sampler for sampler, _ in chosen.values())
    rates = {name: acceptance_rate(problem, SAMPLERS[name]) for name in samplers}
    rows = {}
    for name, (sampler, relabel) in chosen.items():
        row = measure_kernel(problem, SAMPLERS[sampler], relabel, pairs, cap, parameters)
        rows[name] = row | {"acceptance_percent": 100 * rates[sampler], "paper": PAPER[epsilon][sampler]}
    return rows


def measure_kernel(
    problem: tuple, imputation: dpjax.base.Imputation, relabel: bool, pairs: int, cap: int, parameters: Any
) -> dict[str, Any]:
    """The coupling times of one kernel."""
    meetings = meet(coupled_gibbs(*problem, imputation, relabel=relabel, parameters=parameters), pairs, cap)
    times = coupled_steps(meetings)
    rate = convergence_rate(meetings, np.random.default_rng(1), num_bootstrap=200)
    return {
        "mean": float(np.mean(times)),
        "standard_error": float(np.std(times, ddof=1) / np.sqrt(pairs)),
        "quartiles": [float(q) for q in np.quantile(times, (0.25, 0.75))],
        "capped": meetings.num_censored,
        "rate": [rate.rate, rate.lower, rate.upper],
    }


def draw(result: dict[str, Any], axes: Any) -> None:
    """Mean coupling times beside the paper's."""
    labels, ours, theirs = [], [], []
    for epsilon in (epsilon for epsilon in map(str, PAPER) if epsilon in result):
        for name, row in result[epsilon].items():
            labels.append(
                f"ε = {epsilon}, {name}" + (f"\n({row['capped']} of the pairs capped)" if row["capped"] else "")
            )
            ours.append(row["mean"])
            theirs.append(row["paper"][0])
    places = np.arange(len(labels))
    axes.barh(places - 0.2, ours, 0.4, label="measured")
    axes.barh(places + 0.2, theirs, 0.4, label="paper")
    axes.set_yticks(places, labels)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlabel("mean coupling time in sweeps")
    axes.legend()
