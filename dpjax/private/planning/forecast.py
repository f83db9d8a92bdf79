"""The expected effective sample size and warm-up of a planned run of DP-HMC."""

from collections.abc import Iterable, Sequence
from math import ceil, cos, log, sqrt
from typing import NamedTuple

import numpy as np
import scipy

from dpjax._util.validation import fail
from dpjax._util.warn import warn_at_the_call
from dpjax.private.planning.pilot import Pilot

__all__ = [
    "LONGEST",
    "Energy",
    "Forecast",
    "advise",
    "check_shape",
    "check_worth",
    "choose_energy",
    "even_dimension",
    "forecast",
    "list_energies",
]

FEW_DRAWS, MANY_DRAWS = 4.0, 100.0
"""Effective sample sizes below which a run is refused, and from which on it is made without a warning."""
STIFF = 4.0
"""The largest curvature, over that at the mode, up to which a posterior counts as close to Normal."""
CLOSE = 0.1
"""The distance from the posterior mean, in standard deviations, at which a chain's warm-up ends."""
COUNTS = tuple(round(4 * 2 ** (step / 2)) for step in range(29))
"""Iterations of one chain that are tried, up to 65,536."""
NEARLY_ALL = 0.85
LEVELS = (np.arange(200) + 0.5) / 200


LONGEST = 1.5
"""The longest trajectory: after π/2 the position of a harmonic oscillator is independent of where it started."""
SHORTEST = 1e-6
ENERGY_VARIANCE = 3.0
"""Variance of the energy error from noise; the acceptance rate is then 2Φ(−√3 / 2) = 0.39 without discretization."""
LARGEST_SHIFT = 0.1
"""Largest shift of the stationary distribution by clipped ratios, in standard deviations; see `Pilot.shift`."""
CLIPPED = (0.0, 0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.25, 0.5)
"""The fractions of clipped gradients or ratios to choose from."""


class EffectiveDraws(NamedTuple):
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
    """The expected efficiency of several divisions of the budget if the posterior is the predicted Normal.

    Attributes
    ----------
    run
        The forecast of the chains that were asked for.
    alone
        Of one chain that makes all the iterations.
    enough
        The fewest iterations of one chain that have nearly the largest effective sample size of all numbers tried.
    best
        Of that chain.
    """

    run: EffectiveDraws
    alone: EffectiveDraws
    enough: int
    best: EffectiveDraws


class Energy(NamedTuple):
    """The variance of the energy error of a trajectory of length T, on the scale on which the posterior is N(0, I).

    The trajectory moves by D² = 2 (1 − cos T) tr Σ on average, with Σ the posterior covariance. An iteration may spend
    μ = μ_l + μ_g. The noise of the acceptance test has variance V_l / μ_l with V_l = 2 b_l² D². The noise of the
    gradients changes the energy by a variance of about V_g / μ_g with V_g = 2 b_g² T² tr Σ. Their sum is least, and
    equal to (√V_l + √V_g)² / μ, where μ_l and μ_g are in proportion to √V_l and √V_g. The bias F of clipped gradients
    adds F² T².

    Attributes
    ----------
    gradient_bound
        b_g.
    ratio_bound
        b_l.
    clipped
        The fraction of the pilot's gradients that b_g clips.
    pull
        F, as `Pilot.pull` has it.
    spread
        tr Σ.
    affordable
        μ for each iteration, where noise 2 τ b is τ sensitivities.
    """

    gradient_bound: float
    ratio_bound: float
    clipped: float
    pull: float
    spread: float
    affordable: float

    def deviations(self, length: float) -> tuple[float, float]:
        """√V_l and √V_g: the standard deviations of either part of the error for μ_l = μ_g = 1."""
        moved = sqrt(2 * (1 - cos(length)) * self.spread)
        return sqrt(2) * self.ratio_bound * moved, sqrt(2 * self.spread) * self.gradient_bound * length

    def variance(self, length: float) -> float:
        """The variance of the energy error, with the best split of μ."""
        return sum(self.deviations(length)) ** 2 / self.affordable + (self.pull * length) ** 2

    def gradient_share(self, length: float) -> float:
        """The part μ_g / μ of the best split."""
        in_test, of_gradients = self.deviations(length)
        return of_gradients / (in_test + of_gradients)

    def length(self) -> float:
        """The length at which the energy error has variance `ENERGY_VARIANCE`, at most `LONGEST`."""
        if self.variance(LONGEST) <= ENERGY_VARIANCE:
            return LONGEST
        return float(scipy.optimize.brentq(lambda length: self.variance(length) - ENERGY_VARIANCE, SHORTEST, LONGEST))


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

    def worth(chains: int, iterations: int) -> EffectiveDraws:
        energy = choose_energy(energies, affordable / (chains * iterations))
        return expect(energy, dimension, distance, chains, iterations)

    tried = {count: worth(1, count) for count in COUNTS}
    most = max(one.effective_draws for one in tried.values())
    enough = next(count for count, one in tried.items() if one.effective_draws >= NEARLY_ALL * most)
    return Forecast(worth(num_chains, num_iterations), worth(1, num_chains * num_iterations), enough, tried[enough])


