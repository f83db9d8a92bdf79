"""A run of chains: its segments, how far it is in them, and one chunk of work.

`Run` is what sampling, batches of releases, mixtures and the Normal approximation of the sum have in common; each of
them says what is compiled, what a chunk leaves, and what is adapted between segments. Two kinds of runs are apart from
it: pairs of coupled chains (`dpjax.coupling.run`), which end one by one where they meet, and private runs
(`dpjax.private.runs`), each part of which is paid for before it is made and never lost.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh

from dpjax.runtime.chunk import Chunk
from dpjax.runtime.devices import place, same_everywhere, to_host

__all__ = ["Run", "Segment", "Status"]


class Segment(NamedTuple):
    """A part of a run with one kernel.

    Attributes
    ----------
    phase
        ``"warm-up"`` or ``"sampling"``.
    start
        The number of its first step.
    draws
        How many draws it makes of each chain.
    thin
        How many steps they are apart.
    adapt
        Whether the kernel is adapted to these draws at its end.
    """

    phase: str
    start: int
    draws: int
    thin: int
    adapt: bool = False

    @property
    def stop(self) -> int:
        """The number of the step after its last."""
        return self.start + self.draws * self.thin


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
    streaming
        The summary that draws are entered into where they are not kept; the arrays are then empty.
    """

    segment: int
    filled: int
    kernel: Any
    chains: Any
    draws: Any = None
    streaming: Any = None


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
        """The status with more room for the chains, where a chunk ended before its last draw for lack of it."""
        raise NotImplementedError

    def allocate(self, status: Status, draws: int) -> Any:
        """Host arrays for so many draws."""
        axis = self.DRAW_AXIS

        def empty(leaf: Any) -> np.ndarray:
            return np.zeros((*leaf.shape[:axis], leaf.shape[axis + 1], draws, *leaf.shape[axis + 2 :]), leaf.dtype)

        return jax.tree.map(empty, self.shapes_of_chunk(status).draws)

    def shapes_of_chunk(self, status: Status) -> Any:
        """The shapes and types of what a chunk leaves."""
        return type(self).PROGRAM.eval_shape(*self.static(status), **self.arguments(status, 0))  # type: ignore[attr-defined]

    def lower(self, status: Status) -> Any:
        """The program of the next chunk, to be compiled ahead; arrays of the status may be shapes.

        None on several devices, where shapes do not say how the arrays are spread.
        """
        if self.mesh is not None:
            return None
        return type(self).PROGRAM.lower(*self.static(status), **self.arguments(status, 0))  # type: ignore[attr-defined]

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

    def numbers(self, status: Status, length: int) -> dict[str, np.int32]:
        """The step that a chunk of so many draws begins with, their number, and how many steps they are apart."""
        numbers = {"start": self.steps_made(status), "length": length, "thin": self.schedule[status.segment].thin}
        return {name: np.int32(number) for name, number in numbers.items()}

    def make_chunk(self, status: Status, length: int) -> tuple[Status, int]:
        """Make up to so many draws within the current segment, and say how many; at its end, open the next one.

        The old status stays whole, so that an interruption leaves a consistent one.
        """
        segment = self.schedule[status.segment]
        length = same_everywhere(self.mesh, min(length, self.capacity(status), segment.draws - status.filled))
        arguments = place(self.mesh, self.arguments(status, length), by_chain=self.SHARED)
        chunk = type(self).PROGRAM(*self.static(status), **arguments)
        status, made = self.store(status, chunk, length)
        if made < length:
            return self.make_room(status), made
        ended = status.filled == segment.draws and not self.is_last(status)
        return (self.close_segment(status) if ended else status), made

    def pack(self, status: Status) -> tuple[dict[str, Any], dict[str, Any]]:
        """What is saved of a status beside its place: values that JSON has, and named trees of arrays."""
        raise NotImplementedError

    def restore(self, progress: dict[str, Any], arrays: dict[str, np.ndarray]) -> Status:
        """The status that was saved; an error where it does not fit the run."""
        raise NotImplementedError
