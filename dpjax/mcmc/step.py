"""A step of the chains of `dpjax.sample`: the sweep and the refreshes that are due, and what is reported of them."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dpjax.base import Array, Key
from dpjax.data_augmentation.parameters import Tuning
from dpjax.data_augmentation.refresh import Refreshes, RefreshInfo, RefreshTuning, num_due
from dpjax.data_augmentation.sweep import GibbsInfo, Sweep
from dpjax.models.simulation import GibbsState

SWEEPS, REFRESHES = "num_sweeps", "num_refreshes"
"""The reports on how many were made, where a step is not always one sweep."""

Reports = dict[str, Array]


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


def build_step(sweep: Sweep, tuning: Tuning | None) -> Callable[[Key, Chains], tuple[Chains, Reports]]:
    """The step ``(key, chain) -> (chain, reports)`` that is one sweep."""

    def step(key: Key, chain: Chains) -> tuple[Chains, Reports]:
        state, info = sweep.move(key, chain.state, tuning)
        if chain.accepted is None:
            return Chains(state, None), {}
        accepted = chain.accepted + info.imputation.accepted.astype(chain.accepted.dtype)
        return Chains(state, accepted), report(info)

    return step


def build_mixed_step(
    sweep: Sweep, refreshes: Refreshes, tuning: Tuning | None, refresh: RefreshTuning
) -> Callable[[Key, Chains, Array], tuple[Chains, Reports]]:
    """The step ``(key, chain, number) -> (chain, reports)``: a sweep if one is due, and then the refreshes that are.

    Rates are reported as sums over the sweeps, or the refreshes, that were made; their numbers are reported beside.
    """
    sweep_once = jax.jit(build_step(sweep, tuning))

    def step(key: Key, chain: Chains, number: Array) -> tuple[Chains, Reports]:
        sweep_key, refresh_key = jax.random.split(key)
        due = num_due(refresh.sweeps, number)
        nothing = jax.tree.map(empty, jax.eval_shape(sweep_once, sweep_key, chain)[1])
        # The number is the same for all chains: what is not due is a branch that is not taken, also side by side.
        chain, reports = jax.lax.cond(due > 0, sweep_once, lambda key, chain: (chain, nothing), sweep_key, chain)
        state, info = refreshes(refresh_key, number, chain.state, refresh)
        return chain._replace(state=state), add_refreshes(reports, due, info)

    return step


def empty(leaf: Any) -> Array:
    """Zeros of the shape of a leaf."""
    return jnp.zeros(leaf.shape, leaf.dtype)


def add_refreshes(reports: Reports, num_sweeps: Array, info: RefreshInfo) -> Reports:
    """The reports on a sweep, if one was made, with those on the refreshes after it."""
    return reports | {
        "num_nonfinite": reports["num_nonfinite"] + info.num_nonfinite.astype(reports["num_nonfinite"].dtype),
        "refresh_acceptance_rate": info.num_accepted.astype(float),
        REFRESHES: info.num_made,
        SWEEPS: num_sweeps,
    }


def report(info: GibbsInfo) -> Reports:
    """The scalar reports on a sweep by name; counts [n] are carried, and other arrays are not kept."""
    kept = {"acceptance_rate": info.imputation.acceptance_rate, "num_nonfinite": info.num_nonfinite}
    for path, leaf in jax.tree.leaves_with_path({"centred": info.centred, "interweaving": info.interweaving}):
        if jnp.ndim(leaf) == 0:
            # A BlackJAX kernel with a fixed number of steps reports it as a plain number.
            kept[jax.tree_util.keystr(path, simple=True, separator="_")] = jnp.asarray(leaf)
    # The energy of a divergent trajectory is NaN, which jax_debug_nans would report as a fault.
    kept = {
        name: jnp.where(jnp.isnan(leaf), jnp.inf, leaf) if "energy" in name else leaf for name, leaf in kept.items()
    }
    # The share of steps is the average of a flag.
    return {name: leaf.astype(float) if leaf.dtype == bool else leaf for name, leaf in kept.items()}


def is_rate(leaf: Any) -> bool:
    """Whether a report is averaged; counts are added up."""
    return jnp.issubdtype(leaf.dtype, jnp.floating)


def average(total: Reports, thin: Array) -> Reports:
    """The reports on a draw, of those on its steps added up: rates are averaged, 0 where nothing was made."""

    def count(name: str) -> Array:
        return jnp.maximum(total[counted_by(name)], 1) if SWEEPS in total else thin

    return {name: leaf / count(name).astype(leaf.dtype) if is_rate(leaf) else leaf for name, leaf in total.items()}


def counted_by(name: str) -> str:
    """The report on how many there were of what a rate is averaged over."""
    return REFRESHES if name.startswith("refresh") else SWEEPS


def fill_gaps(info: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Reports [chain, draw] with the latest rates in draws for which no sweep, or no refresh, was made.

    Before the first one that was made they are those of the first; 0 where none was.
    """
    if SWEEPS not in info:
        return info
    return {name: latest(leaf, info[counted_by(name)] > 0) if is_rate(leaf) else leaf for name, leaf in info.items()}


def latest(rates: np.ndarray, made: np.ndarray) -> np.ndarray:
    """For each draw [chain, draw] the rate of the latest one of those that are made, or of the first."""
    places = np.maximum.accumulate(np.where(made, np.arange(made.shape[1]), -1), axis=1)
    first = np.argmax(made, axis=1)[:, None]
    return np.take_along_axis(rates, np.where(places < 0, first, places), axis=1)


def weigh(info: dict[str, Any]) -> dict[str, Any]:
    """The reports with rates times the number of what they are averaged over, so that they can be added up."""
    if SWEEPS not in info:
        return info
    return {name: leaf * info[counted_by(name)] if is_rate(leaf) else leaf for name, leaf in info.items()}
