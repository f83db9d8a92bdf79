"""A run of chains: its segments, how far it is in them, one chunk of work, and the loop on the host.

`run_to_end` makes chunk after chunk, until all draws are made or the user interrupts it.

`Run` is what sampling, batches of releases, mixtures and the Normal approximation of the sum have in common. Each of
them says what is compiled, what a chunk leaves, and what is adapted between segments. Two kinds of runs are apart from
it. Pairs of coupled chains (`dpjax.coupling.run`) end one by one when they meet. Each part of a private run
(`dpjax.private.runs`) is charged before it is made and never lost.
"""

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh

from dpjax._util.host import on_devices
from dpjax._util.jit import compiling
from dpjax._util.threads import one_blas_thread
from dpjax._util.validation import check_count, check_key, fail
from dpjax._util.warn import warn_at_the_call
from dpjax.base import Key
from dpjax.runtime.checkpoint import PeriodicCheckpoint
from dpjax.runtime.chunk import Chunk, Segment, Steps
from dpjax.runtime.devices import place, same_everywhere, to_host
from dpjax.runtime.progress import PREPARING, Progress, announce, check_progress

__all__ = [
    "Run",
    "Status",
    "StoppingRule",
    "at_work",
    "check_run",
    "find_saved",
    "is_interrupted",
    "looking_for_starts",
    "run_to_end",
]

TARGET_SECONDS = 0.25
FASTEST_GROWTH = 8
MAX_STEPS, MAX_CHAINS = 2**31, 2**20


