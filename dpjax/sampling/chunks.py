"""One compiled program that advances all chains by any number of draws."""

from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dpjax.base import Array, Key, Model, Parameters
from dpjax.gibbs import GibbsInfo, GibbsState, Plan, build_kernel
from dpjax.models.numbered import jit_model
from dpjax.parameters import Tuning
from dpjax.release import LocalRelease, Release

BUFFER_BYTES = 2**24
"""The memory that one chunk's draws may take on the device."""

MAX_CAPACITY = 1024

Collect = Callable[[GibbsState], Any]


class Chains(NamedTuple):
    """What all chains carry from chunk to chunk.

    state
        The states, leading axis [chain].
    accepted
        How many offers each record has accepted since sampling began, int32 [chain, n].
    """

    state: GibbsState
    accepted: Array | np.ndarray


class Draw(NamedTuple):
    """What is kept of a step.

    parameters, derived
        The parameters and the model's derived quantities.
    info
        Reports on the steps since the last draw: rates and flags are averaged, counts summed.
    collected
        What the user's function took from the state.
    """

    parameters: Parameters
    derived: Parameters
    info: dict[str, Array]
    collected: Any


@partial(jit_model, static_argnames=("plan", "collect", "capacity"))
def run_chunk(
    model: Model,
    plan: Plan,
    collect: Collect | None,
    capacity: int,
    *,
    release: Release | LocalRelease,
    tuning: Tuning,
    chain_keys: Key,
    chains: Chains,
    start: Array,
    length: Array,
    thin: Array,
) -> tuple[Chains, Draw]:
    """Advance all chains by ``length * thin`` steps of the posterior's kernel and keep every ``thin``-th.

    Step t of chain i uses ``fold_in(chain_keys[i], t)``, and the length is an ordinary value of one program, so that
    the draws are the same to the last bit however a run is cut into chunks.

    Parameters
    ----------
    capacity
        The largest length; entries of the buffers beyond `length` mean nothing.
    start
        The number t of the first step.

    Returns
    -------
    chains
        The carried states and counts.
    draws
        Buffers with leading axes [capacity, chain].
    """
    sweep = jax.vmap(build_kernel(model, release, plan), in_axes=(0, 0, None))
    advance = jax.jit(partial(make_draw, model, collect, sweep, tuning, chain_keys, thin))
    _, shapes = jax.eval_shape(advance, start, chains)
    buffers = jax.tree.map(lambda leaf: jnp.zeros((capacity, *leaf.shape), leaf.dtype), shapes)

    def body(index: Array, carry: tuple[Chains, Draw]) -> tuple[Chains, Draw]:
        chains, buffers = carry
        chains, draw = advance(start + index * thin, chains)
        return chains, jax.tree.map(lambda buffer, leaf: buffer.at[index].set(leaf), buffers, draw)

    return jax.lax.fori_loop(0, length, body, (chains, buffers))


def make_draw(
    model: Model,
    collect: Collect | None,
    sweep: Callable[..., tuple[GibbsState, GibbsInfo]],
    tuning: Tuning,
    chain_keys: Key,
    thin: Array,
    start: Array,
    chains: Chains,
) -> tuple[Chains, Draw]:
    """Advance all chains by `thin` steps and keep the last."""

    @jax.jit
    def step(number: Array, chains: Chains) -> tuple[Chains, dict[str, Array]]:
        keys = jax.vmap(jax.random.fold_in, in_axes=(0, None))(chain_keys, number)
        state, info = sweep(keys, chains.state, tuning)
        accepted = chains.accepted + info.imputation.accepted.astype(chains.accepted.dtype)
        return Chains(state, accepted), report(info)

    def body(index: Array, carry: tuple[Chains, dict[str, Array]]) -> tuple[Chains, dict[str, Array]]:
        chains, info = step(start + index, carry[0])
        return chains, jax.tree.map(jnp.add, carry[1], info)

    _, shapes = jax.eval_shape(step, start, chains)
    nothing = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)
    chains, total = jax.lax.fori_loop(0, thin, body, (chains, nothing))
    info = jax.tree.map(lambda leaf: leaf / thin.astype(leaf.dtype) if is_rate(leaf) else leaf, total)
    derived = {} if model.derived is None else jax.vmap(model.derived)(chains.state.parameters)
    collected = None if collect is None else jax.vmap(collect)(chains.state)
    return chains, Draw(chains.state.parameters, derived, info, collected)


def report(info: GibbsInfo) -> dict[str, Array]:
    """The scalar reports of all chains [chain] by name; counts [n] are carried, and other arrays are not kept."""
    kept = {"acceptance_rate": info.imputation.acceptance_rate, "num_nonfinite": info.num_nonfinite}
    for path, leaf in jax.tree.leaves_with_path({"centred": info.centred, "interweaving": info.interweaving}):
        if leaf.ndim == 1:
            kept[jax.tree_util.keystr(path, simple=True, separator="_")] = leaf
    # The share of steps is the average of a flag.
    return {name: leaf.astype(float) if leaf.dtype == bool else leaf for name, leaf in kept.items()}


def is_rate(leaf: Array) -> bool:
    """Whether a report is averaged over steps; counts are summed."""
    return jnp.issubdtype(leaf.dtype, jnp.floating)


def choose_capacity(model: Model, collect: Collect | None, state: GibbsState) -> int:
    """How many draws of all chains fit the memory for one chunk, in 1..MAX_CAPACITY; `state` is [chain, ...]."""

    def kept(state: GibbsState) -> Any:
        derived = None if model.derived is None else model.derived(state.parameters)
        return state.parameters, derived, None if collect is None else collect(state)

    leaves = jax.tree.leaves(jax.eval_shape(jax.vmap(kept), state))
    size = sum(prod(leaf.shape) * leaf.dtype.itemsize for leaf in leaves)
    return max(1, min(MAX_CAPACITY, BUFFER_BYTES // max(size, 1)))
