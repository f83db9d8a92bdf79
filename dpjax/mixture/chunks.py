"""One compiled program that advances all chains by any number of draws, and stops where slots run out."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from dpjax.base import Array, Key
from dpjax.mixture.base import Mixing, MixtureInfo, MixtureState

__all__ = ["Draw", "for_chains", "run_chunk"]

Sweep = Callable[[Any, Any, Key, MixtureState], tuple[MixtureState, MixtureInfo]]
"""``(problem, setup, key, state) -> (state, info)``, a module-level function; the setup is hashable and says whether
chains are advanced ``in_turn``."""


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


class Carry(NamedTuple):
    """What the loop carries: the step, the states [chain, ...], the draws so far and whether slots ran out."""

    step: Array
    states: MixtureState
    draws: Draw
    overflow: Array


@partial(jax.jit, static_argnames=("sweep", "setup", "collect", "buffer"))
def run_chunk(
    sweep: Sweep,
    setup: Any,
    collect: tuple[str, ...],
    buffer: int,
    *,
    problem: Any,
    chain_keys: Key,
    states: MixtureState,
    start: Array,
    length: Array,
    thin: Array,
) -> tuple[MixtureState, Draw, Array, Array]:
    """Advance all chains by up to `length` sweeps and keep every `thin`-th, counted from step 0.

    Step t of chain i uses ``fold_in(chain_keys[i], t)``. Where a chain's slots do not suffice, no chain makes that
    sweep and the loop ends: made again with more slots it is the same sweep.

    Parameters
    ----------
    buffer
        The most draws that a chunk can keep.
    start, length, thin
        The number of the first step, how many steps to make, and how far kept ones lie apart.

    Returns
    -------
    states
        After the last whole step.
    draws
        Buffers with leading axes [buffer, chain].
    made
        How many steps were made [].
    overflow
        Whether slots ran out [].
    """

    def one(step: Array, states: MixtureState) -> tuple[MixtureState, Draw, Array]:
        def advance(key: Key, state: MixtureState) -> tuple[MixtureState, MixtureInfo]:
            return sweep(problem, setup, jax.random.fold_in(key, start + step), state)

        moved, info = for_chains(setup.in_turn, advance)(chain_keys, states)
        return moved, jax.vmap(partial(keep, collect))(moved, info), jnp.any(info.overflow)

    shapes = jax.eval_shape(one, start, states)[1]
    empty = jax.tree.map(lambda leaf: jnp.zeros((buffer, *leaf.shape), leaf.dtype), shapes)

    def unfinished(carry: Carry) -> Array:
        return (carry.step < length) & ~carry.overflow

    def body(carry: Carry) -> Carry:
        moved, draw, overflow = one(carry.step, carry.states)
        # Sweeps between two kept ones are written over by the next.
        place = (carry.step + start % thin) // thin
        draws = jax.tree.map(lambda held, leaf: held.at[place].set(leaf), carry.draws, draw)
        # A branch rather than a select of each leaf, into which the compiler would copy all that computes it.
        states = jax.lax.cond(overflow, lambda new, old: old, lambda new, old: new, moved, carry.states)
        return Carry(carry.step + jnp.where(overflow, 0, 1), states, draws, overflow)

    last = jax.lax.while_loop(unfinished, body, Carry(jnp.zeros_like(start), states, empty, jnp.array(False)))
    return last.states, last.draws, last.step, last.overflow


def for_chains(in_turn: bool, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of one chain for all of them, one after another or side by side."""
    if not in_turn:
        return jax.vmap(function)
    return lambda *arguments: jax.lax.map(lambda chain: function(*chain), arguments)


def keep(collect: tuple[str, ...], state: MixtureState, info: MixtureInfo) -> Draw:
    """What is kept of one chain's state."""
    num_clusters = jnp.sum(state.counts > 0, dtype=jnp.int32)
    collected = {name: getattr(state, name) for name in collect}
    return Draw(num_clusters, state.concentration, state.mixing, info, collected)
