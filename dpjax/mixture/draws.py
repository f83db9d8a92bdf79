"""What is kept of the draws of a mixture."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dpjax.base import Array
from dpjax.mixture.base import Mixing, MixtureInfo, MixtureState

__all__ = ["Collect", "Draw", "Parts", "join", "join_numbers", "keep"]

Collect = Callable[[MixtureState], Any]


@dataclass(frozen=True)
class Parts:
    """The parts of a state that have these names, as ``collect=("labels",)`` asks for them."""

    names: tuple[str, ...]

    def __call__(self, state: MixtureState) -> dict[str, Array]:
        """The parts by name."""
        return {name: getattr(state, name) for name in self.names}


class Draw(NamedTuple):
    """What is kept of a sweep.

    Attributes
    ----------
    num_clusters
        The number of clusters [].
    concentration
        The concentration [].
    mixing
        The mixing measure.
    info
        The report on the last sweep.
    collected
        What the user's function took from the state.
    """

    num_clusters: Array
    concentration: Array
    mixing: Mixing
    info: MixtureInfo
    collected: Any


def keep(collect: Collect | None, state: MixtureState, info: MixtureInfo) -> Draw:
    """What is kept of one chain's state."""
    num_clusters = jnp.sum(state.counts > 0, dtype=jnp.int32)
    collected = None if collect is None else collect(state)
    return Draw(num_clusters, state.concentration, state.mixing, info, collected)


def join_numbers(chunks: tuple[Draw, ...]) -> dict[str, Any]:
    """The numbers of clusters and the concentrations of all chunks, [chain, draw]."""
    names = ("num_clusters", "concentration")
    return {name: np.concatenate([getattr(chunk, name) for chunk in chunks]).T for name in names}


def join(chunks: tuple[Draw, ...], capacity: int) -> Any:
    """The draws of all chunks as arrays [chain, draw, ...] of so many slots; those that a chunk lacks are empty."""

    def widen(leaf: Any) -> Any:
        width = [(0, 0), (0, 0), (0, capacity - leaf.shape[2]), *[(0, 0)] * (leaf.ndim - 3)]
        return np.pad(leaf, width, mode="edge")

    def fill(mixing: Mixing) -> Any:
        empty = np.arange(capacity) >= mixing.weights.shape[2]
        weights: Any = np.where(empty, 0, widen(mixing.weights)).astype(mixing.weights.dtype)
        return mixing._replace(weights=weights, theta={name: widen(leaf) for name, leaf in mixing.theta.items()})

    filled = [chunk._replace(mixing=fill(chunk.mixing)) for chunk in chunks]
    return jax.tree.map(lambda *leaves: np.swapaxes(np.concatenate(leaves), 0, 1), *filled)
