"""A run of the mixture samplers: starts, chunks, and more slots where they run out."""

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from dpjax.base import Array, Key
from dpjax.mixture.base import Mixing, MixtureState, Theta
from dpjax.mixture.chunks import choose_capacity, run_chunk
from dpjax.mixture.draws import Collect, Draw
from dpjax.mixture.problem import Problem
from dpjax.mixture.samplers.base import MAX_SLOTS, Setup
from dpjax.mixture.starts import NUM_GROUPS, start_labels, start_records
from dpjax.running.chunk import Chunk, for_chains
from dpjax.running.devices import bring_home, place, same_everywhere, to_host
from dpjax.running.schedule import Segment

__all__ = ["Run", "Status", "grow", "make_chunk", "make_schedule", "open_run", "shapes_of_draws", "shapes_of_starts"]


@dataclass(frozen=True, eq=False)
class Run:
    """What stays as it is from the first step to the last.

    Parameters
    ----------
    collect
        What to keep of a state beside the mixing measure; None for nothing.
    start_keys
        Keys of the starts [chain].
    chain_keys
        Keys of the chains [chain].
    mesh
        The devices that share the chains; None for one.
    """

    problem: Problem
    collect: Collect | None
    schedule: tuple[Segment, ...]
    start_keys: Key
    chain_keys: Key
    mesh: Mesh | None = None


class Status(NamedTuple):
    """How far a run has come; a checkpoint holds all of it.

    Attributes
    ----------
    segment
        The number of the current segment.
    filled
        How many draws it has made.
    setup
        The sampler with its slots, which may grow in number.
    states
        The states of the chains [chain, ...].
    needed
        The most slots that a sweep in the later half of the warm-up needed so far.
    chunks
        The draws kept so far: host arrays [draw, chain, ...]; none of the warm-up.
    """

    segment: int
    filled: int
    setup: Setup
    states: MixtureState
    needed: int = 0
    chunks: tuple[Draw, ...] = ()


def make_schedule(num_warmup: int, num_samples: int, thin: int) -> tuple[Segment, ...]:
    """The warm-up, if there is one, and the draws."""
    warmup = [Segment("warm-up", 0, num_warmup, 1)] if num_warmup else []
    return (*warmup, Segment("sampling", num_warmup, num_samples, thin))


def open_run(run: Run, setup: Setup) -> Status:
    """The status before the first step."""
    return Status(0, 0, setup, start_chains(run.problem, setup, run.start_keys, groups_of(run)))


def groups_of(run: Run) -> Array:
    """How many clusters each chain starts with [chain]."""
    return jnp.asarray(np.resize(NUM_GROUPS, len(run.start_keys)))


@partial(jax.jit, static_argnames="setup")
def start_chains(problem: Problem, setup: Setup, keys: Key, groups: Array) -> MixtureState:
    """Over-dispersed starts [chain, ...]."""

    def one(key: Key, num_groups: Array) -> MixtureState:
        record_key, state_key = jax.random.split(key)
        records = start_records(problem, record_key)
        labels = start_labels(records, jnp.minimum(num_groups, setup.capacity))
        return setup.start(problem, state_key, labels, records)

    return for_chains(setup.in_turn, one)(keys, groups)


def shapes_of_starts(run: Run, setup: Setup) -> MixtureState:
    """The shapes [chain, ...] and types of the chains' states."""
    shapes: MixtureState = start_chains.eval_shape(run.problem, setup, run.start_keys, groups_of(run))
    return shapes


def shapes_of_draws(run: Run, status: Status, number: int) -> Draw:
    """The shapes [chain, draw, ...] and types of so many draws."""
    draws = run_chunk.eval_shape(*static(run, status), **dynamic(run, status, 0)).draws
    shapes: Draw = jax.tree.map(
        lambda leaf: jax.ShapeDtypeStruct((leaf.shape[1], number, *leaf.shape[2:]), leaf.dtype), draws
    )
    return shapes


def static(run: Run, status: Status) -> tuple[Setup, Collect | None, int, Mesh | None]:
    """The arguments of the compiled program that decide what is compiled."""
    return status.setup, run.collect, choose_capacity(run.collect, status.states), run.mesh


def dynamic(run: Run, status: Status, length: int) -> dict[str, Any]:
    """The arguments of the compiled program that are ordinary values."""
    segment = run.schedule[status.segment]
    numbers = {"start": status.filled * segment.thin, "length": length, "thin": segment.thin}
    return {
        "problem": run.problem,
        "chain_keys": segment_keys(run, segment),
        "states": status.states,
        **{name: np.int32(number) for name, number in numbers.items()},
    }


