"""One pair of chains with a lag as a program: its start, its steps, and the sums of an unbiased estimate on the way.

Many pairs run at once, under `jax.vmap`, and each of them fills one entry of the batch axis: its *lane*. How long a
pair runs, and what is averaged on the way, is the same for all pairs: their *course*.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from dpjax.base import Array, Key
from dpjax.coupling.kernel import CoupledKernel
from dpjax.numerics import take_if

__all__ = ["Course", "Lane", "is_done", "one_step", "start_lane"]

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
