"""A pool of lanes through which any number of pairs passes: where a pair has ended, the next one starts.

Pairs meet after very different numbers of steps. If each program ran a batch of pairs until the last of them had met,
most of its lanes would idle; here programs run a few steps at a time, and between them ended pairs are taken out.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dpjax.base import Array, Key
from dpjax.coupling.lanes import Course, Lane, is_done, one_step, start_lane
from dpjax.numerics import take_if
from dpjax.threads import one_blas_thread

__all__ = ["run_pairs"]

SHRINK = 8
"""The last pairs are moved to this fraction of the lanes once they fit: not sooner, as each size is compiled."""

MANY = 128
"""With fewer lanes than this they are moved in long runs only."""

LONGEST = 1 << 16
"""The most steps of one program; runs that come to this are so long that half of the lanes are worth another size."""


def run_pairs(key: Key, course: Course, num_pairs: int, batch_size: int) -> Lane:
    """The lanes of all pairs [num_pairs] at their ends, without the chains themselves.

    A program runs `batch_size` lanes for a number of steps that lets some pairs end. Their results are read off and
    their lanes given to pairs that wait; once none waits, the remaining ones are moved to fewer lanes. Memory does not
    grow with the number of pairs, and their draws do not depend on the batch. `owners` says which pair is in a lane,
    and -1 where none is.
    """
    size = min(batch_size, num_pairs)
    owners = np.arange(size)
    lanes = fill(course, key, jnp.asarray(owners))
    results: list[Lane | None] = [None] * num_pairs
    waiting, steps = size, 8
    with one_blas_thread():
        while np.any(owners >= 0):
            lanes = advance(course, key, lanes, jnp.asarray(steps))
            ended = np.asarray(done(course, lanes)) & (owners >= 0)
            for lane, owner in harvest(lanes, ended, owners):
                results[owner] = lane
            owners = np.where(ended, -1, owners)
            steps = next_steps(steps, ended.sum() / max(1, ended.sum() + np.sum(owners >= 0)))
            if waiting < num_pairs:
                owners, fresh, waiting = hire(owners, waiting, num_pairs)
                lanes = take_if(jnp.asarray(fresh), fill(course, key, jnp.asarray(owners)), lanes)
            elif (fewer := enough_lanes(len(owners), int(np.sum(owners >= 0)), steps)) < len(owners):
                kept = np.argsort(owners < 0, kind="stable")[:fewer]
                owners, lanes = owners[kept], jax.tree.map(lambda leaf, kept=kept: leaf[kept], lanes)
    return jax.tree.map(lambda *leaves: np.stack(leaves), *results)


def harvest(lanes: Lane, ended: np.ndarray, owners: np.ndarray) -> Iterator[tuple[Lane, int]]:
    """The lanes that have ended, as host arrays, and the pairs in them."""
    host = jax.tree.map(np.asarray, lanes._replace(second=(), pair=()))
    for place in np.flatnonzero(ended):
        yield jax.tree.map(lambda leaf, place=place: leaf[place], host), int(owners[place])


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


def hire(owners: np.ndarray, waiting: int, num_pairs: int) -> tuple[np.ndarray, np.ndarray, int]:
    """The owners with the next pairs in the free lanes, the mask of these, and the first pair that still waits."""
    free = np.flatnonzero(owners < 0)[: num_pairs - waiting]
    fresh = np.zeros(len(owners), bool)
    fresh[free] = True
    owners = owners.copy()
    owners[free] = np.arange(waiting, waiting + len(free))
    return owners, fresh, waiting + len(free)


@partial(jax.jit, static_argnames="course")
def fill(course: Course, key: Key, indices: Array) -> Lane:
    """Lanes at the start of these pairs [batch]."""
    return jax.vmap(lambda index: start_lane(course, key, index))(indices)


@partial(jax.jit, static_argnames="course")
def advance(course: Course, key: Key, lanes: Lane, steps: Array) -> Lane:
    """Every lane that is not done, up to `steps` [] steps on."""

    def unfinished(carry: Any) -> Array:
        return (carry[0] < steps) & ~is_done(course, carry[1])

    def body(carry: Any) -> Any:
        return carry[0] + 1, one_step(course, key, carry[1])

    return jax.vmap(lambda lane: jax.lax.while_loop(unfinished, body, (jnp.asarray(0), lane))[1])(lanes)


@partial(jax.jit, static_argnames="course")
def done(course: Course, lanes: Lane) -> Array:
    """Which lanes are done [batch]."""
    return jax.vmap(lambda lane: is_done(course, lane))(lanes)
