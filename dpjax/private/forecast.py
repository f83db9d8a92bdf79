"""What a planned run of DP-HMC is worth: how many independent draws, and how long the way to the first."""

import warnings
from math import ceil, cos, log, sqrt
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr
from scipy.stats import chi2

from dpjax.private.energy import ENERGY_VARIANCE, LONGEST, Energy
from dpjax.validation import fail

__all__ = ["Forecast", "advise", "check_worth", "even_dimension", "forecast"]

FEW_DRAWS, MANY_DRAWS = 4.0, 100.0
"""Independent draws below which a run is refused, and above which nothing is said of it."""
CLOSE = 0.1
"""The distance from the centre, in posterior deviations, at which a chain has arrived."""
LEVELS = (np.arange(200) + 0.5) / 200


class Forecast(NamedTuple):
    """What is expected where the posterior is as normal and as wide as the pilot says.

    num_warmup
        The way of each chain from its start to within a tenth of a deviation of the centre, in iterations.
    effective_draws
        How many independent draws the rest of all chains is worth.
    alone
        The same of one chain that makes all the iterations.
    enough
        So many iterations, over all chains, could make the longest moves. More are worth hardly more: their noise is
        stronger, and each moves less.
    at_most
        What these are worth, without the way to the first.
    """

    num_warmup: int
    effective_draws: float
    alone: float
    enough: int
    at_most: float


def forecast(energy: Energy, dimension: float, distance: float, num_chains: int, num_iterations: int) -> Forecast:
    """What a number of chains and iterations is expected to be worth.

    On a normal posterior a trajectory of length T takes x to x cos T + p sin T, and is accepted or not. So the draws
    have autocorrelations ρ^k with ρ = 1 − a (1 − cos T), and n of them the worth of n (1 − ρ) / (1 + ρ). Longer moves
    are accepted less often: a is the acceptance weighted by the squared length.

    Parameters
    ----------
    dimension
        Over how many directions the posterior spreads evenly.
    distance
        Of the starts from the centre, in posterior deviations.
    """
    length, total = energy.length(), num_chains * num_iterations
    correlation = correlate(energy, dimension, length)
    warmup = ceil(log(max(distance, CLOSE) / CLOSE) / -log(correlation))
    worth = (1 - correlation) / (1 + correlation)
    longest = correlate(energy, dimension, LONGEST, ENERGY_VARIANCE)
    enough = max(1, int(total * affordable_share(energy)))
    return Forecast(
        num_warmup=warmup,
        effective_draws=num_chains * max(num_iterations - warmup, 0) * worth,
        alone=max(total - warmup, 0) * worth,
        enough=enough,
        at_most=enough * (1 - longest) / (1 + longest),
    )


def correlate(energy: Energy, dimension: float, length: float, variance: float | None = None) -> float:
    """The correlation ρ of a draw with the next; the energy's variance is its own unless stated."""
    squares = chi2.ppf(LEVELS, dimension) / dimension
    deviation = sqrt(energy.variance(length) if variance is None else variance)
    accepted = 2 * ndtr(-deviation * np.sqrt(squares) / 2)
    return 1 - float(np.sum(accepted * squares) / np.sum(squares)) * (1 - cos(length))


def affordable_share(energy: Energy) -> float:
    """The iterations that could move by the longest trajectories, over those that share the budget."""
    noise = sum(energy.deviations(LONGEST)) ** 2
    return max(ENERGY_VARIANCE - (energy.pull * LONGEST) ** 2, 0.0) * energy.affordable / noise


def even_dimension(precision: np.ndarray) -> float:
    """Over how many directions a normal law spreads evenly: (tr Σ)² / tr Σ²."""
    covariance = np.linalg.inv(precision)
    return float(np.trace(covariance) ** 2 / np.sum(covariance**2))


def check_worth(expected: Forecast, num_chains: int, num_iterations: int) -> None:
    """Raise if the run is expected to be worth next to nothing; warn if it is worth little."""
    if expected.effective_draws >= MANY_DRAWS:
        return
    worth = (
        f"{num_chains} chains of {num_iterations} iterations, worth about {expected.effective_draws:.2g} independent"
        f" draws after a way from the start of about {expected.num_warmup} iterations each"
    )
    remedy = (
        f"One chain of all the iterations is worth about {expected.alone:.2g}, and more than {expected.enough} in all,"
        f" worth {expected.at_most:.2g}, add little. What helps is a larger ε, more records, fewer parameters, a larger"
        " clipped_ratios, or a pilot of more records to start from."
    )
    if expected.effective_draws < FEW_DRAWS:
        fail("num_chains, num_iterations", worth, f"at least {FEW_DRAWS:g} draws for the budget", remedy)
    warnings.warn(f"private.plan expects little of {worth}. {remedy}", stacklevel=3)


def advise(expected: Forecast, num_chains: int) -> tuple[str, ...]:
    """How the budget could be divided, in words."""
    other = f"; one chain of all iterations would be worth {expected.alone:.3g}" if num_chains > 1 else ""
    return (
        f"the run is worth about {expected.effective_draws:.3g} independent draws, without the first"
        f" {expected.num_warmup} iterations of each chain, its way from the start{other}",
        f"{expected.enough} iterations over all chains are worth about {expected.at_most:.3g}, and more of them, which"
        " move less each, hardly more",
    )
