"""The parts of a run, and how far it is in them."""

from typing import NamedTuple, Protocol

import numpy as np

__all__ = ["Segment", "Status", "chunk_numbers", "is_done", "steps_made"]


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


class Status(Protocol):
    """How far a run has come, among what else it carries."""

    @property
    def segment(self) -> int:
        """The number of the current segment."""

    @property
    def filled(self) -> int:
        """How many draws of it are made."""


def is_done(schedule: tuple[Segment, ...], status: Status) -> bool:
    """Whether all draws of a run are made."""
    return status.segment == len(schedule) - 1 and status.filled == schedule[-1].draws


def steps_made(schedule: tuple[Segment, ...], status: Status) -> int:
    """The steps of a run that are made."""
    segment = schedule[status.segment]
    return segment.start + status.filled * segment.thin


def chunk_numbers(schedule: tuple[Segment, ...], status: Status, length: int) -> dict[str, np.int32]:
    """The step that a chunk of so many draws begins with, their number, and how many steps they are apart."""
    numbers = {"start": steps_made(schedule, status), "length": length, "thin": schedule[status.segment].thin}
    return {name: np.int32(number) for name, number in numbers.items()}
