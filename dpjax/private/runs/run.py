"""A private run, part by part: each is charged to the ledger before it is made."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from dpjax.base import Key
from dpjax.private.accounting.ledger import BudgetExceeded, Ledger
from dpjax.private.kernels.base import NotPrivate, PrivateKernel
from dpjax.private.runs.chunk import Draw, Totals, run_chunk
from dpjax.private.runs.interruption import Interruption
from dpjax.private.targets.target import Target
from dpjax.running.chunk import Chunk
from dpjax.running.devices import place
from dpjax.threads import one_blas_thread

__all__ = [
    "STANDS_STILL",
    "Run",
    "Status",
    "choose_capacity",
    "finish",
    "make_chunk",
    "open_status",
    "to_device",
    "to_host",
]

NUM_PARTS = 10
"""A run is charged in this many parts at least, so that one that breaks off pays for little that it has not drawn."""
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
class Run:
    """What stays as it is from the first iteration to the last; `total` counts those of an earlier run that goes on.

    Of several devices in `mesh`, which share the chains, each has all of the records.
    """

    kernel: PrivateKernel
    ledger: Ledger
    chain_keys: Key
    total: int
    thin: int
    capacity: int
    mesh: Mesh | None

    @cached_property
    def target(self) -> Target:
        """The kernel's target on every device."""
        target: Target = place(self.mesh, {"target": self.kernel.target}, by_chain=())["target"]
        return target


class Status(NamedTuple):
    """All that a run has paid for so far.

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
    """

    states: Any
    draws: Any
    totals: Totals
    done: int


def open_status(target: Target, states: Any, num_chains: int) -> Status:
    """The status before the first iteration."""
    position = jax.eval_shape(target.unravel, jax.ShapeDtypeStruct((target.dimension,), target.weights.dtype))
    draws = jax.tree.map(
        lambda leaf: np.zeros((num_chains, 0, *leaf.shape), leaf.dtype),
        jax.eval_shape(target.terms.constrain, position),
    )
    zero: Any = np.zeros(num_chains, target.weights.dtype)
    return Status(states, draws, Totals(zero, NotPrivate(zero, zero)), 0)


def choose_capacity(iterations: int, thin: int) -> int:
    """How many draws of a chain a part can hold."""
    return min(max(-(-iterations // (thin * NUM_PARTS)), LEAST_CAPACITY), MOST_DRAWS)


def finish(run: Run, status: Status, save: Callable[[Status], None]) -> tuple[Status, str | BaseException | None]:
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
                length = charge(run, min(length, run.total - status.done), num_chains)
                charged = time.perf_counter()
                status = advance(run, status, length)
                drawn = time.perf_counter()
                save(status)
                overhead = charged - began + time.perf_counter() - drawn
                length = next_length(run, length, drawn - charged, overhead)
        except (Exception, KeyboardInterrupt) as error:
            return status, error
    return status, None


def charge(run: Run, length: int, num_chains: int) -> int:
    """The iterations that were charged to the ledger: so many, or as many as the budget still allows."""
    queries = run.kernel.queries
    try:
        run.ledger.charge(queries, times=length * num_chains)
    except BudgetExceeded:
        length = run.ledger.affordable(queries) // num_chains // run.thin * run.thin
        if length == 0:
            raise
        run.ledger.charge(queries, times=length * num_chains)
    return length


def is_stuck(start: Status, status: Status) -> bool:
    """Whether no chain has moved in many iterations: the draws show it too, so that stopping tells nothing more."""
    accepted = np.sum(status.totals.accepted - start.totals.accepted)
    return bool(accepted == 0 and (status.done - start.done) * len(status.totals.accepted) >= STUCK)


def advance(run: Run, status: Status, length: int) -> Status:
    """The status after so many further iterations, which are paid for: a multiple of the thinning."""
    number = length // run.thin
    numbers = {"start": np.int32(status.done), "length": np.int32(number), "thin": np.int32(run.thin)}
    chunk = make_chunk(run, run.target, run.chain_keys, status.states, numbers)
    drawn = as_drawn(chunk.draws, number)
    draws = jax.tree.map(lambda *parts: np.concatenate(parts, axis=1), status.draws, drawn.parameters)
    totals = jax.tree.map(lambda total, more: total + np.sum(more, axis=1), status.totals, drawn.totals)
    return Status(chunk.states, draws, totals, status.done + length)


def make_chunk(run: Run, target: Target, chain_keys: Key, states: Any, numbers: dict[str, Any]) -> Chunk:
    """A chunk by the program that the run uses; its numbers are those of `run_chunk`."""
    chains = {"chain_keys": chain_keys, "states": states}
    arguments = place(run.mesh, {"target": target, **chains, **numbers}, by_chain=tuple(chains))
    chunk: Chunk = run_chunk(run.kernel.build, **arguments, capacity=run.capacity, mesh=run.mesh)
    return chunk


def as_drawn(buffers: Draw, number: int) -> Draw:
    """The first draws in buffers [capacity, chains, ...] as host arrays [chains, draws, ...]."""
    return jax.tree.map(lambda leaf: np.swapaxes(np.asarray(leaf)[:number], 0, 1), buffers)


def next_length(run: Run, length: int, seconds: float, overhead: float) -> int:
    """How many iterations the next part makes, after one of `length` took so long and was charged and saved so long.

    The time of the first includes its compilation, so growth is bounded rather than the first time believed. Draws do
    not depend on the lengths.
    """
    wanted = max(SECONDS_OF_PART, overhead / COST_OF_CHARGE)
    draws = length // run.thin * min(wanted / max(seconds, 1e-9), GROWTH)
    return run.thin * max(1, min(int(draws), run.capacity))


def to_host(tree: Any) -> Any:
    """The leaves as arrays of numpy."""
    return jax.tree.map(np.asarray, tree)


def to_device(tree: Any) -> Any:
    """The leaves as arrays of JAX."""
    return jax.tree.map(jnp.asarray, tree)
