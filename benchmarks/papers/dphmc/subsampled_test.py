"""A subsampled acceptance test: what it is charged, how wrong it is, and how many effective draws a budget gives.

Each record takes part in a Poisson sample of rate q. The estimate of the log-likelihood ratio is 1/q times the sum of
the sampled records' clipped ratios, plus Gaussian noise.
"""

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
from scipy.special import expit, log_ndtr, ndtr
from scipy.stats import norm

from benchmarks.papers.dphmc.problems import DELTA, N
from benchmarks.papers.dphmc.subsampled_bias import measure_bias
from dpjax import private
from dpjax.private.accounting import closed_form

EPSILON = 4.0
BUDGET = private.Budget(EPSILON, DELTA, "replace-one")
MU = closed_form.largest_mu(EPSILON, DELTA)
TAU = 31.62
"""Of the paper's DP-HMC."""
CLIP = 2.6
"""The bound of a ratio over its standard deviation: 1 % are clipped if ratios are Normal."""
GRID = np.linspace(-5.0, 5.0, 301)
"""Parameters, in posterior standard deviations."""
STEPS, SPREAD = np.geomspace(0.15, 3.5, 20), 0.3
"""Lengths of a move, on the same scale, and by how much of itself it varies, as lengths do in some dimensions."""
LEAST = 1e-9
"""The least chance of leaving a point: below it a chain is not worth counting."""

Accept = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""From log-posterior ratios and moves to acceptance probabilities."""


def measure(rates: tuple[float, ...], tests: tuple[int, ...], chains: int, steps: int) -> dict[str, Any]:
    """Tests that a budget allows by rate, the bias of inexact and exact tests, and effective draws by number of tests.

    Parameters
    ----------
    rates
        The rates q.
    tests
        How many acceptance tests the budget pays for, for the effective draws.
    chains, steps
        The chains of the study of the bias, and their length.
    """
    return {
        "charges": charges(rates),
        "bias": measure_bias(chains, steps),
        "effective": {"tests": list(tests), **effective(rates, tests)},
    }


def charges(rates: tuple[float, ...]) -> dict[str, Any]:
    """How many tests (ε, δ) = (4, 10⁻⁶) allows at each rate, replace-one, for the noise that DP-HMC has in a test.

    Once the Gaussian noise of the estimate is fixed, and once its sum with the variance of the sample. That is
    (1/q − 1) Σ r², with r² the square of the bound over 2.6².
    """
    result: dict[str, Any] = {"same_noise": {}, "same_total": {}, "sample_over_noise": {}}
    for rate in rates:
        share = (1 / rate - 1) * N / CLIP**2 / (2 * TAU) ** 2
        result["sample_over_noise"][str(rate)] = round(share, 2)
        result["same_noise"][str(rate)] = affordable(2 * TAU, rate)
        result["same_total"][str(rate)] = affordable(2 * TAU * np.sqrt(1 - share), rate) if share < 1 else 0
    return result


def affordable(multiplier: float, rate: float) -> int:
    """How many tests whose estimate has noise of so many bounds the budget allows."""
    query = private.Query("ratio", rate * multiplier, "simulation-grade", sampling_rate=rate)
    return private.Ledger(BUDGET).affordable([query])


def effective(rates: tuple[float, ...], tests: tuple[int, ...]) -> dict[str, Any]:
    """The effective draws of a random walk on a Normal posterior, at the best step for each number of tests."""
    result: dict[str, Any] = {"penalty": [], "decision": []}
    for number in tests:
        noise = multiplier_of(number, 1.0) * CLIP / np.sqrt(N)
        result["penalty"].append(best(number, partial(penalty, noise**2)))
        result["decision"].append(best(number, partial(decision, noise)))
    for rate in (rate for rate in rates if rate < 1):
        rows = result[f"q = {rate}"] = {"known variance": [], "Poisson counts": []}
        for number in tests:
            noise = multiplier_of(number, rate) * CLIP / np.sqrt(N) / rate
            rows["known variance"].append(best(number, partial(penalty, noise**2 + 1 / rate - 1)))
            rows["Poisson counts"].append(best(number, partial(penalty, noise**2 + 1 / rate)))
    result["own randomness"] = own_randomness(rates, tests)
    return result


def multiplier_of(number: int, rate: float) -> float:
    """The least noise of the sum, over the bound, with which the budget allows so many tests."""
    return private.noise_multiplier_for(BUDGET, number, sampling_rate=rate)


def own_randomness(rates: tuple[float, ...], tests: tuple[int, ...]) -> dict[str, list[int]]:
    """The same of Barker's test without noise: a decision is all that is published, and is charged for itself.

    One record changes the log-odds of a decision by s at most, s = 2b‖θ − θ′‖. Such a decision has bounded range s, so
    that it is s²/8-zCDP (Dong, Durfee and Rogers 2020). With Poisson counts s grows by 1 + b‖θ − θ′‖ / 2q.
    """
    rho = largest_rho()
    result: dict[str, list[int]] = {}
    for rate in rates:
        rows = result[f"q = {rate}"] = []
        for number in tests:
            length = np.sqrt(2 * N * rho / number) / CLIP  # the root mean square of moves
            variance = 0.0 if rate == 1 else 1 / rate
            growth = 1.0 if rate == 1 else 1 + CLIP * length / np.sqrt(N) / (2 * rate)
            lengths = length / growth / np.array([1.0, 1.4, 2.0, 2.8, 4.0])  # shorter ones leave budget over
            rows.append(max(draws_of(number, each, partial(barker, variance)) for each in lengths))
    return result


def largest_rho() -> float:
    """The largest ρ of zCDP that implies (ε, δ), by the conversion of Rényi divergences at the best order."""
    orders = 1 + np.geomspace(1e-2, 1e3, 4_000)
    left = EPSILON + (np.log(DELTA) + np.log(orders)) / (orders - 1) - np.log1p(-1 / orders)
    return float(np.max(left / orders))


def penalty(unit: float, ratio: np.ndarray, move: np.ndarray) -> np.ndarray:
    """The acceptance of the penalty test whose noise has `unit` times the variance of the squared move."""
    deviation = np.sqrt(unit) * np.abs(move)
    first, second = ratio / deviation, deviation / 2
    return ndtr(first - second) + np.exp(ratio + log_ndtr(-first - second))


def decision(unit: float, ratio: np.ndarray, move: np.ndarray) -> np.ndarray:
    """The largest acceptance that can be charged as the decision of a Gaussian query: Φ(r/σ − x) for r ≥ 0.

    A test π(θ) a(r) = π(θ′) a(−r) is one if Φ⁻¹(a(r)) grows by at most 1/σ for each unit of r. At r = 0 this bounds a
    by Φ(−x) with Φ(−x) / φ(x) = 2 / σ.
    """
    deviation = unit * np.abs(move)
    edge = np.interp(np.log(deviation), *edges())
    return np.exp(log_ndtr(np.abs(ratio) / deviation - edge) + np.minimum(ratio, 0.0))


@cache
def edges() -> tuple[np.ndarray, np.ndarray]:
    """The logarithms of deviations, and x by deviation, which grows with it."""
    grid = np.linspace(-60.0, 60.0, 200_001)
    return np.log(2) - (log_ndtr(-grid) - norm.logpdf(grid)), grid


def barker(unit: float, ratio: np.ndarray, move: np.ndarray) -> np.ndarray:
    """The acceptance of Barker's test on an estimate N(r − V/2, V), V `unit` times the squared move."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(31)
    variance = unit * move**2
    values = expit((ratio - variance / 2)[..., None] + np.sqrt(variance)[..., None] * nodes)
    return np.sum(values * weights, axis=-1) / weights.sum()


