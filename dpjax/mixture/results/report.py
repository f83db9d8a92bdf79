"""What a run has drawn, put together."""

import warnings
from typing import Any

import jax
import numpy as np

from dpjax.mixture.base import Mixing
from dpjax.mixture.chunks import Draw
from dpjax.mixture.results.posterior import MixturePosterior
from dpjax.mixture.run import Run, Status
from dpjax.posterior import warn_of_nonfinite

__all__ = ["join", "report"]


def report(run: Run, status: Status, wanted: int) -> MixturePosterior:
    """The posterior of the draws made, with a warning if some are missing and an error if all are."""
    drawn = sum(len(chunk.num_clusters) for chunk in status.chunks)
    if drawn == 0:
        raise KeyboardInterrupt("mixture.sample was interrupted before the first draw.")
    if drawn < wanted:
        warnings.warn(f"mixture.sample was interrupted after {drawn} of {wanted} draws.", stacklevel=3)
    draw = join(status.chunks)
    info = {
        name: getattr(draw.info, name) for name in ("acceptance_rate", "num_nonfinite", "num_slots", "num_split_merges")
    }
    warn_of_nonfinite(info["num_nonfinite"], stacklevel=4)
    return MixturePosterior(
        draws={"num_clusters": draw.num_clusters, "concentration": draw.concentration},
        mixing=draw.mixing,
        info=info,
        collected=draw.collected,
        truncation_error=status.setup.sampler.truncation_error(run.problem.n, np.max(draw.concentration)),
        interrupted=drawn < wanted,
        problem=run.problem,
        final_states=status.states,
    )


def join(chunks: tuple[Draw, ...]) -> Any:
    """The draws of all chunks as arrays [chain, draw, ...]; slots that a chunk does not have are empty there."""
    capacity = max(chunk.mixing.weights.shape[2] for chunk in chunks)

    def widen(leaf: Any) -> Any:
        width = [(0, 0), (0, 0), (0, capacity - leaf.shape[2]), *[(0, 0)] * (leaf.ndim - 3)]
        return np.pad(leaf, width, mode="edge")

    def fill(mixing: Mixing) -> Any:
        empty = np.arange(capacity) >= mixing.weights.shape[2]
        weights: Any = np.where(empty, 0, widen(mixing.weights)).astype(mixing.weights.dtype)
        return mixing._replace(weights=weights, theta={name: widen(leaf) for name, leaf in mixing.theta.items()})

    filled = [chunk._replace(mixing=fill(chunk.mixing)) for chunk in chunks]
    return jax.tree.map(lambda *leaves: np.swapaxes(np.concatenate(leaves), 0, 1), *filled)
