"""A run of the mixture samplers: starts, chunks, and more slots where they run out."""

import time
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dpjax.base import Key
from dpjax.mixture.base import Mixing, MixtureState, Theta
from dpjax.mixture.chunks import Draw, run_chunk
from dpjax.mixture.samplers.base import MAX_SLOTS, Setup
from dpjax.running.chunk import most_draws
from dpjax.running.progress import Progress, next_length
from dpjax.threads import one_blas_thread

__all__ = ["Run", "Stage", "Status", "draw_all", "grow", "trim"]


class Stage(NamedTuple):
    """A part of a run: its name, the number of its first step, its steps, and how many of them make a draw."""

    name: str
    start: int
    steps: int
    thin: int


@dataclass(frozen=True, eq=False)
class Run:
    """What stays as it is from the first step to the last.

    collect
        Which parts of the state to keep beside the mixing measure.
    """

    problem: Any
    collect: tuple[str, ...]
    chain_keys: Key


class Status(NamedTuple):
    """How far a stage has come.

    setup
        The sampler with its slots, which may grow in number.
    states
        The states of the chains [chain, ...].
    done
        Steps made in this stage.
    chunks
        The draws kept so far: host arrays [draw, chain, ...].
    interrupted
        Whether the user stopped it.
    """

    setup: Setup
    states: MixtureState
    done: int = 0
    chunks: tuple[Draw, ...] = ()
    interrupted: bool = False


def draw_all(run: Run, stage: Stage, status: Status, bar: Progress) -> Status:
    """Make all steps of a stage, or those until an interruption; what was drawn is kept."""
    length = 1
    try:
        while status.done < stage.steps:
            began = time.perf_counter()
            before = status.done
            with one_blas_thread():
                status = make_chunk(run, stage, status, length)
            made = status.done - before
            length = next_length(max(made // stage.thin, 1), time.perf_counter() - began)
            bar.advance(made, stage.name)
    except KeyboardInterrupt:
        status = status._replace(interrupted=True)
    return status


def make_chunk(run: Run, stage: Stage, status: Status, length: int) -> Status:
    """Make up to `length` draws; where slots run out, stop before that draw and come back with more of them."""
    kept = (status.states.mixing, {name: getattr(status.states, name) for name in run.collect})
    capacity = most_draws(kept)
    length = min(length, capacity, (stage.steps - status.done) // stage.thin)
    numbers = {"start": status.done, "length": length, "thin": stage.thin}
    chunk = run_chunk(
        status.setup,
        run.collect,
        capacity,
        problem=run.problem,
        chain_keys=stage_keys(run, stage),
        states=status.states,
        **{name: np.int32(number) for name, number in numbers.items()},
    )
    made = int(chunk.made)
    kept = jax.tree.map(lambda leaf: np.asarray(leaf)[:made], chunk.draws)
    done, chunks = status.done + made * stage.thin, (*status.chunks, kept)
    status = status._replace(states=chunk.states, done=done, chunks=chunks)
    return grow(status) if made < length else status


def stage_keys(run: Run, stage: Stage) -> Key:
    """The chains' keys [chain] of a stage, of which step t uses ``fold_in(key, t)``."""
    return jax.vmap(jax.random.fold_in, in_axes=(0, None))(run.chain_keys, stage.start)


def grow(status: Status) -> Status:
    """The status with twice as many slots, the new ones empty: each size is compiled, so that there should be few."""
    capacity = 2 * status.setup.capacity
    if capacity > MAX_SLOTS:
        text = f"The mixture needs more than {status.setup.capacity} slots. A smaller concentration needs fewer."
        raise RuntimeError(text)
    return status._replace(setup=status.setup.with_capacity(capacity), states=resize(status.states, capacity))


def trim(status: Status) -> Status:
    """The status with as many slots as its later half needed, where that is fewer: a sweep costs by the slot."""
    if not status.chunks:
        return status
    needed = np.concatenate([chunk.info.num_slots for chunk in status.chunks])
    capacity = 8 * (int(np.max(needed[len(needed) // 2 :])) // 8 + 1)
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
