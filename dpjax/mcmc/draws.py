"""The draws of `dpjax.sample`: what is kept of a step, what is reported of it, and both as numbers for a summary."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dpjax.base import Array, Parameters, Records
from dpjax.data_augmentation.records.parts import NUM_PARTS, num_proposals
from dpjax.data_augmentation.refresh import RefreshInfo, RefreshTuning, parts_due
from dpjax.data_augmentation.sweep import GibbsInfo
from dpjax.runtime.chunk import Segment
from dpjax.runtime.run import Status

SWEEPS, REFRESHES = "num_sweeps", "num_refreshes"
"""The reports on how many were made, where a step is not always one sweep."""

Reports = dict[str, Array]

__all__ = [
    "REFRESHES",
    "SWEEPS",
    "Draw",
    "Reports",
    "accepted_per_proposal",
    "add_refreshes",
    "average",
    "drawn_of",
    "fill_gaps",
    "report_sweep",
]


class Draw(NamedTuple):
    """What is kept of a step.

    Attributes
    ----------
    parameters
        The parameters.
    derived
        What the model derives from them.
    reported
        What it reports of the records.
    info
        Reports on the steps since the last draw: rates and flags are averaged, counts summed.
    collected
        What the user's function took from the state.
    """

    parameters: Parameters
    derived: Parameters
    reported: Records
    info: dict[str, Array]
    collected: Any


def add_refreshes(reports: Reports, num_sweeps: Array, info: RefreshInfo) -> Reports:
    """The reports on a sweep, if one was made, with those on the refreshes after it."""
    return reports | {
        "num_nonfinite": reports["num_nonfinite"] + info.num_nonfinite.astype(reports["num_nonfinite"].dtype),
        "refresh_acceptance_rate": info.num_accepted.astype(float),
        REFRESHES: info.num_made,
        SWEEPS: num_sweeps,
    }


def report_sweep(info: GibbsInfo) -> Reports:
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
    """Reports [..., chain, draw] with the latest rates in draws for which no sweep, or no refresh, was made.

    Before the first one that was made they are those of the first; 0 where none was.
    """
    if SWEEPS not in info:
        return info
    return {name: latest(leaf, info[counted_by(name)] > 0) if is_rate(leaf) else leaf for name, leaf in info.items()}


def latest(rates: np.ndarray, made: np.ndarray) -> np.ndarray:
    """For each draw [..., draw] the rate of the latest one of those that are made, or of the first."""
    places = np.maximum.accumulate(np.where(made, np.arange(made.shape[-1]), -1), axis=-1)
    first = np.argmax(made, axis=-1)[..., None]
    return np.take_along_axis(rates, np.where(places < 0, first, places), axis=-1)


def accepted_per_proposal(
    accepted: np.ndarray, info: dict[str, np.ndarray], status: Status, segment: Segment
) -> np.ndarray:
    """The share of the proposals to each record that it accepted in the draws of a segment.

    Parameters
    ----------
    accepted
        How many it accepted [..., n].
    info
        The reports [..., draw] on these draws.
    """
    if SWEEPS not in info:
        return accepted / max(status.filled * segment.thin, 1)
    # All chains of all releases make the same sweeps.
    rates: RefreshTuning = jax.tree.map(lambda leaf: np.ravel(leaf)[0], status.kernel.refresh)
    made = int(np.sum(info[SWEEPS].reshape(-1, info[SWEEPS].shape[-1])[0]))
    first, parts = parts_due(rates, np.int32(segment.start))
    if parts == NUM_PARTS:
        return accepted / max(made, 1)
    return accepted / np.maximum(num_proposals(accepted.shape[-1], int(first), made * int(parts)), 1)


def drawn_of(draws: Draw) -> dict[str, Any]:
    """What is kept under its name of each draw."""
    return {**draws.parameters, **draws.derived, **draws.reported}