class Status(NamedTuple):
    """How far a run has come; a checkpoint holds all of it.

    Attributes
    ----------
    segment
        The number of the current segment.
    filled
        How many draws it has made.
    kernel
        What of the kernel is adapted, as adapted so far.
    chains
        What the chains carry.
    draws
        Host arrays of the draws of the current segment; those beyond `filled` mean nothing.
    """

    segment: int
    filled: int
    kernel: Any
    chains: Any
    draws: Any = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Run(ABC):
    """What stays as it is from the first step to the last.

    Parameters
    ----------
    schedule
        Its segments.
    mesh
        The devices that share the work; None for one.
    """

    schedule: tuple[Segment, ...]
    mesh: Mesh | None = None

    SHARED: ClassVar[tuple[str, ...]] = ("chain_keys", "chains")
    """The arguments of the program whose leading axis is spread over the devices."""

    DRAW_AXIS: ClassVar[int] = 0
    """The axis of draws in the buffers of a chunk; that of chains is the next one."""

    PROGRAM: ClassVar[Callable[..., Any]]
    """The compiled program that makes a chunk."""

    @abstractmethod
    def static(self, status: Status) -> tuple[Any, ...]:
        """The arguments of the program that decide what is compiled."""

    @abstractmethod
    def arguments(self, status: Status, length: int) -> dict[str, Any]:
        """The arguments of the program that are ordinary values."""

    @abstractmethod
    def capacity(self, status: Status) -> int:
        """How many draws a chunk can hold."""

    @abstractmethod
    def close_segment(self, status: Status) -> Status:
        """The status at the start of the next segment, adapted to the draws of this one."""

    def store(self, status: Status, chunk: Chunk, length: int) -> tuple[Status, int]:
        """The status after a chunk of so many draws, and how many of these were made."""
        axis = self.DRAW_AXIS
        leading = (slice(None),) * axis
        for held, buffer in zip(jax.tree.leaves(status.draws), jax.tree.leaves(chunk.draws), strict=True):
            made = np.swapaxes(to_host(buffer)[*leading, :length], axis, axis + 1)
            held[*leading, :, status.filled : status.filled + length] = made
        return status._replace(chains=chunk.states, filled=status.filled + length), length

    def make_room(self, status: Status) -> Status:
        """The status with more room for the chains, if a chunk ended before its last draw for lack of it."""
        raise NotImplementedError

    def allocate(self, status: Status, draws: int) -> Any:
        """Host arrays for so many draws."""
        axis = self.DRAW_AXIS

        def empty(leaf: Any) -> np.ndarray:
            return np.zeros((*leaf.shape[:axis], leaf.shape[axis + 1], draws, *leaf.shape[axis + 2 :]), leaf.dtype)

        return jax.tree.map(empty, self.shapes_of_chunk(status).draws)

    def shapes_of_chunk(self, status: Status) -> Any:
        """The shapes and types of what a chunk leaves."""
        static, arguments = self.static(status), self.arguments(status, 0)
        with on_devices():
            return type(self).PROGRAM.eval_shape(*static, **arguments)  # type: ignore[attr-defined]

    def first_shapes(self) -> Status | None:
        """The status before the first step, with shapes for arrays; None where starts decide what the program is."""
        raise NotImplementedError

    def lower_first(self) -> Any:
        """The program of the first chunk, to be compiled while starts are looked for; None if it is not known yet."""
        status = self.first_shapes()
        return None if status is None else self.lower(status)

    def lower(self, status: Status) -> Any:
        """The program of the next chunk, to be compiled ahead; arrays of the status may be shapes.

        None on several devices, if shapes do not say how the arrays are spread.
        """
        if self.mesh is not None:
            return None
        static, arguments = self.static(status), self.arguments(status, 0)
        with on_devices():
            return type(self).PROGRAM.lower(*static, **arguments)  # type: ignore[attr-defined]

    def is_done(self, status: Status) -> bool:
        """Whether all draws are made."""
        return self.is_last(status) and status.filled == self.schedule[-1].draws

    def is_last(self, status: Status) -> bool:
        """Whether the current segment is the last one."""
        return status.segment == len(self.schedule) - 1

    def steps_made(self, status: Status) -> int:
        """The steps that are made."""
        segment = self.schedule[status.segment]
        return segment.start + status.filled * segment.thin

    def steps(self, status: Status, length: int) -> Steps:
        """The steps of a chunk of so many draws."""
        return Steps.of(self.steps_made(status), length, self.schedule[status.segment].thin)

    def make_chunk(self, status: Status, length: int) -> tuple[Status, int]:
        """Make up to so many draws within the current segment, and say how many; at its end, open the next one.

        The old status stays whole, so that an interruption leaves a consistent one.
        """
        segment = self.schedule[status.segment]
        length = same_everywhere(self.mesh, min(length, self.capacity(status), segment.draws - status.filled))
        arguments = place(self.mesh, self.arguments(status, length), by_chain=self.SHARED)
        static = self.static(status)
        with on_devices():
            chunk = type(self).PROGRAM(*static, **arguments)
        status, made = self.store(status, chunk, length)
        if made < length:
            return self.make_room(status), made
        ended = status.filled == segment.draws and not self.is_last(status)
        return (self.close_segment(status) if ended else status), made

    def pack(self, status: Status) -> tuple[dict[str, Any], dict[str, Any]]:
        """What is saved of a status beside its place: values that JSON has, and named trees of arrays."""
        raise NotImplementedError

    def restore(self, progress: dict[str, Any], arrays: dict[str, np.ndarray]) -> Status:
        """The status that was saved; an error if it does not fit the run."""
        raise NotImplementedError


class StoppingRule:
    """What may end a run before its last draw; by itself nothing does."""

    def room(self, status: Status) -> float:
        """How many draws may be made before the run is checked again."""
        return math.inf

    def is_enough(self, status: Status) -> bool:
        """Whether the run ends here."""
        return False


@contextmanager
def at_work(file: PeriodicCheckpoint | None) -> Iterator[None]:
    """While the file is held for a run alone, and the host's linear algebra has one thread, as XLA has the others."""
    with nullcontext() if file is None else file.held(), one_blas_thread():
        yield


@contextmanager
def looking_for_starts(run: Run) -> Iterator[None]:
    """While the program of the first chunk is compiled, and starts are looked for meanwhile."""
    announce(PREPARING)
    with compiling(run.lower_first()):
        announce("looking for starts")
        yield
        announce(PREPARING)


