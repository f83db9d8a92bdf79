"""What a planned run of DP-HMC is worth: how many independent draws, and how long the way to the first."""

import warnings
from collections.abc import Sequence
from math import ceil, cos, log
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr
from scipy.stats import chi2

from dpjax.private.planning.energy import Energy, choose_energy
from dpjax.validation import fail

__all__ = ["Forecast", "Worth", "advise", "check_worth", "even_dimension", "forecast"]

FEW_DRAWS, MANY_DRAWS = 4.0, 100.0
"""Independent draws below which a run is refused, and above which nothing is said of it."""
CLOSE = 0.1
"""The distance from the centre, in posterior deviations, at which a chain has arrived."""
COUNTS = tuple(round(4 * 2 ** (step / 2)) for step in range(29))
"""Iterations of one chain that are tried, up to 65,536."""
NEARLY_ALL = 0.85
LEVELS = (np.arange(200) + 0.5) / 200


class Worth(NamedTuple):
    """What chains are expected to be worth.

    num_warmup
        The way of each from its start to within a tenth of a deviation of the centre, in iterations.
    effective_draws
        How many independent draws the rest of all chains is worth.
    """

    num_warmup: int
    effective_draws: float


class Forecast(NamedTuple):
    """What is expected where the posterior is as normal and as wide as the pilot says.

    run
        Of the chains that were asked for.
    alone
        Of one chain that makes all the iterations.
    enough
        Iterations of one chain, of which four times as many are worth hardly more: each moves the less.
    best
        Of that chain.
    """

    run: Worth
    alone: Worth
    enough: int
    best: Worth


def forecast(
    energies: Sequence[Energy],
    affordable: float,
    dimension: float,
    distance: float,
    num_chains: int,
    num_iterations: int,
) -> Forecast:
    """What a number of chains and iterations is expected to be worth, and how many would be enough.

    Parameters
    ----------
    energies
        The bounds to choose from.
    affordable
        μ for all iterations together, where noise 2 τ b is τ sensitivities.
    dimension
        Over how many directions the posterior spreads evenly.
    distance
        Of the starts from the centre, in posterior deviations.
    """

    def worth(chains: int, iterations: int) -> Worth:
        energy = choose_energy(energies, affordable / (chains * iterations))
        return expect(energy, dimension, distance, chains, iterations)

    tried = {count: worth(1, count) for count in COUNTS}
    most = max(one.effective_draws for one in tried.values())
    enough = next(count for count, one in tried.items() if one.effective_draws >= NEARLY_ALL * most)
    return Forecast(worth(num_chains, num_iterations), worth(1, num_chains * num_iterations), enough, tried[enough])


def expect(energy: Energy, dimension: float, distance: float, num_chains: int, num_iterations: int) -> Worth:
    """What chains of so many iterations are expected to be worth.

    On a normal posterior a trajectory of length T takes x to x cos T + p sin T, and is accepted or not. So the draws
    have autocorrelations ρ^k with ρ = 1 − a (1 − cos T), and n of them the worth of n (1 − ρ) / (1 + ρ). Longer moves
    are accepted less often: a is the acceptance weighted by the squared length.
    """
    correlation = correlate(energy, dimension)
    warmup = ceil(log(max(distance, CLOSE) / CLOSE) / -log(correlation))
    return Worth(warmup, num_chains * max(num_iterations - warmup, 0) * (1 - correlation) / (1 + correlation))


def correlate(energy: Energy, dimension: float) -> float:
    """The correlation ρ of a draw with the next."""
    squares = chi2.ppf(LEVELS, dimension) / dimension
    length = energy.length()
    accepted = 2 * ndtr(-np.sqrt(energy.variance(length) * squares) / 2)
    return 1 - float(np.sum(accepted * squares) / np.sum(squares)) * (1 - cos(length))


def even_dimension(precision: np.ndarray) -> float:
    """Over how many directions a normal law spreads evenly: (tr Σ)² / tr Σ²."""
    covariance = np.linalg.inv(precision)
    return float(np.trace(covariance) ** 2 / np.sum(covariance**2))


def check_worth(expected: Forecast, num_chains: int, num_iterations: int) -> None:
    """Raise if the run is expected to be worth next to nothing; warn if it is worth little."""
    found = expected.run
    if found.effective_draws >= MANY_DRAWS:
        return
    worth = (
        f"{num_chains} chains of {num_iterations} iterations, worth about {found.effective_draws:.2g} independent draws"
        f" after a way from the start of about {found.num_warmup} iterations each"
    )
    remedy = (
        f"One chain of all the iterations is worth about {expected.alone.effective_draws:.2g}, one of"
        f" {expected.enough} about {expected.best.effective_draws:.2g}, and longer ones hardly more. What helps is a"
        " larger ε, more records, fewer parameters, a larger clipped_ratios, or a pilot of more records to start from."
    )
    if found.effective_draws < FEW_DRAWS:
        fail("num_chains, num_iterations", worth, f"at least {FEW_DRAWS:g} draws for the budget", remedy)
    warnings.warn(f"private.plan expects little of {worth}. {remedy}", stacklevel=3)


def advise(expected: Forecast) -> tuple[str, ...]:
    """What the run is worth, and how the budget could be divided, in words."""
    return (
        f"the run is worth about {expected.run.effective_draws:.3g} independent draws, without the first"
        f" {expected.run.num_warmup} iterations of each chain, its way from the start",
        f"one chain of all iterations would be worth {expected.alone.effective_draws:.3g}, one of {expected.enough}"
        f" about {expected.best.effective_draws:.3g}, and longer ones hardly more",
    )
