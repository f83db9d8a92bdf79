"""The loop of a run on the host: chunk after chunk, until all draws are made or the user interrupts it."""

import math
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, Self

from tqdm import tqdm

from dpjax._util.threads import one_blas_thread
from dpjax._util.validation import check_count, check_key, fail
from dpjax.base import Key
from dpjax.runtime.checkpoint import PeriodicCheckpoint
from dpjax.runtime.run import Run, Status

__all__ = ["Watch", "check_run", "finish", "is_interrupted"]

TARGET_SECONDS = 0.25
FASTEST_GROWTH = 8


MAX_STEPS, MAX_CHAINS = 2**31, 2**20


class Watch:
    """What may end a run before its last draw; by itself nothing does."""

    def room(self, status: Status) -> float:
        """How many draws may be made before the run is checked again."""
        return math.inf

    def is_enough(self, status: Status) -> bool:
        """Whether the run ends here."""
        return False


def finish(
    run: Run, begin: Callable[[], Status], file: PeriodicCheckpoint | None, show: bool, watch: Watch | None = None
) -> Status:
    """Make chunks until all draws are made, or enough, or until an interruption; the status of the last whole chunk.

    Parameters
    ----------
    begin
        Makes the status before the first step, unless the file holds a later one.
    file
        Where the run is saved from time to time and at its end.
    show
        Whether to show a bar.
    watch
        What may end the run before.
    """
    with nullcontext() if file is None else file.held(), one_blas_thread():
        saved = None if file is None else file.load(run.restore)
        # Statuses are handed on and not held: each copy of the states counts where n is large.
        return make_chunks(run, begin() if saved is None else saved, file, show, watch or Watch())


def make_chunks(run: Run, status: Status, file: PeriodicCheckpoint | None, show: bool, watch: Watch) -> Status:
    """The loop of `finish`."""
    length = 1
    with Progress(run.schedule[-1].stop, run.steps_made(status), show) as bar:
        try:
            while not (run.is_done(status) or watch.is_enough(status)):
                segment, began = run.schedule[status.segment], time.perf_counter()
                status, made = run.make_chunk(status, int(min(length, watch.room(status))))
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


def is_interrupted(name: str, run: Run, status: Status, file: PeriodicCheckpoint | None, stacklevel: int) -> bool:
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
    warnings.warn(text.strip(), stacklevel=stacklevel + 1)
    return True


class Progress:
    """A bar over the steps of a run, on standard error; silent if not wanted or not on a terminal.

    Parameters
    ----------
    steps
        All steps of the run.
    done
        Steps made before, by the run that is continued.
    show
        False for no bar at all.
    """

    def __init__(self, steps: int, done: int, show: bool) -> None:
        # tqdm reads None as: off unless the stream is a terminal.
        self.bar = tqdm(total=steps, initial=done, disable=None if show else True, unit="step", file=sys.stderr)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.bar.close()

    def advance(self, steps: int, phase: str) -> None:
        """Move the bar by some steps of a phase, ``"warm-up"`` or ``"sampling"``."""
        self.bar.set_description(phase, refresh=False)
        self.bar.update(steps)


def next_length(length: int, seconds: float) -> int:
    """How many draws the next chunk makes, after one of `length` took `seconds`.

    It aims at four moves of the bar a second. The first chunk of a program includes its compilation, so the growth is
    bounded rather than the first time believed. Draws do not depend on the lengths.
    """
    ratio = TARGET_SECONDS / max(seconds, 1e-9)
    return max(1, int(length * min(ratio, FASTEST_GROWTH)))


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
    if collect is not None and not callable(collect):
        remedy = "Pass a function of a GibbsState, such as lambda state: state.latent.records."
        fail("collect", repr(collect), "a function or None", remedy, error=TypeError)
    if not isinstance(progress, bool):
        fail("progress", repr(progress), "True or False", "Pass False for no bar.", error=TypeError)
