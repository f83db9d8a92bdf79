"""How often chains sweep and refresh: tried in the warm-up, chosen once, and then left as it is.

A choice is good if it gives many effective draws for its cost. The effective draws are those of windows in which some
rates were tried; the costs are those of a fixed table, as by a clock each run would choose otherwise.
"""

from typing import NamedTuple

import jax
import numpy as np

from dpjax.base import Model, Parameters
from dpjax.data_augmentation.parameters import Tuning
from dpjax.data_augmentation.plan import SweepPlan
from dpjax.data_augmentation.records.soma import SOMA
from dpjax.data_augmentation.refresh import FLOOR, MANY_RECORDS, PERIOD, TRIED, RefreshTuning, fit_refresh, with_rates
from dpjax.diagnostics import ess_bulk, ess_tail

MULTIPLES = (1, 2, 4, 8, 16)
"""Multiples of rates that were tried to choose from: each step is then as good as so many of theirs."""

ENOUGH_DRAWS = 128
"""Fewest draws of all chains from which it is chosen how often: of fewer, effective sizes mean nothing."""

MANY_DRAWS = 0.95
"""Most effective draws of a thinned draw: of more, nothing can be said about the steps in between."""

FLOOR_COST = 0.05
"""Share of a sweep's cost that refreshes may take where they gain nothing: they keep remote modes in reach."""

LEAST_DRAWS = 0.5
"""Fewest effective draws of a step, in units of what a sweep gives: draws that are kept are worth something, too."""


class Costs(NamedTuple):
    """Costs in units of a proposal, which draws n records and adds up their statistic once.

    Measured on one CPU core in float64, in these units. Sweeps: of a regression of 100 records 6.0, without
    interweaving 2.2, by SOMA at all places 13.9; with noise moved by surrogate 14.7 for 1,000 records, 9.0 for 4,000
    and 6.5 for 10,000; of a Normal model 5.5, of an exponential one 3.5; of Normal, Poisson and gamma records in
    NumPyro 5.5, 9.1 and 2.4. Refreshes: 3.3 to 4.0 for the regression, 2.0, 9.0 and 1.7 for Normal, Poisson and gamma
    records. Weighing eight candidates, in float32: 2.3, 1.2 and 0.6 for 100, 1,000 and 10,000 of the regression's.
    """

    imputation: float = 2.2
    interweaving: float = 3.6
    soma_attempt: float = 0.12
    surrogate: float = 8e3
    weighing: float = 0.6
    weighing_few: float = 170.0
    weighing_by_sums: float = 8.0
    step: float = 0.1

    def of(self, model: Model, plan: SweepPlan, n: int) -> tuple[float, float]:
        """The costs of a sweep and of a refresh."""
        return self.of_sweep(plan, n), self.of_refresh(model, n)

    def of_refresh(self, model: Model, n: int) -> float:
        """The cost of a refresh, with the weighing of candidates where there are several."""
        if model.noncentred is None:
            return 1.0
        weighing = self.weighing + self.weighing_few / n if model.noncentred.sums is None else self.weighing_by_sums
        return 1 + weighing * (2 if n >= MANY_RECORDS else 1)

    def of_sweep(self, plan: SweepPlan, n: int) -> float:
        """The cost of a sweep."""
        cost = self.imputation + self.interweaving * plan.interweave
        if plan.noise == "moved by surrogate":
            cost += self.surrogate / n
        if isinstance(plan.imputation, SOMA):
            cost += self.soma_attempt * (n if plan.imputation.attempts is None else float(plan.imputation.attempts))
        return cost


MOST_MEASURED = 16
"""The releases of a batch of which the effective draws are measured, for rates that all have."""


