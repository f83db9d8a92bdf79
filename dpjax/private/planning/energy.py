"""The energy error of a trajectory of DP-HMC that noise and clipping cause, on a normal posterior."""

from collections.abc import Iterable
from math import cos, sqrt
from typing import NamedTuple

import numpy as np
import scipy

from dpjax.private.planning.pilot import Pilot

__all__ = ["LONGEST", "Energy", "choose_bounds", "choose_energy", "list_energies"]

LONGEST = 1.5
"""The longest trajectory: after π/2 the position of a harmonic oscillator is independent of where it started."""
SHORTEST = 1e-6
ENERGY_VARIANCE = 3.0
"""Of the energy error from noise; the acceptance rate is then 2Φ(−√3 / 2) = 0.39, leaving out discretization."""
LARGEST_SHIFT = 0.1
"""Of the stationary distribution by clipped ratios, in standard deviations; see `Pilot.shift`."""
CLIPPED = (0.0, 0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.25, 0.5)
"""The fractions of clipped gradients or ratios to choose from."""


class Energy(NamedTuple):
    """The variance of the energy error of a trajectory of length T, on the scale on which the posterior is N(0, I).

    The trajectory moves by D² = 2 (1 − cos T) tr Σ on average, with Σ the posterior covariance. An iteration may spend
    μ = μ_l + μ_g. The noise of the acceptance test has variance V_l / μ_l with V_l = 2 b_l² D², and the noise of the
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


def choose_bounds(facts: Pilot, clipped_ratios: float, affordable: float) -> Energy:
    """The bound of ratios that biases the draws little enough, and that of gradients for the longest trajectory."""
    return choose_energy(list_energies(facts, clipped_ratios), affordable)


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
