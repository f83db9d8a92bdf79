"""The compiled loop under every run: a chunk of a segment is some draws of all chains, each so many steps apart."""

from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dpjax.base import Array, Key
from dpjax.runtime.devices import BY_CHAIN, EVERYWHERE, SECOND

__all__ = [
    "CHAIN_AXES",
    "MAX_CAPACITY",
    "Chunk",
    "Segment",
    "Steps",
    "for_chains",
    "make_draws",
    "most_draws",
    "num_bytes",
]

BUFFER_BYTES = 2**24
"""The memory that one chunk's draws may take on the device."""

MAX_CAPACITY = 1024

Step = Callable[..., tuple[Any, Any]]
"""``(key, state) -> (state, report)`` of one chain; ``(key, state, number)`` if it depends on its number."""

Complete = Callable[[Key, Any, Any], tuple[Any, Any]]
"""``(key, state, report) -> (state, report)`` of one chain: what is left to do where a draw is made."""

Keep = Callable[[Any, Any], Any]
"""``(state, report) -> draw`` of one chain: what is kept of it where a draw is made."""


class Segment(NamedTuple):
    """A part of a run with one kernel.

    Attributes
    ----------
    phase
        ``"warm-up"`` or ``"sampling"``.
    start
        The number of its first step.
    draws
        How many draws it makes of each chain.
    thin
        How many steps they are apart.
    tune
        Whether the kernel is adapted to these draws at its end.
    """

    phase: str
    start: int
    draws: int
    thin: int
    tune: bool = False

    @property
    def stop(self) -> int:
        """The number of the step after its last."""
        return self.start + self.draws * self.thin


class Steps(NamedTuple):
    """Which steps a chunk makes, as int32 [].

    Attributes
    ----------
    start
        The number t of the first step.
    length
        How many draws to make.
    thin
        How many steps they are apart.
    """

    start: Array
    length: Array
    thin: Array

    @classmethod
    def of(cls, start: int, length: int, thin: int) -> "Steps":
        """The steps as values of one program, rather than constants of many."""
        numbers: Any = map(np.int32, (start, length, thin))
        return cls(*numbers)


class Chunk(NamedTuple):
    """What a chunk leaves.

    Attributes
    ----------
    states
        The chains' states [chain, ...] after its last draw.
    draws
        Buffers [capacity, chain, ...]; entries from `made` on mean nothing.
    made
        How many draws were made [].
    """

    states: Any
    draws: Any
    made: Array


CHAIN_AXES: Any = Chunk(BY_CHAIN, SECOND, EVERYWHERE)  # type: ignore[arg-type]
"""The places of the chains in a chunk, for programs of `over_devices`."""


class LoopState(NamedTuple):
    """What is carried from step to step: their number, the states, the report so far, and whether a step failed."""

    steps: Array
    states: Any
    report: Any
    failed: Array


def make_draws(
    step: Step,
    keep: Keep,
    *,
    chain_keys: Key,
    states: Any,
    steps: Steps,
    capacity: int,
    complete: Complete | None = None,
    in_turn: bool = False,
    numbered: bool = False,
    combine: Callable[[Array, Array], Array] = jnp.add,
    fails: Callable[[Any], Array] | None = None,
) -> Chunk:
    """Advance all chains by ``length * thin`` steps and keep a draw of every `thin`-th.

    Step t of chain i uses ``fold_in(chain_keys[i], t)``, and length and thinning are ordinary values of one program. So
    the draws are the same to the last bit however a run is cut into chunks, and no step is made that was not asked for.

    Parameters
    ----------
    states
        The chains' states [chain, ...].
    steps
        The steps to make.
    capacity
        The largest length.
    complete
        What is done to the state of a draw before it is kept, and need not be done to those between draws. It has the
        key of the draw's last step, of which it is to use what the step does not.
    in_turn
        Whether a step is made by one chain after another rather than by all side by side.
    numbered
        Whether a step also takes its number t, which is the same for all chains side by side.
    combine
        How the reports on the steps of one draw become one, leaf by leaf; by default they are added up.
    fails
        Whether a step failed [], from its reports [chain, ...]. The draw that it belongs to is then not made by any
        chain, and the chunk ends: states and draws are those of the draws before. None if no step can fail.
    """
    start, length, thin = steps

    @jax.jit
    def advance(number: Array, states: Any) -> tuple[Any, Any]:
        own = (number,) if numbered else ()
        one = for_chains(in_turn, lambda key, state: step(jax.random.fold_in(key, number), state, *own))
        return one(chain_keys, states)

    @jax.jit
    def finish(number: Array, states: Any, report: Any) -> tuple[Any, Any]:
        if complete is None:
            return states, report
        last = for_chains(in_turn, lambda key, *chain: complete(jax.random.fold_in(key, number), *chain))
        return last(chain_keys, states, report)

    @jax.jit
    def make_draw(number: Array, states: Any) -> tuple[LoopState, Any]:
        shapes = jax.eval_shape(advance, number, states)[1]
        nothing = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)

        def body(stretch: LoopState) -> LoopState:
            states, report = advance(number + stretch.steps, stretch.states)
            failed = stretch.failed if fails is None else fails(report)
            return LoopState(stretch.steps + 1, states, jax.tree.map(combine, stretch.report, report), failed)

        first = LoopState(jnp.zeros_like(thin), states, nothing, jnp.array(False))
        stretch = jax.lax.while_loop(lambda stretch: (stretch.steps < thin) & ~stretch.failed, body, first)
        states, report = finish(number + thin - 1, stretch.states, stretch.report)
        return stretch._replace(states=states), jax.vmap(keep)(states, report)

    def body(carry: tuple[Chunk, Array]) -> tuple[Chunk, Array]:
        chunk, _ = carry
        stretch, draw = make_draw(start + chunk.made * thin, chunk.states)
        draws = jax.tree.map(lambda buffer, leaf: buffer.at[chunk.made].set(leaf), chunk.draws, draw)
        if fails is None:
            return Chunk(stretch.states, draws, chunk.made + 1), stretch.failed
        # A branch rather than a select of each leaf, into which the compiler would copy all that computes it.
        states = jax.lax.cond(stretch.failed, lambda new, old: old, lambda new, old: new, stretch.states, chunk.states)
        return Chunk(states, draws, chunk.made + jnp.where(stretch.failed, 0, 1)), stretch.failed

    shapes = jax.eval_shape(make_draw, start, states)[1]
    buffers = jax.tree.map(lambda leaf: jnp.zeros((capacity, *leaf.shape), leaf.dtype), shapes)
    first = (Chunk(states, buffers, jnp.zeros_like(length)), jnp.array(False))
    return jax.lax.while_loop(lambda carry: (carry[0].made < length) & ~carry[1], body, first)[0]


def for_chains(in_turn: bool, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of one chain for all of them, one after another or side by side."""
    if not in_turn:
        return jax.vmap(function)
    return lambda *arguments: jax.lax.map(lambda chain: function(*chain), arguments)


def most_draws(draw: Any) -> int:
    """How many draws, each of the arrays or shapes of all chains, fit the memory for one chunk, in 1..MAX_CAPACITY."""
    return max(1, min(MAX_CAPACITY, BUFFER_BYTES // max(num_bytes(draw), 1)))


def num_bytes(tree: Any) -> int:
    """The memory that arrays, or those of such shapes, take."""
    return sum(prod(leaf.shape) * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))
