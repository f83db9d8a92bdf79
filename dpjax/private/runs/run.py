"""A private run, part by part: each is charged to the ledger before it is made."""

import signal
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from types import FrameType
from typing import Any, NamedTuple, Self

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from dpjax._util.threads import one_blas_thread
from dpjax.base import Array, Key, SamplingAlgorithm
from dpjax.private.accounting.ledger import BudgetExceeded, Ledger, RunPart
from dpjax.private.kernels.base import NotPrivate, PrivateKernel, ravel
from dpjax.private.targets.target import Target
from dpjax.runtime.chunk import CHAIN_AXES, Chunk, Steps, make_draws
from dpjax.runtime.devices import over_devices, place
from dpjax.runtime.run import next_length

__all__ = [
    "STANDS_STILL",
    "Interruption",
    "PrivateRun",
    "PrivateStatus",
    "RunTotals",
    "choose_capacity",
    "log_priors",
    "make_chunk",
    "open_status",
    "run_charged",
    "start_chains",
    "to_device",
    "to_host",
]

NUM_PARTS = 10
"""A run is charged in this many parts at least, so that one that breaks off was charged for little not drawn."""
LEAST_CAPACITY, MOST_DRAWS = 4, 10_000
"""Draws of a chain that a part has room for; with the same room, short runs share one program."""
SECONDS_OF_PART = 2.0
GROWTH = 4
STUCK = 200
"""Proposals of which not one was accepted, after which a run is given up."""
STANDS_STILL = "no proposal was accepted, and standing still is not worth what is left of the budget"
COST_OF_CHARGE = 0.1
"""The part of a run's time that charging and saving may take, if that makes parts longer."""


@dataclass(frozen=True, eq=False)
class PrivateRun:
    """What stays as it is from the first iteration to the last; `total` counts those of an earlier run that goes on.

    Each of several devices in `mesh`, which share the chains, has all of the records. `part` marks the charges, up to
    its iterations.
    """

    kernel: PrivateKernel
    ledger: Ledger
    chain_keys: Key
    total: int
    thin: int
    capacity: int
    mesh: Mesh | None
    part: RunPart

    @cached_property
    def target(self) -> Target:
        """The kernel's target on every device."""
        target: Target = place(self.mesh, {"target": self.kernel.target}, by_chain=())["target"]
        return target


class RunTotals(NamedTuple):
    """Sums over iterations of a chain []: how many were accepted, and the diagnostics that are not private."""

    accepted: Array
    not_private: NotPrivate


class PrivateStatus(NamedTuple):
    """All that a run was charged for so far.

    Attributes
    ----------
    states
        Of the chains, leaves [chains, ...].
    draws
        Host arrays [chains, draws, ...].
    totals
        Sums [chains] over the iterations, on the host.
    done
        Iterations of each chain.
    parts
        How many of these each part of the run has made, by its mark.
    """

    states: Any
    draws: Any
    totals: RunTotals
    done: int
    parts: Mapping[str, int]


def open_status(target: Target, states: Any, num_chains: int) -> PrivateStatus:
    """The status before the first iteration."""
    position = jax.eval_shape(target.unravel, jax.ShapeDtypeStruct((target.dimension,), target.dtype))
    draws = jax.tree.map(
        lambda leaf: np.zeros((num_chains, 0, *leaf.shape), leaf.dtype),
        jax.eval_shape(target.terms.constrain, position),
    )
    zero: Any = np.zeros(num_chains, target.dtype)
    return PrivateStatus(states, draws, RunTotals(zero, NotPrivate(zero, zero)), 0, {})


