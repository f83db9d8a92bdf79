"""How often chains sweep and refresh: chosen once, towards the end of the warm-up, and then left as it is.

A choice is good if it gives many effective draws for its cost. Both are predicted: the effective draws of a sweep from
draws that were made by sweeps, those of a refresh from the weights of some proposals, and the costs by a fixed table,
as by a clock each run would choose otherwise.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dpjax.base import Array, Key, Model, Parameters
from dpjax.data_augmentation.plan import SweepPlan
from dpjax.data_augmentation.records.soma import SOMA
from dpjax.data_augmentation.refresh import (
    FLOOR,
    PERIOD,
    PRIOR_SHARE,
    RefreshTuning,
    build_proposal,
    log_weight,
    with_rates,
)
from dpjax.diagnostics import ess_bulk, ess_tail
from dpjax.models.recipe import jit_model
from dpjax.release import PrivateRelease

SWEEPS = (16, 8, 4, 2, 1)
REFRESHES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
"""Numbers in a period to choose from."""

ENOUGH_DRAWS = 128
"""Fewest draws of all chains from which it is chosen how often: of fewer, effective sizes mean nothing."""

MANY_DRAWS = 0.95
"""Most effective draws of a thinned draw: of more, nothing can be said about the sweeps in between."""

FLOOR_COST = 0.05
"""Share of a sweep's cost that refreshes may take where they gain nothing: they keep remote modes in reach."""

LEAST_DRAWS = 0.5
"""Fewest effective draws of a step, in units of what a sweep gives: draws that are kept are worth something, too."""

MOST_PROPOSALS, FEWEST_PROPOSALS = 2_048, 256
MANY_RECORDS = 2**18
"""Proposals to weigh, as many as have so many records together; beyond them a program that is compiled well is used."""


class Costs(NamedTuple):
    """Costs in units of one refresh, which draws n records and adds up their statistic once.

    Measured on one CPU core in float64, in these units: a regression's sweep of 100 records 3.0 to 3.6, without
    interweaving 2.5, by SOMA at all places 8.3; with noise moved by surrogate 90 at n = 1,000, 44 at 2,000 and 13 at
    10,000; a NumPyro model's sweep, with a parameter kernel, 4.3; those of a Normal, Dirichlet, exponential and beta
    model 1.1 to 1.7. What is kept of a step costs a tenth.
    """

    imputation: float = 1.5
    interweaving: float = 1.0
    parameter_kernel: float = 1.0
    soma_attempt: float = 0.07
    surrogate: float = 9e4
    step: float = 0.1

    def of_sweep(self, plan: SweepPlan, n: int) -> float:
        """The cost of a sweep."""
        cost = self.imputation + self.interweaving * plan.interweave
        cost += self.parameter_kernel * (plan.parameter_kernel is not None)
        if plan.noise == "moved by surrogate":
            cost += self.surrogate / n
        if isinstance(plan.imputation, SOMA):
            cost += self.soma_attempt * (n if plan.imputation.attempts is None else float(plan.imputation.attempts))
        return cost


def choose_rates(
    key: Key,
    model: Model,
    release: PrivateRelease,
    plan: SweepPlan,
    refresh: RefreshTuning,
    draws: Parameters,
    thin: int,
) -> RefreshTuning:
    """The refreshes with the most effective draws for their cost.

    Parameters
    ----------
    draws
        Draws [chain, draw, ...] that were made by sweeps, with hardly any refresh.
    thin
        How many sweeps they are apart.
    """
    num_draws = np.prod(np.shape(jax.tree.leaves(draws)[0])[:2])
    if num_draws < ENOUGH_DRAWS or refresh.prior_share == 1.0:
        return refresh
    kept = kept_by_sweep({name: np.asarray(leaf) for name, leaf in draws.items()}, thin)
    number = int(np.clip(MANY_RECORDS // release.n, FEWEST_PROPOSALS, MOST_PROPOSALS))
    weigh = weigh_proposals.quickly if number * release.n <= MANY_RECORDS else weigh_proposals
    of_refresh = (1 - PRIOR_SHARE) * draws_of_refresh(np.asarray(weigh(model, number, key, release, refresh)))
    return with_rates(refresh, *best_rates(kept, of_refresh, Costs().of_sweep(plan, release.n)))


@partial(jit_model, static_argnames=("num_proposals",))
def weigh_proposals(
    model: Model, num_proposals: int, key: Key, release: PrivateRelease, refresh: RefreshTuning
) -> Array:
    """The log-weights log η p / q [m] of proposals from the t distribution, up to a constant."""
    propose, fitted = build_proposal(model, release), refresh._replace(prior_share=jnp.zeros_like(refresh.prior_share))

    def weigh(number: Array) -> Array:
        state, _ = propose(jax.random.fold_in(key, number), fitted)
        return state.latent.log_density + log_weight(model, state.parameters, refresh)

    return jax.lax.map(weigh, jnp.arange(num_proposals), batch_size=max(1, MANY_RECORDS // (16 * release.n)))


def draws_of_refresh(log_weights: np.ndarray) -> float:
    """The effective draws of a refresh, from the log-weights [m] of proposals.

    An independence sampler leaves a state of weight w with probability α(w) = E min(1, W / w), so that a function which
    does not depend on the weights has autocorrelation time E_π (2 − α) / α (Liu 1996, section 2). Here the posterior π
    is that of the proposals by their weights.
    """
    possible = np.sort(log_weights[np.isfinite(log_weights)])
    ordered = np.exp(possible - np.max(possible, initial=-np.inf))
    if not ordered.size:
        return 0.0
    ordered = ordered[ordered > 0]
    leave = (np.cumsum(ordered) / ordered + np.arange(ordered.size)[::-1]) / log_weights.size
    return float(np.sum(ordered) / np.sum(ordered * (2 - leave) / leave))


def kept_by_sweep(draws: dict[str, np.ndarray], thin: int) -> float:
    """The autocorrelation that a sweep leaves of the slowest parameter, by the effective size of thinned draws."""
    sizes = np.concatenate([np.ravel(size(leaf)) for leaf in draws.values() for size in (ess_bulk, ess_tail)])
    num_draws = np.prod(next(iter(draws.values())).shape[:2])
    share = np.clip(np.nanmin(sizes, initial=np.inf) / num_draws, 0.0, MANY_DRAWS)
    return float(((1 - share) / (1 + share)) ** (1 / thin))


def best_rates(kept: float, of_refresh: float, cost: float) -> tuple[int, int]:
    """How many sweeps and refreshes to make in a period.

    Parameters
    ----------
    kept
        The autocorrelation left by a sweep.
    of_refresh
        The effective draws of a refresh.
    cost
        The cost of a sweep, in units of a refresh.
    """
    floor = max(FLOOR, int(FLOOR_COST * PERIOD * cost))
    sweeps, refreshes = (grid.ravel() for grid in np.meshgrid(SWEEPS, (floor, *REFRESHES), indexing="ij"))
    left = kept ** (sweeps / PERIOD) * ((1 - of_refresh) / (1 + of_refresh)) ** (refreshes / PERIOD)
    draws = (1 - left) / (1 + left)
    gain = draws / (sweeps / PERIOD * cost + refreshes / PERIOD + Costs().step)
    # The first choice is a sweep in each step and the fewest refreshes.
    allowed = (refreshes >= floor) & (draws >= LEAST_DRAWS * draws[0])
    best = int(np.argmax(np.where(allowed, gain, 0.0)))
    return int(sweeps[best]), int(refreshes[best])
