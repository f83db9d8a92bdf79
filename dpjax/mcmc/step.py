"""The step of `dpjax.sample`, a sweep or what of sweeps and refreshes is due, with what it reports and counts."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dpjax.base import Array, Key, Model
from dpjax.data_augmentation.parameters import Tuning
from dpjax.data_augmentation.refresh import RefreshInfo, RefreshTuning
from dpjax.data_augmentation.sweep import GibbsInfo, Sweep, build_mixed_step
from dpjax.mcmc.draws import Reports, add_refreshes, report_sweep
from dpjax.models.simulation import GibbsState
from dpjax.runtime.chunk import Step

__all__ = ["Chains", "build_step"]


class Chains(NamedTuple):
    """What the chains carry from step to step.

    Attributes
    ----------
    state
        The states, leading axis [chain].
    accepted
        How many proposals each record has accepted since sampling began, int32 [chain, n]; None where no rates are
        kept.
    """

    state: GibbsState
    accepted: Array | np.ndarray | None

    def after(self, state: GibbsState, accepted: Array) -> "Chains":
        """One chain in its next state, with what each record accepted in this step counted [n]."""
        assert self.accepted is not None
        return Chains(state, self.accepted + accepted.astype(self.accepted.dtype))


def build_step(model: Model, sweep: Sweep, tuning: Tuning | None, refresh: RefreshTuning | None) -> Step:
    """The step of a chain for `make_draws`, numbered if there are refreshes."""
    if refresh is None:
        return build_sweep_step(sweep, tuning)
    return build_numbered_step(build_mixed_step(model, sweep, tuning, refresh, keep_reports))


def keep_reports(info: GibbsInfo) -> tuple[Reports, Array]:
    """The reports on a sweep, and how many proposals each record accepted in it [n]."""
    return report_sweep(info), info.imputation.accepted


def build_sweep_step(sweep: Sweep, tuning: Tuning | None) -> Callable[[Key, Chains], tuple[Chains, Reports]]:
    """The step ``(key, chain) -> (chain, reports)`` that is one sweep."""

    def step(key: Key, chain: Chains) -> tuple[Chains, Reports]:
        state, info = sweep.move(key, chain.state, tuning)
        if chain.accepted is None:
            return Chains(state, None), {}
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
