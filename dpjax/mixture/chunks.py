"""One compiled program that advances all chains by any number of draws, and stops where slots run out."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from dpjax.base import Array, Key
from dpjax.mixture.base import Mixing, MixtureInfo, MixtureState
from dpjax.mixture.problem import Problem
from dpjax.mixture.samplers.base import Setup, step
from dpjax.running.chunk import Chunk, make_draws

__all__ = ["Draw", "run_chunk"]


class Draw(NamedTuple):
    """What is kept of a sweep.

    num_clusters, concentration
        The number of clusters and the concentration [].
    mixing
        The mixing measure.
    info
        The report on the last sweep.
    collected
        What was asked for beside, by name.
    """

    num_clusters: Array
    concentration: Array
    mixing: Mixing
    info: MixtureInfo
    collected: dict[str, Array]


@partial(jax.jit, static_argnames=("setup", "collect", "capacity"))
def run_chunk(
    setup: Setup,
    collect: tuple[str, ...],
    capacity: int,
    *,
    problem: Problem,
    chain_keys: Key,
    states: MixtureState,
    start: Array,
    length: Array,
    thin: Array,
) -> Chunk:
    """Advance all chains by up to ``length * thin`` sweeps and keep every `thin`-th; see `make_draws`.

    Where a chain's slots do not suffice, no chain makes the draw in question and the loop ends: made again with more
    slots it is the same draw.
    """
    return make_draws(
        partial(step, problem, setup),
        partial(keep, collect),
        chain_keys=chain_keys,
        states=states,
        start=start,
        length=length,
        thin=thin,
        capacity=capacity,
        in_turn=setup.in_turn,
        combine=lambda earlier, latest: latest,
        fails=lambda info: jnp.any(info.overflow),
    )


def keep(collect: tuple[str, ...], state: MixtureState, info: MixtureInfo) -> Draw:
    """What is kept of one chain's state."""
    num_clusters = jnp.sum(state.counts > 0, dtype=jnp.int32)
    collected = {name: getattr(state, name) for name in collect}
    return Draw(num_clusters, state.concentration, state.mixing, info, collected)
