"""One compiled program that advances all chains by any number of draws, and stops where slots run out."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import Mesh

from dpjax.base import Array, Key
from dpjax.mixture.base import MixtureState
from dpjax.mixture.draws import Collect, keep
from dpjax.mixture.problem import Problem
from dpjax.mixture.samplers.base import Setup, step
from dpjax.running.chunk import CHAIN_AXES, Chunk, make_draws, most_draws
from dpjax.running.devices import any_device, over_devices

__all__ = ["choose_capacity", "run_chunk"]


@partial(jax.jit, static_argnames=("setup", "collect", "capacity", "mesh"))
@over_devices(
    by_chain=("chain_keys", "states"),
    arrays=("problem", "start", "length", "thin"),
    made=CHAIN_AXES,
)
def run_chunk(
    setup: Setup,
    collect: Collect | None,
    capacity: int,
    mesh: Mesh | None,
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
        fails=lambda info: any_device(mesh, jnp.any(info.overflow)),
    )


def choose_capacity(collect: Collect | None, states: MixtureState) -> int:
    """How many draws of all chains fit the memory for one chunk; `states` are [chain, ...]."""

    def kept(state: MixtureState) -> Any:
        return state.mixing, None if collect is None else collect(state)

    return most_draws(jax.eval_shape(jax.vmap(kept), states))