def segment_keys(run: Run, segment: Segment) -> Key:
    """The chains' keys [chain] of a segment, of which its step t uses ``fold_in(key, t)``."""
    return jax.vmap(jax.random.fold_in, in_axes=(0, None))(run.chain_keys, segment.start)


def make_chunk(run: Run, status: Status, length: int) -> tuple[Status, int]:
    """Make up to `length` draws within the current segment, and say how many; at its end, open the next.

    Where slots run out, it stops before that draw and comes back with more of them. The old status stays whole.
    """
    segment, compiled = run.schedule[status.segment], static(run, status)
    capacity = choose_capacity(run.collect, status.states)
    length = same_everywhere(run.mesh, min(length, capacity, segment.draws - status.filled))
    arguments = place(run.mesh, dynamic(run, status, length), by_chain=("chain_keys", "states"))
    chunk = run_chunk(*compiled, **arguments)
    status, made = store(run, status, chunk), int(chunk.made)
    if made < length:
        return grow(at_home(run, status)), made
    ended = status.filled == segment.draws and status.segment < len(run.schedule) - 1
    return (open_sampling(at_home(run, status)) if ended else status), made


def at_home(run: Run, status: Status) -> Status:
    """The status with the states where their slots can be changed."""
    return status._replace(states=bring_home(run.mesh, status.states))


def store(run: Run, status: Status, chunk: Chunk) -> Status:
    """The status after a chunk: of the warm-up, only the slots that it needed are kept."""
    made, draws = int(chunk.made), run.schedule[status.segment].draws
    after = status._replace(states=chunk.states, filled=status.filled + made)
    if status.segment < len(run.schedule) - 1:
        later = to_host(chunk.draws.info.num_slots)[max(draws // 2 - status.filled, 0) : made]
        return after._replace(needed=int(np.max(later, initial=status.needed)))
    if made == 0:
        return after
    # Copies, which do not hold on to all that the buffers had room for.
    kept = jax.tree.map(lambda leaf: np.array(to_host(leaf)[:made]), chunk.draws)
    return after._replace(chunks=(*status.chunks, kept))


def open_sampling(status: Status) -> Status:
    """The status at the end of the warm-up, with slots fitted to what it needed."""
    trimmed = trim(status)
    return Status(status.segment + 1, 0, trimmed.setup, trimmed.states)


def grow(status: Status) -> Status:
    """The status with twice as many slots, the new ones empty: each size is compiled, so that there should be few."""
    capacity = 2 * status.setup.capacity
    if capacity > MAX_SLOTS:
        text = f"The mixture needs more than {status.setup.capacity} slots. A smaller concentration needs fewer."
        raise RuntimeError(text)
    return status._replace(setup=status.setup.with_capacity(capacity), states=resize(status.states, capacity))


def trim(status: Status) -> Status:
    """The status with as many slots as were needed, where that is fewer: a sweep costs by the slot."""
    capacity = 8 * (status.needed // 8 + 1)
    if capacity >= status.setup.capacity:
        return status
    return status._replace(setup=status.setup.with_capacity(capacity), states=cut_slots(status.states, capacity))


def cut_slots(states: MixtureState, capacity: int) -> MixtureState:
    """The states [chain, ...] with the first slots only."""
    mixing, theta = states.mixing, {name: leaf[:, :capacity] for name, leaf in states.mixing.theta.items()}
    beyond = mixing.remainder + jnp.sum(mixing.weights[:, capacity:], axis=1)
    first = Mixing(mixing.weights[:, :capacity], theta, beyond)
    return states._replace(mixing=first, counts=states.counts[:, :capacity], totals=states.totals[:, :capacity])


def resize(states: MixtureState, capacity: int) -> MixtureState:
    """The states [chain, ...] with more slots; the parameters of the new ones are placeholders until the next sweep."""

    def pad(leaf: jax.Array) -> jax.Array:
        width = [(0, 0), (0, capacity - leaf.shape[1]), *[(0, 0)] * (leaf.ndim - 2)]
        return jnp.pad(leaf, width)

    def stretch(leaf: jax.Array) -> jax.Array:
        """A parameter is repeated, so that a kernel that starts from it finds a possible value."""
        return pad(leaf).at[:, leaf.shape[1] :].set(leaf[:, :1])

    theta: Theta = {name: stretch(leaf) for name, leaf in states.mixing.theta.items()}
    mixing = Mixing(pad(states.mixing.weights), theta, states.mixing.remainder)
    return states._replace(mixing=mixing, counts=pad(states.counts), totals=pad(states.totals))
