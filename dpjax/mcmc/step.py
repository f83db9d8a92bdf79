"""The step of `dpjax.sample`, a sweep or what of sweeps and refreshes is due, with what it reports and counts."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from blackjax.adaptation.step_size import DualAveragingAdaptationState, dual_averaging_adaptation

from dpjax.base import Array, Key, Model
from dpjax.data_augmentation.parameters import Tuning
from dpjax.data_augmentation.refresh import RefreshInfo, RefreshTuning
from dpjax.data_augmentation.sweep import GibbsInfo, Sweep, build_mixed_step
from dpjax.mcmc.draws import Reports, add_refreshes, report_sweep
from dpjax.models.simulation import GibbsState
from dpjax.runtime.chunk import Step

__all__ = ["Chains", "StepSearch", "build_step", "search_from"]


class Chains(NamedTuple):
    """What the chains carry from step to step.

    Attributes
    ----------
    state
        The states, leading axis [chain].
    accepted
        How many proposals each record has accepted since sampling began, int32 [chain, n]; None where no rates are
        kept.
    search
        The search for a step size, if it is searched for while the chains move.
    """

    state: GibbsState
    accepted: Array | np.ndarray | None
    search: "StepSearch | None" = None

    def after(self, state: GibbsState, accepted: Array) -> "Chains":
        """One chain in its next state, with what each record accepted in this step counted [n]."""
        assert self.accepted is not None
        return self._replace(state=state, accepted=self.accepted + accepted.astype(self.accepted.dtype))


class StepSearch(NamedTuple):
    """The search for a step size by dual averaging, each [chain].

    Attributes
    ----------
    averaging
        How far it is.
    is_on
        Whether the step size still changes: it does not once the warm-up is over.
    """

    averaging: DualAveragingAdaptationState
    is_on: Array | np.ndarray

    def tuned(self, tuning: Tuning) -> Tuning:
        """The tuning with the step size that is tried next."""
        tried = jnp.exp(self.averaging.log_step_size).astype(tuning.step_size.dtype)
        return tuning._replace(step_size=jnp.where(self.is_on, tried, tuning.step_size))

    def after(self, rate: Array, target: float) -> "StepSearch":
        """The search after a step of this acceptance rate."""
        with jax.numpy_dtype_promotion("standard"):  # as BlackJAX has it
            moved = dual_averaging_adaptation(target)[1](self.averaging, rate)
        return self._replace(averaging=jax.tree.map(lambda new, old: new.astype(old.dtype), moved, self.averaging))


def search_from(step_size: Any, num_chains: int, is_on: bool) -> StepSearch:
    """The search of all chains from a step size [] on, as arrays of the host."""
    begin = dual_averaging_adaptation(0.8)[0]  # where it begins does not depend on the rate aimed at
    averaging = jax.tree.map(np.asarray, begin(np.asarray(step_size)))
    kind = np.asarray(step_size).dtype

    def for_chains(leaf: np.ndarray) -> np.ndarray:
        # As devices have it, so that a checkpoint is what it is compared with.
        return np.full(num_chains, leaf, kind if leaf.dtype.kind == "f" else jnp.asarray(leaf).dtype)

    return StepSearch(jax.tree.map(for_chains, averaging), np.full(num_chains, is_on))


def build_step(model: Model, sweep: Sweep, tuning: Tuning | None, refresh: RefreshTuning | None, target: float) -> Step:
    """The step of a chain for `make_draws`, numbered if there are refreshes.

    Parameters
    ----------
    target
        The acceptance rate for which a step size is searched.
    """
    if refresh is None:
        return build_sweep_step(sweep, tuning, target)
    return build_numbered_step(build_mixed_step(model, sweep, tuning, refresh, keep_reports))


def keep_reports(info: GibbsInfo) -> tuple[Reports, Array]:
    """The reports on a sweep, and how many proposals each record accepted in it [n]."""
    return report_sweep(info), info.imputation.accepted


def build_sweep_step(
    sweep: Sweep, tuning: Tuning | None, target: float
) -> Callable[[Key, Chains], tuple[Chains, Reports]]:
    """The step ``(key, chain) -> (chain, reports)`` that is one sweep."""

    def step(key: Key, chain: Chains) -> tuple[Chains, Reports]:
        search = chain.search
        state, info = sweep.move(key, chain.state, tuning if search is None or tuning is None else search.tuned(tuning))
        if search is not None:
            chain = chain._replace(search=search.after(info.imputation.acceptance_rate, target))
        if chain.accepted is None:
            return chain._replace(state=state), {}
        reports, accepted = keep_reports(info)
        return chain.after(state, accepted), reports

    return step


def build_numbered_step(
    mixed: Callable[[Key, Array, GibbsState], tuple[GibbsState, tuple[Reports, Array], Array, RefreshInfo]],
) -> Callable[[Key, Chains, Array], tuple[Chains, Reports]]:
    """The step ``(key, chain, number) -> (chain, reports)`` of `build_mixed_step`.

    Rates are reported as sums over the sweeps, or the refreshes, that were made; their numbers are reported beside.
    """

    def step(key: Key, chain: Chains, number: Array) -> tuple[Chains, Reports]:
        state, (reports, accepted), num_sweeps, info = mixed(key, number, chain.state)
        return chain.after(state, accepted), add_refreshes(reports, num_sweeps, info)

    return step
