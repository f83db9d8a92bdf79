"""The loop of a run on the host: chunk after chunk, until all draws are made or the user interrupts it."""

import math
import time
import warnings
from collections.abc import Callable
from typing import TypeVar

from dpjax.running.checkpoint import PeriodicCheckpoint
from dpjax.running.progress import Progress, next_length
from dpjax.running.schedule import Segment, Status, is_done, steps_made

__all__ = ["Watch", "finish", "is_done", "is_interrupted"]

Reached = TypeVar("Reached", bound=Status)


class Watch:
    """What may end a run before its last draw; by itself nothing does."""

    def room(self, status: Status) -> float:
        """How many draws may be made before the run is looked at again."""
        return math.inf

    def is_enough(self, status: Status) -> bool:
        """Whether the run ends here."""
        return False


def finish(
    schedule: tuple[Segment, ...],
    status: Reached,
    make_chunk: Callable[[Reached, int], tuple[Reached, int]],
    file: PeriodicCheckpoint | None,
    show: bool,
    watch: Watch | None = None,
) -> Reached:
    """Make chunks until all draws are made, or enough, or until an interruption; the status of the last whole chunk.

    Parameters
    ----------
    make_chunk
        ``(status, length) -> (status, made)``: makes up to so many draws, and leaves the old status whole.
    file
        Where the run is saved from time to time and at its end.
    show
        Whether to show a bar.
    watch
        What may end the run before.
    """
    length, watch = 1, watch or Watch()
    with Progress(schedule[-1].stop, steps_made(schedule, status), show) as bar:
        try:
            while not (is_done(schedule, status) or watch.is_enough(status)):
                segment, began = schedule[status.segment], time.perf_counter()
                status, made = make_chunk(status, int(min(length, watch.room(status))))
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


def is_interrupted(
    name: str, schedule: tuple[Segment, ...], status: Status, file: PeriodicCheckpoint | None, stacklevel: int
) -> bool:
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
    if status.segment < len(schedule) - 1 or status.filled == 0:
        saved = remedy or "Nothing was drawn; pass `checkpoint`, in a folder with room, to continue interrupted runs."
        phase = schedule[status.segment].phase
        raise KeyboardInterrupt(f"{name} was interrupted in {phase}, before the first draw. {saved}")
    if is_done(schedule, status):
        return False
    text = f"{name} was interrupted after {status.filled} of {schedule[-1].draws} draws. {remedy}"
    warnings.warn(text.strip(), stacklevel=stacklevel + 1)
    return True