def best(number: int, accept: Accept) -> int:
    """The effective draws at the best of the steps."""
    return max(draws_of(number, step, accept) for step in STEPS)


def draws_of(number: int, step: float, accept: Accept) -> int:
    """The effective draws for the mean of so many iterations: the chain on a grid, whose Poisson equation is solved."""
    target = norm.pdf(GRID) / norm.pdf(GRID).sum()
    move = GRID[None] - GRID[:, None]
    proposal = (np.abs(np.abs(move) / step - 1) < SPREAD).astype(float)
    proposal /= proposal.sum(axis=1).max()  # symmetric; what leaves the grid stays
    ratio = (GRID[:, None] ** 2 - GRID[None] ** 2) / 2
    chain = proposal * accept(ratio, np.where(move == 0, 1.0, move))
    np.fill_diagonal(chain, 0.0)
    if np.min(chain.sum(axis=1)) < LEAST:
        return 0
    np.fill_diagonal(chain, 1 - chain.sum(axis=1))
    solved = np.linalg.solve(np.eye(len(GRID)) - chain + target, GRID)
    return int(number / (2 * np.sum(target * GRID * solved) / np.sum(target * GRID**2) - 1))


def draw(result: dict[str, Any], axes: Any) -> None:
    """Tests that a budget allows, and effective draws against the number of tests."""
    for name in ("same_noise", "same_total"):
        found = {rate: number for rate, number in result["charges"][name].items() if number}
        axes[0].plot([float(rate) for rate in found], list(found.values()), "o-", label=name.replace("_", " "))
    axes[0].set(xscale="log", xlabel="rate q", ylabel="tests at ε = 4", title="charges")
    found = result["effective"]
    for name in ("penalty", "decision"):
        axes[1].plot(found["tests"], found[name], "o-", label=name)
    for rate, rows in found.items():
        if rate.startswith("q = "):
            axes[1].plot(found["tests"], rows["Poisson counts"], ".--", label=f"Poisson counts, {rate}")
    for rate, row in found["own randomness"].items():
        axes[1].plot(found["tests"], row, ".:", label=f"own randomness, {rate}")
    axes[1].set(xscale="log", yscale="log", xlabel="tests", ylabel="effective draws at ε = 4", title="at equal budget")
    for axis in axes:
        axis.legend(fontsize="x-small")