def find_saved(run: Run, file: PeriodicCheckpoint | None) -> Status | None:
    """The status in the file; None where there is none."""
    return None if file is None else file.load(run.restore)


def run_to_end(
    run: Run, status: Status, file: PeriodicCheckpoint | None, bar: Progress, rule: StoppingRule | None = None
) -> Status:
    """Make chunks until all draws are made, or enough, or until an interruption; the status of the last whole chunk.

    Callers hand their status on and do not hold it: each copy of the states counts where n is large.

    Parameters
    ----------
    status
        The one to go on from.
    file
        Where the run is saved from time to time and at its end.
    bar
        Where the run is shown.
    rule
        What may end the run before.
    """
    length, rule = 1, rule or StoppingRule()
    bar.expect(run.schedule[-1].stop, run.steps_made(status))
    bar.say(PREPARING)
    try:
        while not (run.is_done(status) or rule.is_enough(status)):
            segment, began = run.schedule[status.segment], time.perf_counter()
            status, made = run.make_chunk(status, int(min(length, rule.room(status))))
            length = next_length(made, time.perf_counter() - began)
            if file is not None:
                file.save_sometimes(status)
            bar.advance(made * segment.thin, segment.phase)
    except KeyboardInterrupt:
        if file is not None and file.is_shared:
            raise  # each process stops elsewhere: the file has the last place where they were together
    if file is not None:
        file.save_last(status)
    return status


def is_interrupted(name: str, run: Run, status: Status, file: PeriodicCheckpoint | None) -> bool:
    """Whether draws are missing, with a warning that says how many.

    Parameters
    ----------
    name
        That of the function that runs.

    Raises
    ------
    KeyboardInterrupt
        If there are none.
    """
    remedy = file.remedy if file is not None else ""
    if not run.is_last(status) or status.filled == 0:
        saved = remedy or "Nothing was drawn; pass `checkpoint`, in a folder with room, to continue interrupted runs."
        phase = run.schedule[status.segment].phase
        raise KeyboardInterrupt(f"{name} was interrupted in {phase}, before the first draw. {saved}")
    if run.is_done(status):
        return False
    text = f"{name} was interrupted after {status.filled} of {run.schedule[-1].draws} draws. {remedy}"
    warn_at_the_call(text.strip())
    return True


def next_length(length: int, seconds: float, wanted: float = TARGET_SECONDS, growth: float = FASTEST_GROWTH) -> int:
    """How many draws the next chunk makes, to take the seconds wanted after one of `length` took `seconds`.

    By default it aims at four moves of the bar a second. The first chunk of a program includes its compilation, so the
    growth is bounded rather than the first time believed. Draws do not depend on the lengths.
    """
    return max(1, int(length * min(wanted / max(seconds, 1e-9), growth)))


def check_run(
    key: Key, num_chains: int, num_warmup: int, num_samples: int, thin: int, collect: Any, progress: Any
) -> None:
    """Raise unless the key, the counts and the function are usable.

    Raises
    ------
    TypeError, ValueError
        With the argument, what was given, what was expected and the remedy.
    """
    check_key("key", key)
    if check_count("num_chains", num_chains) > MAX_CHAINS:
        fail("num_chains", num_chains, f"at most {MAX_CHAINS}", "Draw more of each, or join runs: Posterior.concat.")
    check_count("num_warmup", num_warmup, "Pass a whole number; 0 for no warm-up.", least=0)
    check_count("num_samples", num_samples)
    check_count("thin", thin, "Pass 1 to keep every draw.")
    if num_warmup + num_samples * thin >= MAX_STEPS:
        given = f"{num_warmup} + {num_samples} * {thin} steps"
        fail("num_samples", given, f"fewer than {MAX_STEPS} steps in all", "Draw or thin less.")
    if collect is not None and (isinstance(collect, type) or not callable(collect)):
        remedy = "Pass a function of a GibbsState, such as lambda state: state.latent.records."
        fail("collect", repr(collect), "a function or None", remedy, error=TypeError)
    check_progress(progress)
