"""A pool of lanes through which any number of pairs passes: where a pair has ended, the next one starts.

Pairs meet after very different numbers of steps. If each program ran a batch of pairs until the last of them had met,
most of its lanes would idle; here programs run a few steps at a time, and between them ended pairs are taken out.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from dpjax.base import Array, Key
from dpjax.coupling.lanes import Course, Lane, is_done, one_step, start_lane
from dpjax.numerics import take_if
from dpjax.running.devices import (
    BY_CHAIN,
    Devices,
    num_devices,
    over_devices,
    place,
    share_evenly,
    to_host,
)
from dpjax.threads import one_blas_thread

__all__ = ["run_pairs"]

SHRINK = 8
"""The last pairs are moved to this fraction of the lanes once they fit: not sooner, as each size is compiled."""

MANY = 128
"""With fewer lanes than this they are moved in long runs only."""

LONGEST = 1 << 16
"""The most steps of one program; runs that come to this are so long that half of the lanes are worth another size."""


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


def run_pairs(key: Key, course: Course, num_pairs: int, batch_size: int, devices: Devices) -> Lane:
    """The lanes of all pairs [num_pairs] at their ends, without the chains themselves.

    A program runs `batch_size` lanes for a number of steps that lets some pairs end. Their results are read off and
    their lanes given to pairs that wait; once none waits, the remaining ones are moved to fewer lanes. Memory does not
    grow with the number of pairs, and their draws depend neither on the batch nor on the devices, each of which
    advances its own lanes.
    """
    mesh, size = share_evenly(devices, min(batch_size, num_pairs), "pairs at once")
    pool, owners = Pool(key, course, mesh), np.arange(size)
    lanes = pool.start(owners)
    results: list[Lane | None] = [None] * num_pairs
    waiting, steps = size, 8
    with one_blas_thread():
        while np.any(owners >= 0):
            lanes, done = pool.advance(lanes, steps)
            ended = done & (owners >= 0)
            for lane, owner in harvest(lanes, ended, owners):
                results[owner] = lane
            owners = np.where(ended, -1, owners)
            steps = next_steps(steps, ended.sum() / max(1, ended.sum() + np.sum(owners >= 0)))
            if waiting < num_pairs:
                owners, fresh, waiting = hire(owners, waiting, num_pairs)
                lanes = pool.refill(lanes, owners, fresh)
            elif (fewer := even_lanes(mesh, len(owners), int(np.sum(owners >= 0)), steps)) < len(owners):
                kept = np.argsort(owners < 0, kind="stable")[:fewer]
                owners, lanes = owners[kept], jax.tree.map(lambda leaf, kept=kept: leaf[kept], lanes)
    return jax.tree.map(lambda *leaves: np.stack(leaves), *results)


def harvest(lanes: Lane, ended: np.ndarray, owners: np.ndarray) -> Iterator[tuple[Lane, int]]:
    """The lanes that have ended, as host arrays, and the pairs in them."""
    host = to_host(lanes._replace(second=(), pair=()))
    for lane in np.flatnonzero(ended):
        yield jax.tree.map(lambda leaf, lane=lane: leaf[lane], host), int(owners[lane])


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
