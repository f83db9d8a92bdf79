"""A pool of lanes, entries of a batch, that run any number of pairs: as a pair ends, the next one takes its lane.

Pairs meet after very different numbers of steps. If a batch of pairs ran until the last of them had met, most of its
lanes would be idle. A batch of a thousand would make seven to eight times as many steps. So programs run a few steps at
a time. Between them, waiting pairs take the lanes of ended ones. Once none is waiting the last pairs are moved to fewer
lanes. Apart from the results, memory does not grow with the number of pairs. The results depend neither on the number
of lanes nor on the devices, which share the lanes.
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
from dpjax.coupling.pairs import CoupledKernel
from dpjax.numerics import tree_where
from dpjax.runtime.devices import BY_CHAIN, num_devices, over_devices, place, to_host

__all__ = ["Lane", "PairSettings", "Pool", "PoolStatus", "new_status", "open_pool", "run_program"]

SHRINK = 8
"""Factor by which lanes are reduced once the last pairs fit; each new number of lanes is compiled."""

MANY = 128
"""Smallest number of lanes that is reduced, except in long runs."""

FIRST_STEPS = 8
"""Number of steps of the first program."""

LONGEST = 1 << 16
"""Largest number of steps of a program; runs that reach it are long enough to halve the lanes."""


Function = Callable[[Any], Any]


class PairSettings(NamedTuple):
    """The settings that all pairs of a run share; hashable, as programs are compiled for them.

    Attributes
    ----------
    kernel
        The kernel of the pairs.
    function
        h, ``position -> pytree of numbers``, averaged over the steps k..m of the first chain; or None.
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
    """A pair after t steps of its first chain, with its sums so far.

    Attributes
    ----------
    number
        The number of the pair [], which determines its keys.
    time
        t, the number of steps of the first chain [].
    meeting
        τ, the first t ≥ L with X_t = Y_{t−L} []; -1 before the meeting.
    average
        The sum [q] of h(X_t) over k..m.
    correction
        The sum [q] of the weighted differences h(X_t) − h(Y_{t−L}).
    second
        The initial position of the second chain.
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
    """What all programs of a run share: the key, the settings, and the devices.

    `owners` [lane] is the number of the pair in each lane, -1 for none.
    """

    key: Key
    settings: PairSettings
    mesh: Mesh | None

    def start(self, owners: np.ndarray) -> Lane:
        """Lanes at the start of their pairs."""
        lanes: Lane = fill(self.settings, self.mesh, **self.place(owners=owners))
        return lanes

    def advance(self, lanes: Lane, steps: int) -> tuple[Lane, np.ndarray]:
        """The lanes after at most this many further steps, and which of them are done."""
        lanes, done = step_lanes(self.settings, self.mesh, **self.place(lanes=lanes, steps=np.asarray(steps)))
        return lanes, to_host(done)

    def refill(self, lanes: Lane, owners: np.ndarray, fresh: np.ndarray) -> Lane:
        """The lanes, with the new pairs in the fresh ones."""
        return tree_where(self.place(fresh=fresh)["fresh"], self.start(owners), lanes)

    def place(self, **arguments: Any) -> dict[str, Any]:
        """The key and the arguments of a program, placed on the devices."""
        return place(self.mesh, {"key": self.key, **arguments}, by_chain=("lanes", "owners", "fresh"))


class PoolStatus(NamedTuple):
    """The progress of a run; a checkpoint holds all of it.

    Attributes
    ----------
    segment
        The number of the segment, always 0: a run of pairs has one.
    filled
        How many programs have run.
    steps
        The number of steps of the next program.
    waiting
        The first pair without a lane so far.
    owners
        The number of the pair in each lane [lane], -1 for none.
    lanes
        The running pairs, leading axis [lane].
    ended
        Which pairs have ended [pair].
    results
        The final lanes of ended pairs without the chains, host arrays [pair, ...]; arbitrary for other pairs.
    """

    segment: int
    filled: int
    steps: int
    waiting: int
    owners: np.ndarray
    lanes: Lane
    ended: np.ndarray
    results: Lane


def open_pool(pool: Pool, num_pairs: int, size: int) -> PoolStatus:
    """The status before the first step, with the first pairs in `size` lanes."""
    owners = np.arange(size)
    return new_status(pool, num_pairs, size, owners, pool.start(owners))


def new_status(pool: Pool, num_pairs: int, waiting: int, owners: np.ndarray, lanes: Lane) -> PoolStatus:
    """The status in which no pair has ended; lanes may be shapes."""
    kept = without_chains(lanes)
    results = jax.tree.map(lambda leaf: np.zeros((num_pairs, *leaf.shape[1:]), leaf.dtype), kept)
    return PoolStatus(0, 0, FIRST_STEPS, waiting, owners, lanes, np.zeros(num_pairs, bool), results)


def without_chains(lanes: Lane) -> Lane:
    """The part of the lanes that is a result."""
    return lanes._replace(second=(), pair=())


def run_program(pool: Pool, status: PoolStatus) -> PoolStatus:
    """The status after one more program, with waiting pairs in the lanes of ended ones.

    The old status stays valid: only results of pairs that it does not count as ended are written.
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
        owners, fresh, waiting = fill_lanes(owners, waiting, len(ended))
        lanes = pool.refill(lanes, owners, fresh)
    elif (fewer := even_lanes(pool.mesh, len(owners), left, steps)) < len(owners):
        kept = np.argsort(owners < 0, kind="stable")[:fewer]
        owners, lanes = owners[kept], jax.tree.map(lambda leaf: leaf[kept], lanes)
    return PoolStatus(0, status.filled + 1, steps, waiting, owners, lanes, ended, status.results)


