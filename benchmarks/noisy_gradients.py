"""What other rules for noisy-gradient samplers would gain: longer moves, samples of records, one draw of a run.

Each is set against `private.plan` or DP-SGLD on all records, for the same budget, with δ = 10⁻⁶ under replace-one.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from time import process_time

import jax
import numpy as np

from benchmarks.comparison_problems import Problem, make_problem
from benchmarks.comparison_ways import DELTA, LANGEVIN_STEP, budget_of, gradient_bound, make_plan, make_target
from benchmarks.papers.dphmc.algorithms import run_chains
from benchmarks.rows import Row
from benchmarks.timing import timing_since
from dpjax import private
from dpjax.diagnostics import ess_mean
from dpjax.private import accounting


@dataclass(frozen=True)
class Size:
    """How much is measured.

    paths
        The problem, records and ε: as noisy as a hundred thousand records at ε of about 3 and 10, and faster.
    lengths
        Of trajectories, as parts of the plan's.
    iterations, chains
        Of each length.
    langevin, rates
        The problem, records and ε of DP-SGLD, and its shares of records.
    """

    paths: tuple[tuple[str, int, float], ...] = (("logistic", 5_000, 25.0), ("Gaussian", 5_000, 60.0))
    lengths: tuple[float, ...] = (0.4, 0.6, 0.8, 1.0, 1.2, 1.5)
    iterations: int = 300
    chains: int = 16
    langevin: tuple[str, int, float] = ("logistic", 20_000, 1.0)
    rates: tuple[float, ...] = (1.0, 0.3, 0.1, 0.03, 0.01)


SIZES = {
    "full": Size(),
    "quick": Size(chains=8),
    "tiny": Size((("logistic", 300, 100.0),), (0.6, 1.0), 60, 2, ("logistic", 200, 10.0), (1.0, 0.1)),
}


def measure(size: Size) -> Iterator[Row]:
    """A row for each length and rate, and one for last states."""
    for name, n, epsilon in size.paths:
        yield from measure_lengths(make_problem(name, n), epsilon, size)
    name, n, epsilon = size.langevin
    problem = make_problem(name, n)
    yield from (measure_rate(problem, epsilon, rate) for rate in size.rates)
    yield measure_last(problem, epsilon)


def measure_lengths(problem: Problem, epsilon: float, size: Size) -> Iterator[Row]:
    """Effective draws of chains that spend a whole budget each, and the criterion of ChEES (Hoffman et al. 2021)."""
    target = make_target(problem, False)
    plan = make_plan(problem, target, epsilon, size.iterations)
    starts = plan.starts(jax.random.key(2), size.chains)
    for part in size.lengths:
        begin = process_time()
        settings = replace(plan, step_size=part * plan.step_size).settings()
        kernel = private.dp_hmc(target, private.noise.jax, **settings)
        draws, means = run_chains(kernel, jax.random.key(3), starts, size.iterations)
        figures = {"length": part * plan.step_size * plan.num_leapfrog, "acceptance": means["acceptance"]}
        figures |= describe(problem, draws[:, plan.num_warmup :])
        yield make_row(f"{problem.name}, length {part:g}", problem, size.chains, begin, figures)


def describe(problem: Problem, draws: np.ndarray) -> dict[str, float]:
    """Effective draws a chain, of means and of squares, and ChEES, all where the pilot's posterior is N(0, I)."""
    moved = (draws - draws.mean(axis=(0, 1))) @ np.linalg.inv(problem.scale).T
    squares = np.sum(moved**2, axis=-1)
    return {
        "draws": float(np.mean(ess_mean(moved))) / len(draws),
        "of squares": float(np.min(ess_mean(moved**2))) / len(draws),
        "ChEES": float(np.mean(np.diff(squares, axis=1) ** 2)) / 4,
    }


def measure_rate(problem: Problem, epsilon: float, rate: float) -> Row:
    """Iterations of DP-SGLD that a budget buys, and by how much samples of records widen the posterior.

    With steps of η on the scale on which the posterior is N(0, I), 4 / η iterations are worth one draw. Gradients of a
    sample have variance (1 − q) / q there, and η / 4 of it is added to the posterior's.
    """
    begin, bound = process_time(), gradient_bound(problem)
    kernel = private.dp_sgld(
        make_target(problem, True),
        private.noise.jax,
        step_size=LANGEVIN_STEP,
        sampling_rate=rate,
        gradient_bound=bound,
        noise_multiplier=private.largest_langevin_noise(LANGEVIN_STEP, rate, bound),
    )
    iterations = private.Ledger(budget_of(epsilon)).affordable(kernel.queries)
    figures = {
        "iterations": float(iterations),
        "draws": iterations * LANGEVIN_STEP / 4,
        "added variance": (1 - rate) / rate * LANGEVIN_STEP / 4,
    }
    return make_row(f"{problem.name}, rate {rate:g}", problem, 1, begin, figures)


def measure_last(problem: Problem, epsilon: float) -> Row:
    """How many draws a budget buys if of each run the last state alone is published.

    Of Langevin dynamics at N(m, I) with a gradient that one record moves by at most 2b, a record moves m by at most 2b:
    the last state of a long run loses N(μ, 2μ) with μ = (2b)² / 2. It is the loss of the 4 / η iterations that one draw
    is worth where all are published.
    """
    begin = process_time()
    draws = accounting.largest_mu(epsilon, DELTA) / (2 * gradient_bound(problem) ** 2)
    return make_row(f"{problem.name}, last states", problem, 1, begin, {"draws": draws})


def make_row(case: str, problem: Problem, chains: int, begin: float, figures: dict[str, float]) -> Row:
    """A row whose time is that since `begin`."""
    return Row("noisy_gradients", case, problem.n, len(problem.guess), chains, timing_since(begin), figures)
