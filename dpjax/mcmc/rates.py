"""How often chains sweep and refresh: tried in the warm-up, chosen once, and then left as it is.

A choice is good if it gives many effective draws for its cost. The effective draws are those of windows in which some
rates were tried; the costs are those of a fixed table, as by a clock each run would choose otherwise.
"""

from collections.abc import Mapping
from typing import NamedTuple

import jax
import numpy as np

from dpjax.base import Model, Parameters
from dpjax.data_augmentation.parameters import Tuning
from dpjax.data_augmentation.plan import SweepPlan, imputation_in_parts
from dpjax.data_augmentation.records.forms import FreshProposals
from dpjax.data_augmentation.records.parts import NUM_PARTS
from dpjax.data_augmentation.refresh import (
    FLOOR,
    PERIOD,
    RECORDS_ALL_WEIGHED,
    TRIED,
    TRIED_IN_PARTS,
    Rates,
    RefreshTuning,
    fit_refresh,
    with_rates,
)
from dpjax.diagnostics import ess_bulk, ess_tail
from dpjax.mcmc.draws import REFRESHES

MULTIPLES = (1, 2, 4, 8, 16)
"""Multiples of rates that were tried to choose from: each step is then as good as so many of theirs."""

ENOUGH_REFRESHES = 256
"""Fewest refreshes of all chains that have to be refused before no more are made."""

ENOUGH_DRAWS = 128
"""Fewest draws of all chains from which it is chosen how often: of fewer, effective sizes mean nothing."""

MANY_DRAWS = 0.95
"""Most effective draws of a thinned draw: of more, nothing can be said about the steps in between."""

FLOOR_COST = 0.05
"""Share of a sweep's cost that refreshes may take where they gain nothing: they keep remote modes in reach."""

PART_COST = 0.4
"""Cost of a sweep over one part of the records, in units of a whole one: for 1,000 and 10,000 records 0.37 in float64,
for 10,000 in float32 0.25."""

MARGIN = 1.5
"""The fewest refreshes must give so many times as many effective draws for their cost as other rates.

A warm-up cannot see what chains miss that seldom enter a region, and refreshes reach every region.
"""

LEAST_DRAWS = 0.5
"""Fewest effective draws of a step, in units of what a sweep gives: draws that are kept are of some use, too."""


class CostsOfOneCore(NamedTuple):
    """Costs in units of a proposal, which draws n records and adds up their statistic once.

    Measured on one CPU core in float64, in these units. Sweeps of a regression of 100 records: 6.0, without
    interweaving 2.2, by SOMA at all places 13.9. With the latent normals moved by surrogate: 14.7 for 1,000 records,
    9.0 for 4,000 and 6.5 for 10,000. Sweeps of a Normal model: 5.5, of an exponential one 3.5. Of Normal, Poisson and
    gamma records in NumPyro they take 5.5, 9.1 and 2.4. Refreshes: 2.2 to 2.6 for the regression of 100 records (19 µs
    beside 49 µs for a sweep in float32, 27 beside 58 in float64). For Normal, Poisson and gamma records they take 2.0,
    9.0 and 1.7. Weighing eight candidates: 1.4, 1.2 and 0.6 for 100, 1,000 and 10,000 of the regression's.
    """

    imputation: float = 2.2
    interweaving: float = 3.6
    soma_attempt: float = 0.12
    surrogate: float = 8e3
    weighing: float = 0.6
    weighing_few: float = 80.0
    weighing_by_sums: float = 8.0
    step: float = 0.1

    def of(self, model: Model, plan: SweepPlan, n: int) -> tuple[float, float]:
        """The costs of a sweep and of a refresh."""
        return self.of_sweep(plan, n), self.of_refresh(model, n)

    def of_refresh(self, model: Model, n: int) -> float:
        """The cost of a refresh, with the weighing of candidates where there are several."""
        if not model.has("noncentred"):
            return 1.0
        weighing = self.weighing + self.weighing_few / n if model.noncentred.sums is None else self.weighing_by_sums
        return 1 + weighing * (2 if n >= RECORDS_ALL_WEIGHED else 1)

    def of_sweep(self, plan: SweepPlan, n: int) -> float:
        """The cost of a sweep."""
        cost = self.imputation + self.interweaving * plan.interweave
        if plan.noise == "moved by surrogate":
            cost += self.surrogate / n
        if isinstance(plan.imputation, FreshProposals):
            cost += self.soma_attempt * plan.imputation.num_weighed(n)
        return cost