def store(results: Lane, lanes: Lane, leaving: np.ndarray, pairs: np.ndarray) -> None:
    """Write the lanes of ended pairs to the results."""
    held, ends = jax.tree.leaves(results), jax.tree.leaves(to_host(without_chains(lanes)))
    for result, end in zip(held, ends, strict=True):
        result[pairs] = end[leaving]


def next_steps(steps: int, share: float) -> int:
    """The number of steps of the next program, so that between an eighth and a half of the pairs end in it."""
    if share < 1 / 8:
        return min(2 * steps, LONGEST)
    return max(1, steps // 2) if share > 1 / 2 else steps


def enough_lanes(num_lanes: int, num_pairs: int, steps: int) -> int:
    """The number of lanes for the last pairs: the current one, unless fewer save more than a compilation."""
    part = 2 if steps == LONGEST else SHRINK
    if num_lanes < MANY and steps < LONGEST:
        return num_lanes
    fewer = -(-num_lanes // part)
    return fewer if num_pairs <= fewer else num_lanes


def even_lanes(mesh: Mesh | None, num_lanes: int, num_pairs: int, steps: int) -> int:
    """The number of lanes for the last pairs, rounded up to a multiple of the number of devices."""
    size = num_devices(mesh)
    return -(-enough_lanes(num_lanes, num_pairs, steps) // size) * size


def fill_lanes(owners: np.ndarray, waiting: int, num_pairs: int) -> tuple[np.ndarray, np.ndarray, int]:
    """The owners with the next pairs in the free lanes, the mask of these lanes, and the first pair still waiting."""
    free = np.flatnonzero(owners < 0)[: num_pairs - waiting]
    fresh = np.zeros(len(owners), bool)
    fresh[free] = True
    owners = owners.copy()
    owners[free] = np.arange(waiting, waiting + len(free))
    return owners, fresh, waiting + len(free)


@partial(jax.jit, static_argnames=("settings", "mesh"))
@over_devices(by_chain=("owners",), made=BY_CHAIN)
def fill(settings: PairSettings, mesh: Mesh | None, *, key: Key, owners: Array) -> Lane:
    """Lanes at the start of these pairs [batch]."""
    return jax.vmap(lambda number: start_lane(settings, key, number))(owners)


@partial(jax.jit, static_argnames=("settings", "mesh"))
@over_devices(by_chain=("lanes",), made=BY_CHAIN)
def step_lanes(settings: PairSettings, mesh: Mesh | None, *, key: Key, lanes: Lane, steps: Array) -> tuple[Lane, Array]:
    """The lanes after at most `steps` [] further steps, and which of them are done [batch]."""

    def unfinished(carry: Any) -> Array:
        return (carry[0] < steps) & ~is_done(settings, carry[1])

    def body(carry: Any) -> Any:
        return carry[0] + 1, step_lane(settings, key, carry[1])

    def run(lane: Lane) -> tuple[Lane, Array]:
        moved: Lane = jax.lax.while_loop(unfinished, body, (jnp.asarray(0), lane))[1]
        return moved, is_done(settings, moved)

    return jax.vmap(run)(lanes)


def start_lane(settings: PairSettings, key: Key, number: Array) -> Lane:
    """The lane of pair `number` at t = 0; until t = L the first chain runs alone, as a pair that has met."""
    kernel = settings.kernel
    first_key, second_key, _ = split_key(key, number)
    position = kernel.sample_start(first_key)
    zeros = jnp.zeros_like(evaluate(settings, position))
    pair = kernel.join(position, position, jnp.asarray(True))
    lane = Lane(number, jnp.asarray(0), jnp.asarray(-1), zeros, zeros, kernel.sample_start(second_key), pair)
    return update_sums(settings, lane)


def step_lane(settings: PairSettings, key: Key, lane: Lane) -> Lane:
    """The lane after one more step; at t = L the second chain joins at its own initial position."""
    kernel, run_key = settings.kernel, split_key(key, lane.number)[2]
    pair, _ = kernel.step(jax.random.fold_in(run_key, lane.time), lane.pair)
    time = lane.time + 1
    joined = kernel.join(kernel.first(pair), lane.second, jnp.asarray(False))
    return update_sums(settings, lane._replace(pair=tree_where(time == settings.lag, joined, pair), time=time))


def update_sums(settings: PairSettings, lane: Lane) -> Lane:
    """The lane with the terms of time t added to its sums, and its meeting time if the chains have just met."""
    kernel, time = settings.kernel, lane.time
    met = kernel.met(lane.pair)
    meeting = jnp.where(met & (lane.meeting < 0) & (time >= settings.lag), time, lane.meeting)
    here = evaluate(settings, kernel.first(lane.pair))
    gap = here - evaluate(settings, kernel.second(lane.pair))
    return lane._replace(
        meeting=meeting,
        average=lane.average + window(settings, time) * here,
        correction=lane.correction + jnp.where(met, 0.0, weight(settings, time)) * gap,
    )


def window(settings: PairSettings, time: Array) -> Array:
    """1 within k..m, else 0 []."""
    return ((time >= settings.k) & (time <= settings.m)).astype(float)


def weight(settings: PairSettings, time: Array) -> Array:
    """How many telescoping sums from k..m contain the difference at time t []: Biswas et al. (2019), Appendix A."""
    lag, behind = settings.lag, jnp.maximum(time - settings.m, settings.lag)
    count = (time - settings.k) // lag - (behind + lag - 1) // lag + 1
    return jnp.where(time >= settings.k + lag, count, 0).astype(float)


def evaluate(settings: PairSettings, position: Any) -> Array:
    """h at a position as a vector [q]; empty without a function."""
    if settings.function is None:
        return jnp.zeros(0)
    return ravel_pytree(jax.tree.map(lambda leaf: jnp.asarray(leaf, float), settings.function(position)))[0]


def is_done(settings: PairSettings, lane: Lane) -> Array:
    """Whether the pair has met and its window is over, or it has reached its last step []."""
    return ((lane.meeting >= 0) & (lane.time >= settings.m)) | (lane.time >= settings.max_steps)


def split_key(key: Key, number: Array) -> Key:
    """The keys [3] of a pair, for two starts and the run; they depend only on the run's key and the pair's number."""
    return jax.random.split(jax.random.fold_in(key, number), 3)
