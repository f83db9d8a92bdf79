"""A run of the mixture samplers: starts, chunks, and more slots if they run out."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from dpjax._util.jit import jit_unoptimized
from dpjax.base import Array, Key
from dpjax.mixture.base import Mixing, MixtureInfo, MixtureState, Theta
from dpjax.mixture.problem import MixtureProblem
from dpjax.mixture.samplers.base import MAX_SLOTS, Setup, step
from dpjax.mixture.starts import NUM_GROUPS, start_labels, start_records
from dpjax.runtime.checkpoint import Arrays, fill, read_place
from dpjax.runtime.chunk import CHAIN_AXES, Chunk, Segment, Steps, for_chains, make_draws, most_draws
from dpjax.runtime.devices import any_device, gather_to_host, over_devices, to_host
from dpjax.runtime.run import Run, Status

__all__ = [
    "Collect",
    "FittedSlots",
    "MixtureDraw",
    "MixtureRun",
    "StateFields",
    "grow",
    "join",
    "join_numbers",
    "make_schedule",
]


Collect = Callable[[MixtureState], Any]

FEW_RECORDS = 2**16
"""For all chains together: with more, starts by a program that was compiled quickly take longer than that saves."""


class MixtureDraw(NamedTuple):
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


class FittedSlots(NamedTuple):
    """The sampler with its slots, which may grow in number, and the most slots that the later warm-up needed so far."""

    setup: Setup
    needed: int = 0


def make_schedule(num_warmup: int, num_samples: int, thin: int) -> tuple[Segment, ...]:
    """The warm-up, if there is one, and the draws."""
    warmup = [Segment("warm-up", 0, num_warmup, 1)] if num_warmup else []
    return (*warmup, Segment("sampling", num_warmup, num_samples, thin))


def choose_groups(num_chains: int) -> Array:
    """How many clusters each chain starts with [chain]."""
    return jnp.asarray(np.resize(NUM_GROUPS, num_chains))


def start_chains(problem: MixtureProblem, setup: Setup, keys: Key, groups: Array) -> MixtureState:
    """Over-dispersed starts [chain, ...]."""

    def one(key: Key, num_groups: Array) -> MixtureState:
        record_key, state_key = jax.random.split(key)
        records = start_records(problem, record_key)
        labels = start_labels(records, jnp.minimum(num_groups, setup.capacity))
        return setup.start(problem, state_key, labels, records)

    return for_chains(setup.in_turn, one)(keys, groups)


start_many = jax.jit(start_chains, static_argnames=("setup",))
start_few = jit_unoptimized(start_chains, static_argnames=("setup",))


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
@over_devices(by_chain=Run.SHARED, made=CHAIN_AXES)
def run_chunk(
    setup: Setup,
    collect: Collect | None,
    capacity: int,
    mesh: Mesh | None,
    *,
    problem: MixtureProblem,
    chain_keys: Key,
    chains: MixtureState,
    steps: Steps,
) -> Chunk:
    """Advance all chains by up to these sweeps and keep every `thin`-th; see `make_draws`.

    If a chain's slots do not suffice, no chain makes the draw in question and the loop ends. Made again with more slots
    it is the same draw.
    """
    return make_draws(
        partial(step, problem, setup),
        partial(keep, collect),
        chain_keys=chain_keys,
        states=chains,
        steps=steps,
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


@dataclass(frozen=True, eq=False, kw_only=True)
class MixtureRun(Run):
    """A run of `dpjax.mixture.sample`, whose draws are a tuple of chunks [draw, chain, ...], as slots grow in number.

    Parameters
    ----------
    collect
        What to keep of a state beside the mixing measure; None for nothing.
    start_keys
        Keys of the starts [chain].
    chain_keys
        Keys of the chains [chain].
    """

    PROGRAM: ClassVar[Callable[..., Any]] = staticmethod(run_chunk)

    problem: MixtureProblem
    setup: Setup
    collect: Collect | None
    start_keys: Key
    chain_keys: Key

    @property
    def starts(self) -> tuple[Key, Array]:
        """Keys [chain] of the starts, and how many clusters they have [chain]."""
        return self.start_keys, choose_groups(len(self.start_keys))

    def open(self) -> Status:
        """The status before the first step."""
        few = self.problem.n * len(self.start_keys) <= FEW_RECORDS
        return self.at_starts((start_few if few else start_many)(self.problem, self.setup, *self.starts))

    def first_shapes(self) -> Status:
        """The status before the first step, with shapes for the states."""
        return self.at_starts(self.shapes_of_starts(self.setup))

    def at_starts(self, states: MixtureState) -> Status:
        """The status before the first step, with chains at these states or their shapes."""
        return Status(0, 0, FittedSlots(self.setup), states, draws=())

    def shapes_of_starts(self, setup: Setup) -> MixtureState:
        """The shapes [chain, ...] and types of the chains' states with so many slots."""
        keys, groups = self.starts
        return jax.eval_shape(partial(start_chains, setup=setup), self.problem, keys=keys, groups=groups)

    def capacity(self, status: Status) -> int:
        """How many draws a chunk can hold, with so many slots."""
        return choose_capacity(self.collect, status.chains)

    def static(self, status: Status) -> tuple[Any, ...]:
        """The sampler with its slots, what is collected, capacity and devices."""
        return status.kernel.setup, self.collect, self.capacity(status), self.mesh

    def arguments(self, status: Status, length: int) -> dict[str, Any]:
        """The problem, keys and chains, and the steps of the chunk, which are counted from the segment's first."""
        segment = self.schedule[status.segment]
        keys = jax.vmap(jax.random.fold_in, in_axes=(0, None))(self.chain_keys, segment.start)
        steps = Steps.of(status.filled * segment.thin, length, segment.thin)
        return {"problem": self.problem, "chain_keys": keys, "chains": status.chains, "steps": steps}

    def store(self, status: Status, chunk: Chunk, length: int) -> tuple[Status, int]:
        """The status after a chunk: of the warm-up, only the number of slots that it needed is kept."""
        made, draws = int(chunk.made), self.schedule[status.segment].draws
        after = status._replace(chains=chunk.states, filled=status.filled + made)
        if not self.is_last(status):
            later = to_host(chunk.draws.info.num_slots)[max(draws // 2 - status.filled, 0) : made]
            needed = int(np.max(later, initial=status.kernel.needed))
            return after._replace(kernel=status.kernel._replace(needed=needed)), made
        if made == 0:
            return after, made
        # Copies, which do not hold on to all that the buffers had room for.
        kept = jax.tree.map(lambda leaf: np.array(to_host(leaf)[:made]), chunk.draws)
        return after._replace(draws=(*status.draws, kept)), made

    def make_room(self, status: Status) -> Status:
        """The status with twice as many slots, the new ones empty: each number of slots is compiled anew."""
        return grow(self.at_home(status))

    def close_segment(self, status: Status) -> Status:
        """The status at the end of the warm-up, with slots fitted to what it needed."""
        trimmed = trim(self.at_home(status))
        return Status(status.segment + 1, 0, FittedSlots(trimmed.kernel.setup), trimmed.chains, draws=())

    def at_home(self, status: Status) -> Status:
        """The status with the states if their slots can be changed."""
        return status._replace(chains=gather_to_host(self.mesh, status.chains))

    def pack(self, status: Status) -> tuple[dict[str, Any], dict[str, Any]]:
        """The numbers of slots, and the states and the draws."""
        draws = {"draws": join(status.draws, status.kernel.setup.capacity)} if status.draws else {}
        slots = {"slots": status.kernel.setup.capacity, "needed": status.kernel.needed}
        return slots, {"states": status.chains, **draws}

    def restore(self, progress: dict[str, Any], arrays: Arrays) -> Status:
        """The status in a file, with as many slots as it had by then; whatever does not fit the run is an error."""
        segment, filled = read_place(self.schedule, progress)
        slots, needed = progress["slots"], progress["needed"]
        if slots not in range(1, MAX_SLOTS + 1) or needed not in range(MAX_SLOTS + 1):
            raise ValueError(f"{slots} slots, of which {needed} were needed")
        setup = self.setup.with_capacity(slots)
        states = jax.tree.map(jnp.asarray, fill("states", self.shapes_of_starts(setup), arrays))
        status = Status(segment, filled, FittedSlots(setup, needed), states, draws=())
        if not filled or not self.is_last(status):
            return status
        draws: MixtureDraw = fill("draws", self.shapes_of_draws(status), arrays)
        return status._replace(draws=(jax.tree.map(lambda leaf: np.swapaxes(leaf, 0, 1), draws),))

    def shapes_of_draws(self, status: Status) -> MixtureDraw:
        """The shapes [chain, draw, ...] and types of the draws made."""

        def shape_of(leaf: Any) -> Any:
            return jax.ShapeDtypeStruct((leaf.shape[1], status.filled, *leaf.shape[2:]), leaf.dtype)

        shapes: MixtureDraw = jax.tree.map(shape_of, self.shapes_of_chunk(status).draws)
        return shapes


def grow(status: Status) -> Status:
    """The status with twice as many slots, the new ones empty: each size is compiled, so that there should be few."""
    setup: Setup = status.kernel.setup
    capacity = 2 * setup.capacity
    if capacity > MAX_SLOTS:
        remedy = "A smaller concentration or discount needs fewer; with a discount neal5() and neal8() do, too."
        raise RuntimeError(f"The mixture needs more than {setup.capacity} slots. {remedy}")
    return with_slots(status, capacity, resize(status.chains, capacity))


def trim(status: Status) -> Status:
    """The status with as many slots as were needed, if that is fewer: a sweep costs by the slot."""
    capacity = 8 * (status.kernel.needed // 8 + 1)
    if capacity >= status.kernel.setup.capacity:
        return status
    return with_slots(status, capacity, cut_slots(status.chains, capacity))


def with_slots(status: Status, capacity: int, states: MixtureState) -> Status:
    """The status with states of so many slots."""
    setup = status.kernel.setup.with_capacity(capacity)
    return status._replace(kernel=status.kernel._replace(setup=setup), chains=states)


@dataclass(frozen=True)
class StateFields:
    """The fields of a state with these names, such as ``collect=("labels",)``."""

    names: tuple[str, ...]

    def __call__(self, state: MixtureState) -> dict[str, Array]:
        """The fields by name."""
        return {name: getattr(state, name) for name in self.names}


def keep(collect: Collect | None, state: MixtureState, info: MixtureInfo) -> MixtureDraw:
    """What is kept of one chain's state."""
    num_clusters = jnp.sum(state.counts > 0, dtype=jnp.int32)
    collected = None if collect is None else collect(state)
    return MixtureDraw(num_clusters, state.concentration, state.mixing, info, collected)


def join_numbers(chunks: tuple[MixtureDraw, ...]) -> dict[str, Any]:
    """The numbers of clusters and the concentrations of all chunks, [chain, draw]."""
    names = ("num_clusters", "concentration")
    return {name: np.concatenate([getattr(chunk, name) for chunk in chunks]).T for name in names}


def join(chunks: tuple[MixtureDraw, ...], capacity: int) -> Any:
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