def choose_capacity(iterations: int, thin: int) -> int:
    """How many draws of a chain a part can hold."""
    return min(max(-(-iterations // (thin * NUM_PARTS)), LEAST_CAPACITY), MOST_DRAWS)


def run_charged(
    run: PrivateRun, status: PrivateStatus, save: Callable[[PrivateStatus], None]
) -> tuple[PrivateStatus, str | BaseException | None]:
    """The loop over parts, each charged before it is made and saved before the next, and what broke it off."""
    length, start, num_chains = run.thin, status, len(run.chain_keys)
    with one_blas_thread(), Interruption() as interruption:
        try:
            while status.done < run.total:
                if interruption.noted:
                    return status, KeyboardInterrupt("private.sample was interrupted before the first draw.")
                if is_stuck(start, status):
                    return status, STANDS_STILL
                began = time.perf_counter()
                length = charge(run, status.done, min(length, run.total - status.done), num_chains)
                charged = time.perf_counter()
                status = advance(run, status, length)
                drawn = time.perf_counter()
                save(status)
                overhead = charged - began + time.perf_counter() - drawn
                length = next_part(run, length, drawn - charged, overhead)
        except (Exception, KeyboardInterrupt) as error:
            return status, error
    return status, None


def charge(run: PrivateRun, done: int, length: int, num_chains: int) -> int:
    """The iterations that were charged to the ledger: so many, or as many as the budget still allows."""
    queries = run.kernel.queries

    def charge_part() -> None:
        part = run.part._replace(first=done, last=done + length)
        run.ledger.charge(queries, length * num_chains, part=part)

    try:
        charge_part()
    except BudgetExceeded:
        length = run.ledger.affordable(queries) // num_chains // run.thin * run.thin
        if length == 0:
            raise
        charge_part()
    return length


def is_stuck(start: PrivateStatus, status: PrivateStatus) -> bool:
    """Whether no chain has moved in many iterations: the draws show it too, so that stopping tells nothing more."""
    accepted = np.sum(status.totals.accepted - start.totals.accepted)
    return bool(accepted == 0 and (status.done - start.done) * len(status.totals.accepted) >= STUCK)


def advance(run: PrivateRun, status: PrivateStatus, length: int) -> PrivateStatus:
    """The status after so many further iterations, which are charged: a multiple of the thinning."""
    number = length // run.thin
    steps = Steps.of(status.done, number, run.thin)
    chunk = make_chunk(run, run.target, run.chain_keys, status.states, steps)
    drawn = as_drawn(chunk.draws, number)
    draws = jax.tree.map(lambda *parts: np.concatenate(parts, axis=1), status.draws, drawn.parameters)
    totals = jax.tree.map(lambda total, more: total + np.sum(more, axis=1), status.totals, drawn.totals)
    parts = {**status.parts, run.part.part: status.parts.get(run.part.part, 0) + length}
    return PrivateStatus(chunk.states, draws, totals, status.done + length, parts)


def make_chunk(run: PrivateRun, target: Target, chain_keys: Key, states: Any, steps: Steps) -> Chunk:
    """A chunk by the program that the run uses."""
    chains = {"chain_keys": chain_keys, "states": states}
    arguments = place(run.mesh, {"target": target, **chains, "steps": steps}, by_chain=tuple(chains))
    chunk: Chunk = run_chunk(run.kernel.build, run.capacity, run.mesh, **arguments)
    return chunk


class PrivateDraw(NamedTuple):
    """What is kept of a draw: the parameters on the reported scale, and sums over the iterations since the last one."""

    parameters: Any
    totals: RunTotals


def as_drawn(buffers: PrivateDraw, number: int) -> PrivateDraw:
    """The first draws in buffers [capacity, chains, ...] as host arrays [chains, draws, ...]."""
    return jax.tree.map(lambda leaf: np.swapaxes(np.asarray(leaf)[:number], 0, 1), buffers)


def next_part(run: PrivateRun, length: int, seconds: float, overhead: float) -> int:
    """How many iterations the next part makes, after one of `length` took so long and was charged and saved so long."""
    wanted = max(SECONDS_OF_PART, overhead / COST_OF_CHARGE)
    return run.thin * min(next_length(length // run.thin, seconds, wanted, GROWTH), run.capacity)


def to_host(tree: Any) -> Any:
    """The leaves as arrays of numpy."""
    return jax.tree.map(np.asarray, tree)


def to_device(tree: Any) -> Any:
    """The leaves as arrays of JAX."""
    return jax.tree.map(jnp.asarray, tree)


@partial(jax.jit, static_argnames="build")
def start_chains(build: Callable[[Target], SamplingAlgorithm], target: Target, positions: Any) -> Any:
    """The states [chains] at unconstrained positions with leading axis [chains]."""
    return jax.vmap(lambda position: build(target).init(position))(positions)


@jax.jit
def log_priors(target: Target, positions: Any) -> Array:
    """The log-density of the prior [chains] at unconstrained positions with leading axis [chains]."""
    return jax.vmap(lambda position: target.log_prior(ravel(position)))(positions)


@partial(jax.jit, static_argnames=("build", "capacity", "mesh"))
@over_devices(by_chain=("chain_keys", "states"), made=CHAIN_AXES)
def run_chunk(
    build: Callable[[Target], SamplingAlgorithm],
    capacity: int,
    mesh: Mesh | None,
    *,
    target: Target,
    chain_keys: Key,
    states: Any,
    steps: Steps,
) -> Chunk:
    """Exactly these iterations; every `thin`-th position is kept.

    Their number is an argument of the program and not a shape, so that none is made and thrown away: each is a query of
    the records. See `make_draws`, whose draws are here `PrivateDraw`.
    """
    algorithm = build(target)

    def step(key: Key, state: Any) -> tuple[Any, RunTotals]:
        state, info = algorithm.step(key, state)
        return state, RunTotals(info.is_accepted.astype(info.not_private.clipped_ratios.dtype), info.not_private)

    def keep(state: Any, totals: RunTotals) -> PrivateDraw:
        return PrivateDraw(target.terms.constrain(state.position), totals)

    return make_draws(
        step,
        keep,
        chain_keys=chain_keys,
        states=states,
        steps=steps,
        capacity=capacity,
    )


class Interruption:
    """While it is entered, the first Ctrl-C is noted and no more; a second one interrupts at once.

    A program that is compiled, or waits for noise from the host, turns an interruption into a failure of its own and
    loses what it was computing. Signals are the main thread's matter: in another one nothing is changed. Nor is it
    if the process ignores interruptions, as one in the background may.
    """

    def __init__(self) -> None:
        self.noted = False
        self.previous: Any = None

    def __enter__(self) -> Self:
        ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        if threading.current_thread() is threading.main_thread() and not ignored:
            self.previous = signal.signal(signal.SIGINT, self.note)
        return self

    def __exit__(self, *error: object) -> None:
        if self.previous is not None:
            signal.signal(signal.SIGINT, self.previous)

    def note(self, number: int, frame: FrameType | None) -> None:
        """The handler."""
        del number, frame
        if self.noted:
            raise KeyboardInterrupt
        self.noted = True