MOST_MEASURED = 16
"""The releases of a batch of which the effective draws are measured, for rates that all have."""


def rates_to_try(plan: SweepPlan, n: int) -> tuple[Rates, ...]:
    """The rates that the warm-up of a run with n records tries, one after another."""
    return TRIED if imputation_in_parts(plan, n) is None else TRIED_IN_PARTS


def adapt_refresh(
    refresh: RefreshTuning,
    fitted: Tuning,
    tried: tuple[Rates, ...],
    place: int,
    draws: Parameters,
    info: Mapping[str, np.ndarray],
    thin: int,
    costs: tuple[float, float],
) -> RefreshTuning:
    """The refreshes of the segment after one that has ended.

    Parameters
    ----------
    refresh
        Those of the segment; leaves may have a leading axis [release, ...] here and below.
    fitted
        A whitening fitted to its draws.
    tried
        The rates to try; see `rates_to_try`.
    place
        Which of them had their turn; a negative number before the first.
    draws
        The draws [chain, draw, ...] of the segment.
    info
        The reports [chain, draw] on them.
    thin
        How many steps they are apart.
    costs
        Those of a sweep and of a refresh.
    """
    in_turn = 0 <= place < len(tried)
    if in_turn:
        refresh = count_accepted(measure(refresh, place, draws, thin), info)
    if not (in_turn and tried[place].refreshes == FLOOR):
        # Sweeps alone may have missed what refreshes reach: there the fit before them stays.
        refresh = fit_refresh(refresh, fitted)
    if place == len(tried) - 1:
        return choose_rates(refresh, tried, costs)
    return with_rates(refresh, rates_after(tried, place)) if place < len(tried) - 1 else refresh


def rates_after(tried: tuple[Rates, ...], place: int) -> Rates:
    """The rates of the next segment: as many refreshes as sweeps until those to try have their turns."""
    return tried[place + 1] if place >= -1 else Rates(PERIOD, PERIOD)


def measure(refresh: RefreshTuning, place: int, draws: Parameters, thin: int) -> RefreshTuning:
    """The tuning with the autocorrelation that the rates at a place leave, where draws are enough to tell.

    For a batch it is that of some releases, in the places of all.
    """
    kept, several = np.array(refresh.kept), np.ndim(refresh.sweeps) > 0
    releases = range(min(len(kept), MOST_MEASURED)) if several else (...,)
    drawn = [{name: np.asarray(leaf[release]) for name, leaf in draws.items()} for release in releases]
    if num_draws_of(drawn[0]) < ENOUGH_DRAWS:
        return refresh
    kept[..., place] = np.mean([kept_by(own, thin) for own in drawn])
    return refresh._replace(kept=jax.numpy.asarray(kept))


def count_accepted(refresh: RefreshTuning, info: Mapping[str, np.ndarray]) -> RefreshTuning:
    """The tuning with a segment's refreshes added to those made and accepted; in a batch, those of all releases."""
    number = np.asarray(info[REFRESHES])
    new = {"made": np.sum(number), "accepted": np.rint(np.sum(number * np.asarray(info["refresh_acceptance_rate"])))}
    totals = {name: np.asarray(getattr(refresh, name)) + np.int32(more) for name, more in new.items()}
    return refresh._replace(**jax.tree.map(jax.numpy.asarray, totals))


def num_draws_of(draws: Parameters) -> int:
    """How many draws there are of all chains together."""
    return int(np.prod(np.shape(jax.tree.leaves(draws)[0])[:2]))


