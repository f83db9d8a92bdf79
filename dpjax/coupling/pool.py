"""A pool of lanes through which any number of pairs passes: where a pair has ended, the next one starts.

Pairs meet after very different numbers of steps. If each program ran a batch of pairs until the last of them had met,
most of its lanes would idle; here programs run a few steps at a time, and between them ended pairs are taken out, their
lanes given to pairs that wait, and once none waits the last pairs moved to fewer lanes. Memory does not grow with the
number of pairs but for what is kept of their ends, and what pairs do depends neither on the batch nor on the devices,
each of which advances its own lanes.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jax.sharding import Mesh

from dpjax.base import Array, Key
from dpjax.coupling.gibbs import CoupledKernel
from dpjax.numerics import take_if
from dpjax.runtime.devices import BY_CHAIN, num_devices, over_devices, place, to_host

__all__ = ["Course", "Lane", "Pool", "Status", "new_status", "open_pool", "run_program"]

SHRINK = 8
"""The last pairs are moved to this fraction of the lanes once they fit: not sooner, as each size is compiled."""

MANY = 128
"""With fewer lanes than this they are moved in long runs only."""

FIRST_STEPS = 8
"""Steps of the first program."""

LONGEST = 1 << 16
"""The most steps of one program; runs that come to this are so long that half of the lanes are worth another size."""


Function = Callable[[Any], Any]


class Course(NamedTuple):
    """What all pairs of a run have in common; hashable, as programs are compiled for it.

    Attributes
    ----------
    kernel
        How pairs start and move.
    function
        h, ``position -> pytree of numbers``, whose average over the steps k..m of the first chain is taken; or None.
    lag
        The lag L.
    k
        The first step of the averaging window.
    m
        Its last step.
    max_steps
        Steps of the first chain after which a pair ends, met or not.
    """

    kernel: CoupledKernel
    function: Function | None
    lag: int
    k: int
    m: int
    max_steps: int


class Lane(NamedTuple):
    """A pair after t steps of its first chain, with what has been summed up so far.

    Attributes
    ----------
    number
        Which of all pairs it is [], from which its keys are made.
    time
        t, the number of steps of the first chain [].
    meeting
        τ, the first t ≥ L with X_t = Y_{t−L} []; -1 before.
    average
        The sum [q] of h(X_t) over k..m.
    correction
        The sum [q] of the weighted differences h(X_t) − h(Y_{t−L}).
    second
        Where the second chain starts.
    pair
        The pair itself.
    """

    number: Array
    time: Array
    meeting: Array
    average: Array
    correction: Array
    second: Any
    pair: Any


class Pool(NamedTuple):
    """What all programs of a run share: the key of the run, the course of its pairs, and the devices under its lanes.

    `owners` [lane] says which pair is in a lane, and -1 where none is.
    """

    key: Key
    course: Course
    mesh: Mesh | None

    def start(self, owners: np.ndarray) -> Lane:
        """Lanes at the start of their pairs."""
        lanes: Lane = fill(self.course, self.mesh, **self.place(owners=owners))
        return lanes

    def advance(self, lanes: Lane, steps: int) -> tuple[Lane, np.ndarray]:
        """Every lane that is not done, up to so many steps on, and which are done then."""
        lanes, done = advance(self.course, self.mesh, **self.place(lanes=lanes, steps=np.asarray(steps)))
        return lanes, to_host(done)

    def refill(self, lanes: Lane, owners: np.ndarray, fresh: np.ndarray) -> Lane:
        """The lanes, those that are fresh at the start of their new pairs."""
        return take_if(self.place(fresh=fresh)["fresh"], self.start(owners), lanes)

    def place(self, **arguments: Any) -> dict[str, Any]:
        """The key and the arguments of a program, each lane with its device."""
        return place(self.mesh, {"key": self.key, **arguments}, by_chain=("lanes", "owners", "fresh"))


class Status(NamedTuple):
    """How far a run has come; a checkpoint holds all of it.

    segment
        The number of the segment; a run of pairs has one.
    filled
        How many programs of it have run.
    steps
        How many steps the next program makes.
    waiting
        The first pair that has no lane yet.
    owners
        Which pair is in a lane [lane], and -1 where none is.
    lanes
        The pairs on their way, leading axis [lane].
    ended
        Which pairs are at their ends [pair].
    results
        The lanes of these at their ends, without the chains, host arrays [pair, ...]; of other pairs they mean nothing.
    """

    segment: int
    filled: int
    steps: int
    waiting: int
    owners: np.ndarray
    lanes: Lane
    ended: np.ndarray
    results: Lane


def open_pool(pool: Pool, num_pairs: int, size: int) -> Status:
    """The status before the first step, with the first pairs in so many lanes."""
    owners = np.arange(size)
    return new_status(pool, num_pairs, size, owners, pool.start(owners))


def new_status(pool: Pool, num_pairs: int, waiting: int, owners: np.ndarray, lanes: Lane) -> Status:
    """The status with no pair at its end; lanes may be shapes."""
    kept = without_chains(lanes)
    results = jax.tree.map(lambda leaf: np.zeros((num_pairs, *leaf.shape[1:]), leaf.dtype), kept)
    return Status(0, 0, FIRST_STEPS, waiting, owners, lanes, np.zeros(num_pairs, bool), results)


def without_chains(lanes: Lane) -> Lane:
    """What is kept of lanes at their ends."""
    return lanes._replace(second=(), pair=())


def run_program(pool: Pool, status: Status) -> Status:
    """The status one program on, with ended pairs out of their lanes and waiting ones in them.

    The old status stays whole, but for results that it does not yet count as such.
    """
    lanes, done = pool.advance(status.lanes, status.steps)
    leaving = done & (status.owners >= 0)
    gone = status.owners[leaving]
    store(status.results, lanes, leaving, gone)
    ended, owners = status.ended.copy(), np.where(leaving, -1, status.owners)
    ended[gone] = True
    left = int(np.sum(owners >= 0))
    steps, waiting = next_steps(status.steps, len(gone) / max(1, len(gone) + left)), status.waiting
    if waiting < len(ended):
        owners, fresh, waiting = hire(owners, waiting, len(ended))
        lanes = pool.refill(lanes, owners, fresh)
    elif (fewer := even_lanes(pool.mesh, len(owners), left, steps)) < len(owners):
        kept = np.argsort(owners < 0, kind="stable")[:fewer]
        owners, lanes = owners[kept], jax.tree.map(lambda leaf: leaf[kept], lanes)
    return Status(0, status.filled + 1, steps, waiting, owners, lanes, ended, status.results)


def store(results: Lane, lanes: Lane, leaving: np.ndarray, pairs: np.ndarray) -> None:
    """Put the lanes that leave in the places of their pairs."""
    held, ends = jax.tree.leaves(results), jax.tree.leaves(to_host(without_chains(lanes)))
    for result, end in zip(held, ends, strict=True):
        result[pairs] = end[leaving]


def next_steps(steps: int, share: float) -> int:
    """The number of steps of the next program, such that between an eighth and a half of the pairs end in it."""
    if share < 1 / 8:
        return min(2 * steps, LONGEST)
    return max(1, steps // 2) if share > 1 / 2 else steps


def enough_lanes(num_lanes: int, num_pairs: int, steps: int) -> int:
    """How many lanes the last pairs go on with: as many as there are, unless a new program is worth its compilation."""
    part = 2 if steps == LONGEST else SHRINK
    if num_lanes < MANY and steps < LONGEST:
        return num_lanes
    fewer = -(-num_lanes // part)
    return fewer if num_pairs <= fewer else num_lanes


def even_lanes(mesh: Mesh | None, num_lanes: int, num_pairs: int, steps: int) -> int:
    """How many lanes the last pairs go on with, rounded up to what the devices share evenly."""
    size = num_devices(mesh)
    return -(-enough_lanes(num_lanes, num_pairs, steps) // size) * size


def hire(owners: np.ndarray, waiting: int, num_pairs: int) -> tuple[np.ndarray, np.ndarray, int]:
    """The owners with the next pairs in the free lanes, the mask of these, and the first pair that still waits."""
    free = np.flatnonzero(owners < 0)[: num_pairs - waiting]
    fresh = np.zeros(len(owners), bool)
    fresh[free] = True
    owners = owners.copy()
    owners[free] = np.arange(waiting, waiting + len(free))
    return owners, fresh, waiting + len(free)


@partial(jax.jit, static_argnames=("course", "mesh"))
@over_devices(by_chain=("owners",), arrays=("key",), made=BY_CHAIN)
def fill(course: Course, mesh: Mesh | None, *, key: Key, owners: Array) -> Lane:
    """Lanes at the start of these pairs [batch]."""
    return jax.vmap(lambda number: start_lane(course, key, number))(owners)


@partial(jax.jit, static_argnames=("course", "mesh"))
@over_devices(by_chain=("lanes",), arrays=("key", "steps"), made=BY_CHAIN)
def advance(course: Course, mesh: Mesh | None, *, key: Key, lanes: Lane, steps: Array) -> tuple[Lane, Array]:
    """Every lane that is not done, up to `steps` [] steps on, and which lanes are done then [batch]."""

    def unfinished(carry: Any) -> Array:
        return (carry[0] < steps) & ~is_done(course, carry[1])

    def body(carry: Any) -> Any:
        return carry[0] + 1, one_step(course, key, carry[1])

    def run(lane: Lane) -> tuple[Lane, Array]:
        moved: Lane = jax.lax.while_loop(unfinished, body, (jnp.asarray(0), lane))[1]
        return moved, is_done(course, moved)

    return jax.vmap(run)(lanes)


def start_lane(course: Course, key: Key, number: Array) -> Lane:
    """Pair `number` at t = 0; until t = L the first chain runs alone, as a pair that has met."""
    kernel = course.kernel
    first_key, second_key, _ = split_key(key, number)
    position = kernel.sample_start(first_key)
    zeros = jnp.zeros_like(value(course, position))
    pair = kernel.join(position, position, jnp.asarray(True))
    lane = Lane(number, jnp.asarray(0), jnp.asarray(-1), zeros, zeros, kernel.sample_start(second_key), pair)
    return record(course, lane)


def one_step(course: Course, key: Key, lane: Lane) -> Lane:
    """The pair one step on; at t = L the second chain joins at its own start."""
    kernel, run_key = course.kernel, split_key(key, lane.number)[2]
    pair, _ = kernel.step(jax.random.fold_in(run_key, lane.time), lane.pair)
    time = lane.time + 1
    joined = kernel.join(kernel.first(pair), lane.second, jnp.asarray(False))
    return record(course, lane._replace(pair=take_if(time == course.lag, joined, pair), time=time))


def record(course: Course, lane: Lane) -> Lane:
    """The lane with its meeting time noted, if this is it, and the terms of time t added to its sums."""
    kernel, time = course.kernel, lane.time
    met = kernel.met(lane.pair)
    meeting = jnp.where(met & (lane.meeting < 0) & (time >= course.lag), time, lane.meeting)
    here = value(course, kernel.first(lane.pair))
    gap = here - value(course, kernel.second(lane.pair))
    return lane._replace(
        meeting=meeting,
        average=lane.average + window(course, time) * here,
        correction=lane.correction + jnp.where(met, 0.0, weight(course, time)) * gap,
    )


def window(course: Course, time: Array) -> Array:
    """1 within k..m, else 0 []."""
    return ((time >= course.k) & (time <= course.m)).astype(float)


def weight(course: Course, time: Array) -> Array:
    """How many of the telescoping sums that start at k..m hold the difference at time t: Biswas et al. (2019), A."""
    lag, behind = course.lag, jnp.maximum(time - course.m, course.lag)
    count = (time - course.k) // lag - (behind + lag - 1) // lag + 1
    return jnp.where(time >= course.k + lag, count, 0).astype(float)


def value(course: Course, position: Any) -> Array:
    """h at a position as a vector [q]; empty where nothing is averaged."""
    if course.function is None:
        return jnp.zeros(0)
    return ravel_pytree(jax.tree.map(lambda leaf: jnp.asarray(leaf, float), course.function(position)))[0]


def is_done(course: Course, lane: Lane) -> Array:
    """Whether the pair has met and its window is over, or its steps are used up []."""
    return ((lane.meeting >= 0) & (lane.time >= course.m)) | (lane.time >= course.max_steps)


def split_key(key: Key, number: Array) -> Key:
    """The keys [3] of a pair: two starts and the run. They depend on nothing but the pair's number."""
    return jax.random.split(jax.random.fold_in(key, number), 3)
