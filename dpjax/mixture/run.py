"""A run of the mixture samplers: starts, chunks, and more slots where they run out."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from dpjax.base import Array, Key
from dpjax.mixture.base import Mixing, MixtureInfo, MixtureState, Theta
from dpjax.mixture.problem import Problem
from dpjax.mixture.samplers.base import MAX_SLOTS, Setup, step
from dpjax.mixture.starts import NUM_GROUPS, start_labels, start_records
from dpjax.runtime.chunk import CHAIN_AXES, Chunk, for_chains, make_draws, most_draws
from dpjax.runtime.devices import any_device, bring_home, over_devices, place, same_everywhere, to_host
from dpjax.runtime.schedule import Segment

__all__ = [
    "Collect",
    "Draw",
    "Run",
    "StateFields",
    "Status",
    "grow",
    "join",
    "join_numbers",
    "make_chunk",
    "make_schedule",
    "open_run",
    "shapes_of_draws",
    "shapes_of_starts",
]


Collect = Callable[[MixtureState], Any]


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


@dataclass(frozen=True)
class StateFields:
    """The fields of a state with these names, such as ``collect=("labels",)``."""

    names: tuple[str, ...]

    def __call__(self, state: MixtureState) -> dict[str, Array]:
        """The fields by name."""
        return {name: getattr(state, name) for name in self.names}


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