def kept_by(draws: Parameters, thin: int) -> float:
    """The autocorrelation that a step leaves of the slowest parameter, by the effective size of thinned draws."""
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(draws)]
    sizes = np.concatenate([np.ravel(size(leaf)) for leaf in leaves for size in (ess_bulk, ess_tail)])
    share = np.clip(np.nanmin(sizes, initial=np.inf) / num_draws_of(draws), 0.0, MANY_DRAWS)
    return float(((1 - share) / (1 + share)) ** (1 / thin))


def choose_rates(refresh: RefreshTuning, tried: tuple[Rates, ...], costs: tuple[float, float]) -> RefreshTuning:
    """The tuning with the rates of the most effective draws for their cost, as far as these were measured.

    If many refreshes were tried, none was accepted and sweeps gain most, no more are made.
    """
    futile = bool(np.min(refresh.made) >= ENOUGH_REFRESHES and not np.any(refresh.accepted))
    kept = np.reshape(np.asarray(refresh.kept, float), (-1, len(tried)))[0]
    if np.any(kept < 0) or np.all(np.asarray(refresh.prior_share) == 1.0):
        return with_rates(refresh, tried[0]._replace(refreshes=0) if futile else tried[0])
    return with_rates(refresh, best_rates(tried, kept, *costs, futile=futile))


class StepCosts(NamedTuple):
    """The costs of a sweep and of a refresh, and what steps at some rates cost and gain by them.

    Attributes
    ----------
    futile
        Whether the fewest refreshes are none.
    """

    sweep: float
    refresh: float
    futile: bool = False

    def of_step(self, rates: Rates) -> float:
        """The cost of a step."""
        part = self.sweep * (PART_COST if rates.parts < NUM_PARTS else 1)
        return (rates.sweeps * part + rates.refreshes * self.refresh) / PERIOD + CostsOfOneCore().step

    def multiple_of(self, rates: Rates, multiple: int) -> Rates:
        """A multiple of rates; the fewest refreshes are as many as cost little beside the sweeps."""
        few = 0 if self.futile else max(FLOOR, int(FLOOR_COST * PERIOD * self.sweep / self.refresh))
        own = few if rates.refreshes == FLOOR else PERIOD
        return Rates(rates.sweeps * multiple, own * multiple, rates.parts)

    def gain_of(self, rates: Rates, left: float, multiple: int) -> float:
        """The effective draws for their cost at a multiple of rates of which a step leaves this autocorrelation."""
        margin = MARGIN if rates.refreshes == FLOOR else 1
        return draws_of(left**multiple) / self.of_step(self.multiple_of(rates, multiple)) / margin


def draws_of(left: float) -> float:
    """The effective draws of a step that leaves this autocorrelation."""
    return (1 - left) / (1 + left)


def best_rates(
    tried: tuple[Rates, ...], kept: np.ndarray, sweep_cost: float, refresh_cost: float, futile: bool = False
) -> Rates:
    """The rates to make, which are multiples of those that were tried.

    Parameters
    ----------
    tried
        The rates that were tried, first those of whole sweeps almost alone.
    kept
        The autocorrelations [tried] that are left by a step at the rates that were tried.
    sweep_cost
        The cost of a sweep.
    refresh_cost
        The cost of a refresh.
    futile
        Whether no refresh was accepted: the fewest are then none.
    """
    prices, least = StepCosts(sweep_cost, refresh_cost, futile), LEAST_DRAWS * draws_of(kept[0])
    choices = [(rates, left, multiple) for rates, left in zip(tried, kept, strict=True) for multiple in MULTIPLES]
    gains = {
        prices.multiple_of(rates, multiple): prices.gain_of(rates, left, multiple)
        for rates, left, multiple in choices
        # The first choice is a sweep in each step and the fewest refreshes.
        if rates.sweeps * multiple <= PERIOD and draws_of(left**multiple) >= least
    }
    return max(gains, key=lambda rates: gains[rates])