def adapt_refresh(
    refresh: RefreshTuning, fitted: Tuning, place: int, draws: Parameters, thin: int, costs: tuple[float, float]
) -> RefreshTuning:
    """The refreshes of the segment after one that has ended.

    Parameters
    ----------
    refresh
        Those of the segment; leaves may have a leading axis [release, ...] here and below.
    fitted
        A whitening fitted to its draws.
    place
        Which of `TRIED` had their turn; a negative number before the first.
    draws
        The draws [chain, draw, ...] of the segment.
    thin
        How many steps they are apart.
    costs
        Those of a sweep and of a refresh.
    """
    if 0 <= place < len(TRIED):
        refresh = measure(refresh, place, draws, thin)
    if place != 0:
        # Sweeps alone may have missed what refreshes reach: there the fit before them stays.
        refresh = fit_refresh(refresh, fitted)
    if place == len(TRIED) - 1:
        return choose_rates(refresh, costs)
    return with_rates(refresh, *rates_after(place)) if place < len(TRIED) - 1 else refresh


def rates_after(place: int) -> tuple[int, int]:
    """The rates of the next segment: as many refreshes as sweeps until those of `TRIED` have their turns."""
    return TRIED[place + 1] if place >= -1 else (PERIOD, PERIOD)


def measure(refresh: RefreshTuning, place: int, draws: Parameters, thin: int) -> RefreshTuning:
    """The tuning with the autocorrelation that the rates at a place of `TRIED` leave, where draws are enough to tell.

    Of a batch it is that of some releases, in the places of all.
    """
    kept, several = np.array(refresh.kept), np.ndim(refresh.sweeps) > 0
    releases = range(min(len(kept), MOST_MEASURED)) if several else (...,)
    drawn = [{name: np.asarray(leaf[release]) for name, leaf in draws.items()} for release in releases]
    if num_draws_of(drawn[0]) < ENOUGH_DRAWS:
        return refresh
    kept[..., place] = np.mean([kept_by(own, thin) for own in drawn])
    return refresh._replace(kept=jax.numpy.asarray(kept))


def num_draws_of(draws: Parameters) -> int:
    """How many draws there are of all chains together."""
    return int(np.prod(np.shape(jax.tree.leaves(draws)[0])[:2]))


def kept_by(draws: Parameters, thin: int) -> float:
    """The autocorrelation that a step leaves of the slowest parameter, by the effective size of thinned draws."""
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(draws)]
    sizes = np.concatenate([np.ravel(size(leaf)) for leaf in leaves for size in (ess_bulk, ess_tail)])
    share = np.clip(np.nanmin(sizes, initial=np.inf) / num_draws_of(draws), 0.0, MANY_DRAWS)
    return float(((1 - share) / (1 + share)) ** (1 / thin))


def choose_rates(refresh: RefreshTuning, costs: tuple[float, float]) -> RefreshTuning:
    """The tuning with the rates of the most effective draws for their cost, as far as these were measured."""
    kept = np.reshape(np.asarray(refresh.kept, float), (-1, len(TRIED)))[0]
    if np.any(kept < 0) or np.all(np.asarray(refresh.prior_share) == 1.0):
        return with_rates(refresh, *TRIED[0])
    return with_rates(refresh, *best_rates(kept, *costs))


def best_rates(kept: np.ndarray, sweep_cost: float, refresh_cost: float) -> tuple[int, int]:
    """How many sweeps and refreshes to make in a period.

    Parameters
    ----------
    kept
        The autocorrelations [tried] that are left by a step at the rates that were tried.
    sweep_cost
        The cost of a sweep.
    refresh_cost
        The cost of a refresh.
    """
    floor = max(FLOOR, int(FLOOR_COST * PERIOD * sweep_cost / refresh_cost))
    tried = np.array([(PERIOD, floor), *TRIED[1:]])
    rates = np.concatenate([tried * multiple for multiple in MULTIPLES])
    left = np.concatenate([kept**multiple for multiple in MULTIPLES])
    draws = (1 - left) / (1 + left)
    gain = draws / (rates @ (sweep_cost, refresh_cost) / PERIOD + Costs().step)
    # The first choice is a sweep in each step and the fewest refreshes.
    allowed = (rates[:, 0] <= PERIOD) & (draws >= LEAST_DRAWS * draws[0])
    sweeps, refreshes = rates[np.argmax(np.where(allowed, gain, 0.0))]
    return int(sweeps), int(refreshes)