def expect(energy: Energy, dimension: float, distance: float, num_chains: int, num_iterations: int) -> EffectiveDraws:
    """The expected efficiency of chains of `num_iterations` iterations.

    On a normal posterior a trajectory of length T takes x to x cos T + p sin T, and is accepted or not. So the draws
    have autocorrelations ρ^k with ρ = 1 − a (1 − cos T), and n of them an effective sample size of n (1 − ρ) / (1 + ρ).
    Longer moves are accepted less often: a is the mean acceptance rate weighted by the squared length of the move.
    """
    correlation = correlate(energy, dimension)
    warmup = ceil(log(max(distance, CLOSE) / CLOSE) / -log(correlation))
    return EffectiveDraws(warmup, num_chains * max(num_iterations - warmup, 0) * (1 - correlation) / (1 + correlation))


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
        f"{num_chains} chains of {num_iterations} iterations, which give about {found.effective_draws:.2g} independent"
        f" draws after a warm-up of about {found.num_warmup} iterations each"
    )
    remedy = (
        f"One chain of all the iterations gives about {expected.alone.effective_draws:.2g}, one of"
        f" {expected.enough} about {expected.best.effective_draws:.2g}, and longer ones hardly more. What helps is a"
        " larger ε, more records, fewer parameters, a larger clipped_ratios, or a pilot of more records to start from."
        " Or release noisy sums once, by private.release, and draw from the posterior given them."
    )
    if found.effective_draws < FEW_DRAWS:
        fail("num_chains, num_iterations", worth, f"at least {FEW_DRAWS:g} draws for the budget", remedy)
    warn_at_the_call(f"private.plan expects little of {worth}. {remedy}")


def check_shape(stiffness: float) -> None:
    """Warn if the posterior is so far from Normal that a forecast for a Normal one is too high."""
    if stiffness > STIFF:
        warn_at_the_call(
            f"private.plan takes the posterior to be close to Normal, but its curvature is up to {stiffness:.2g} times"
            " that at its mode: the run may give far fewer draws than forecast. Write the target in other parameters,"
            " in which it is rounder, or release noisy sums once, by private.release.",
        )


def advise(expected: Forecast) -> tuple[str, ...]:
    """The expected efficiency, and that of other divisions of the budget, in words."""
    return (
        f"the run gives about {expected.run.effective_draws:.3g} independent draws, after a warm-up of"
        f" {expected.run.num_warmup} iterations of each chain",
        f"one chain of all iterations would give {expected.alone.effective_draws:.3g}, one of {expected.enough}"
        f" about {expected.best.effective_draws:.3g}, and longer ones hardly more",
    )


def list_energies(facts: Pilot, clipped_ratios: float) -> tuple[Energy, ...]:
    """The bounds of gradients to choose from, with that of ratios, for μ = 1 each iteration."""
    ratio_bound = choose_ratio_bound(facts, clipped_ratios)
    spread = float(np.trace(np.linalg.inv(facts.precision)))
    bounds = np.quantile(facts.gradient_norms, 1 - np.array(CLIPPED)).tolist()
    return tuple(
        Energy(bound, ratio_bound, clipped, facts.pull(bound), spread, 1.0)
        for clipped, bound in zip(CLIPPED, bounds, strict=True)
    )


def choose_energy(energies: Iterable[Energy], affordable: float) -> Energy:
    """The one with the longest trajectory for μ each iteration."""
    paid = (energy._replace(affordable=affordable) for energy in energies)
    return max(paid, key=lambda choice: (choice.length(), -choice.variance(LONGEST)))


def choose_ratio_bound(facts: Pilot, clipped_ratios: float) -> float:
    """The smallest bound that clips no more ratios than stated and biases the draws by `LARGEST_SHIFT` at most."""
    fractions = sorted({clipped_ratios, *(fraction for fraction in CLIPPED if fraction < clipped_ratios)}, reverse=True)
    bounds = [float(np.quantile(facts.ratio_slopes, 1 - fraction)) for fraction in fractions]
    return next((bound for bound in bounds if facts.shift(bound) <= LARGEST_SHIFT), bounds[-1])
