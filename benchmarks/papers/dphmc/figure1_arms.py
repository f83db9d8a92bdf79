"""Figure 1 with the authors' dynamics and with their accounting, apart and together.

Their DP-SGLD moves by η in place of η / 2 times the gradient, with noise of variance η: it is ours for the square of
the posterior. So a release has half the noise. Their accountant counts the sensitivity twice, which is half the noise
again.
"""

from typing import Any

import jax
import numpy as np

from benchmarks.papers.dphmc.algorithms import BATCH, SGLD, SGNHT, count_iterations, run_repeats
from benchmarks.papers.dphmc.distances import measure as distances
from benchmarks.papers.dphmc.problems import Problem, make_problem
from dpjax import private

THIN = 10
DYNAMICS = {"DP-SGLD": {"right": 1, "the authors'": 2}, "DP-SGNHT": {"right": 1}}
"""How often the log-posterior is counted."""

ACCOUNTING = {"tight": 1, "the authors'": 2}
"""By how much the noise is divided in the accountant."""


def measure(repeats: int, epsilon: int, banana: int, cap: int) -> dict[str, Any]:
    """MMD, and posterior standard deviations over the right ones, by dynamics and accounting.

    On the Gaussian with the iterations that each accounting allows at `epsilon`, at most `cap`. On the banana DP-SGLD
    makes `banana` iterations with both dynamics: a budget allows hundreds of thousands.
    """
    problem = make_problem("gaussian")
    result: dict[str, Any] = {"gaussian": {}, "banana": {}}
    for name, dynamics in DYNAMICS.items():
        result["gaussian"][name] = {
            which: by_accounting(problem, name, power, repeats, epsilon, cap) for which, power in dynamics.items()
        }
    problem = make_problem("banana")
    for which, power in DYNAMICS["DP-SGLD"].items():
        draws = run(problem, make_kernel(problem, "DP-SGLD", power, 1), repeats, banana)
        result["banana"][which] = summarize(problem, draws, banana)
    return result


def by_accounting(problem: Problem, name: str, power: int, repeats: int, epsilon: int, cap: int) -> dict[str, Any]:
    """The rows of both accountings: the fewer iterations are the first of the more."""
    counts = {
        which: count_iterations(make_kernel(problem, name, power, divisor), epsilon, cap)[0]
        for which, divisor in ACCOUNTING.items()
    }
    draws = run(problem, make_kernel(problem, name, power, 1), repeats, max(counts.values()))
    return {which: summarize(problem, draws, count) for which, count in counts.items()}


def make_kernel(problem: Problem, name: str, power: int, divisor: int) -> private.PrivateKernel:
    """The kernel for a power of the posterior, its noise divided."""
    n, rate = problem.target.num_records, BATCH / problem.target.num_records
    settings = dict((SGLD if name == "DP-SGLD" else SGNHT)[problem.name])
    step, bound = settings.pop("step_size") / n, settings.pop("gradient_bound") * power
    common = {"step_size": step, "sampling_rate": rate, "gradient_bound": bound}
    target = raised(problem, power)
    if name == "DP-SGLD":
        multiplier = private.largest_langevin_noise(step, rate, bound) / divisor
        return private.dp_sgld(target, private.noise.jax, noise_multiplier=multiplier, **common)
    multiplier = rate / bound * float(np.sqrt(2 * settings["diffusion"] / step)) / divisor
    return private.dp_sgnht(target, private.noise.jax, noise_multiplier=multiplier, **common, **settings)


def raised(problem: Problem, power: int) -> private.Target:
    """The target of a power of the posterior."""
    target = problem.target
    if power == 1:
        return target
    terms, records = target.terms, jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), target.records)
    return private.target(
        lambda theta, record: power * terms.log_likelihood(theta, record),
        lambda theta: power * terms.log_prior(theta),
        records[: target.num_records],
        np.zeros(target.dimension),
    )


def run(problem: Problem, kernel: private.PrivateKernel, repeats: int, count: int) -> np.ndarray:
    """Draws [repeat, chain, draw, d]."""
    starts = problem.starts(np.random.default_rng(11), repeats)
    return run_repeats(kernel, jax.random.key(5), starts, count, min(THIN, count))[0]


def summarize(problem: Problem, draws: np.ndarray, count: int) -> dict[str, Any]:
    """Of so many iterations: the MMD of each repeat, and the spread of θ₁ over that of the posterior."""
    kept = draws[:, :, : max(count // THIN, 4)]
    rng = np.random.default_rng(12)
    second = kept[:, :, kept.shape[2] // 2 :]
    exact = problem.draw(rng, 20_000).std(axis=0)
    return {
        "iterations": count,
        "mmd": [round(distances(problem, one, rng)["mmd"], 4) for one in kept],
        "spread": round(float(np.mean(second.std(axis=(1, 2)) / exact)), 4),
        "spread_of_first": round(float(np.mean(second.std(axis=(1, 2))[:, 0]) / exact[0]), 4),
    }


def draw(result: dict[str, Any], figure: Any) -> None:
    """A bar for each arm."""
    axis = figure.subplots()
    rows = {
        f"Gaussian, {name}, {dynamics} dynamics, {accounting} accounting": row
        for name, arms in result["gaussian"].items()
        for dynamics, accountings in arms.items()
        for accounting, row in accountings.items()
    } | {f"banana, DP-SGLD, {dynamics} dynamics": row for dynamics, row in result["banana"].items()}
    axis.barh(list(rows), [np.median(row["mmd"]) for row in rows.values()])
    axis.set_xlabel("median MMD")
