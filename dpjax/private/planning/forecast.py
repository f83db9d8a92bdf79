"""The effective sample size and the warm-up that a planned run of DP-HMC is expected to have."""

import warnings
from collections.abc import Sequence
from math import ceil, cos, log
from typing import NamedTuple

import numpy as np
import scipy

from dpjax.private.planning.energy import Energy, choose_energy
from dpjax.validation import fail

__all__ = ["Forecast", "Worth", "advise", "check_worth", "even_dimension", "forecast"]

FEW_DRAWS, MANY_DRAWS = 4.0, 100.0
"""Effective sample sizes below which a run is refused, and from which on it is made without a warning."""
CLOSE = 0.1
"""The distance from the posterior mean, in standard deviations, at which a chain's warm-up ends."""
COUNTS = tuple(round(4 * 2 ** (step / 2)) for step in range(29))
"""Iterations of one chain that are tried, up to 65,536."""
NEARLY_ALL = 0.85
LEVELS = (np.arange(200) + 0.5) / 200


class Worth(NamedTuple):
    """The expected efficiency of chains.

    Attributes
    ----------
    num_warmup
        The iterations in which each chain comes within a tenth of a standard deviation of the posterior mean.
    effective_draws
        The effective sample size of what follows, over all chains.
    """

    num_warmup: int
    effective_draws: float


class Forecast(NamedTuple):
    """What is expected of several divisions of the budget if the posterior is the normal one that the pilot predicts.

    Attributes
    ----------
    run
        Of the chains that were asked for.
    alone
        Of one chain that makes all the iterations.
    enough
        The fewest iterations of one chain that have nearly the largest effective sample size of all numbers tried.
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
    """The expected efficiency of a number of chains and iterations, and how many iterations would be enough.

    Parameters
    ----------
    energies
        The bounds to choose from.
    affordable
        μ for all iterations together, where noise 2 τ b is τ sensitivities.
    dimension
        The effective dimension of the posterior; see `even_dimension`.
    distance
        Of the starts from the posterior mean, in standard deviations.
    """

    def worth(chains: int, iterations: int) -> Worth:
        energy = choose_energy(energies, affordable / (chains * iterations))
        return expect(energy, dimension, distance, chains, iterations)

    tried = {count: worth(1, count) for count in COUNTS}
    most = max(one.effective_draws for one in tried.values())
    enough = next(count for count, one in tried.items() if one.effective_draws >= NEARLY_ALL * most)
    return Forecast(worth(num_chains, num_iterations), worth(1, num_chains * num_iterations), enough, tried[enough])


def expect(energy: Energy, dimension: float, distance: float, num_chains: int, num_iterations: int) -> Worth:
    """The expected efficiency of chains of so many iterations.

    On a normal posterior a trajectory of length T takes x to x cos T + p sin T, and is accepted or not. So the draws
    have autocorrelations ρ^k with ρ = 1 − a (1 − cos T), and n of them an effective sample size of n (1 − ρ) / (1 + ρ).
    Longer moves are accepted less often: a is the mean acceptance rate weighted by the squared length of the move.
    """
    correlation = correlate(energy, dimension)
    warmup = ceil(log(max(distance, CLOSE) / CLOSE) / -log(correlation))
    return Worth(warmup, num_chains * max(num_iterations - warmup, 0) * (1 - correlation) / (1 + correlation))


def correlate(energy: Energy, dimension: float) -> float:
    """The autocorrelation ρ of successive draws."""
    squares = scipy.stats.chi2.ppf(LEVELS, dimension) / dimension
    length = energy.length()
    accepted = 2 * scipy.special.ndtr(-np.sqrt(energy.variance(length) * squares) / 2)
    return 1 - float(np.sum(accepted * squares) / np.sum(squares)) * (1 - cos(length))


def even_dimension(precision: np.ndarray) -> float:
    """The effective dimension (tr Σ)² / tr Σ² of a normal distribution: d if it is spherical."""
    covariance = np.linalg.inv(precision)
    return float(np.trace(covariance) ** 2 / np.sum(covariance**2))


def check_worth(expected: Forecast, num_chains: int, num_iterations: int) -> None:
    """Raise if the expected effective sample size is next to nothing; warn if it is small."""
    found = expected.run
    if found.effective_draws >= MANY_DRAWS:
        return
    worth = (
        f"{num_chains} chains of {num_iterations} iterations, worth about {found.effective_draws:.2g} independent draws"
        f" after a warm-up of about {found.num_warmup} iterations each"
    )
    remedy = (
        f"One chain of all the iterations is worth about {expected.alone.effective_draws:.2g}, one of"
        f" {expected.enough} about {expected.best.effective_draws:.2g}, and longer ones hardly more. What helps is a"
        " larger ε, more records, fewer parameters, a larger clipped_ratios, or a pilot of more records to start from;"
        " or release noisy sums once and draw from the posterior given them: docs/private.md, Few records."
    )
    if found.effective_draws < FEW_DRAWS:
        fail("num_chains, num_iterations", worth, f"at least {FEW_DRAWS:g} draws for the budget", remedy)
    warnings.warn(f"private.plan expects little of {worth}. {remedy}", stacklevel=3)


def advise(expected: Forecast) -> tuple[str, ...]:
    """The expected efficiency, and that of other divisions of the budget, in words."""
    return (
        f"the run is worth about {expected.run.effective_draws:.3g} independent draws, after a warm-up of"
        f" {expected.run.num_warmup} iterations of each chain",
        f"one chain of all iterations would be worth {expected.alone.effective_draws:.3g}, one of {expected.enough}"
        f" about {expected.best.effective_draws:.3g}, and longer ones hardly more",
    )
