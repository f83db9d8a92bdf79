"""How far a run is: a bar on a terminal or in a notebook, or lines on standard error if there is neither.

From the call to the first step, what is shown is a phase, how many programs are compiled, and the time since the call.
A thread of its own renews it, as the main thread is busy with tracing and compilation.
"""

import shutil
import sys
import time
import warnings
from contextvars import ContextVar, Token
from functools import cache
from threading import Event, Thread
from typing import Any, Literal, Self, TextIO, cast

import jax
from tqdm import tqdm

from dpjax._util.validation import describe, fail

__all__ = ["PREPARING", "Progress", "ShowProgress", "announce", "check_progress"]

ShowProgress = bool | Literal["lines"]
"""True for a bar on a terminal or in a notebook, False for nothing, ``"lines"`` for lines anywhere."""

READING = "reading model and release"
"""What every run is at first."""

PREPARING = "preparing the sampler"
"""What a run is at before its first step, for up to minutes: its program is traced and compiled."""

TICK_SECONDS = 0.5
"""Seconds after which the time that is shown on a terminal is renewed."""

LINE_SECONDS = 10.0
"""Fewest seconds between two lines."""

USUAL_WIDTH = 80
"""Columns of a terminal that does not say how many it has."""

WAITING = "{desc}{elapsed}"
"""What is shown before the first step."""

LINE = "{desc}{n_fmt} of {total_fmt} ({percentage:.0f} %) after {elapsed}, about {remaining} to go"


class Lines:
    """A stream on which each state of a bar is a line of its own."""

    def __init__(self, stream: TextIO) -> None:
        self.stream, self.last = stream, ""

    def write(self, text: str) -> None:
        """Write what is not the last line again; bars go back and blank their line in between."""
        line = text.strip("\r\n ")
        if line and line != self.last:
            self.stream.write(f"{line}\n")
            self.last = line

    def flush(self) -> None:
        """Flush the stream."""
        self.stream.flush()


def is_notebook() -> bool:
    """Whether this program is a cell of a Jupyter notebook."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return "IPKernelApp" in getattr(shell, "config", ())


class Timed:
    """A bar that says how long is to go once it has timed a step: the mean since the call has compilation in it."""

    @property
    def format_dict(self) -> dict[str, Any]:
        """What is shown, with a rate of 0, which tqdm shows as "?", where it knows none and would take that mean."""
        found: dict[str, Any] = super().format_dict  # type: ignore[misc]
        is_timed = found["rate"] is not None or found["n"] == found["total"]
        return found if is_timed else found | {"rate": 0.0}


class TerminalBar(Timed, tqdm):
    """The bar of terminals, and of lines."""


def choose_bar() -> Any:
    """The bar of notebooks, where this is one that has widgets, or that of terminals."""
    if not is_notebook():
        return TerminalBar
    from tqdm.auto import tqdm as of_notebooks

    return type("NotebookBar", (Timed, of_notebooks), {})


class Compilations:
    """How many programs this process has lowered and compiled since it counts them, by JAX's own events."""

    def __init__(self) -> None:
        self.lowered = self.compiled = 0
        jax.monitoring.register_event_duration_secs_listener(self.count)

    def count(self, event: str, duration_secs: float, **kwargs: str | int) -> None:
        """Count an event of JAX."""
        self.lowered += event.endswith("/jaxpr_to_mlir_module_duration")
        self.compiled += event.endswith("/backend_compile_duration")


@cache
def count_compilations() -> Compilations:
    """The counts, which begin with the first run that is shown."""
    return Compilations()


CURRENT: ContextVar["Progress | None"] = ContextVar("CURRENT", default=None)
"""The innermost run that is under way in this thread."""


def announce(phase: str) -> None:
    """Say what the innermost run of this thread is at, such as ``"looking for starts"``."""
    bar = CURRENT.get()
    if bar is not None:
        bar.say(phase)


class Progress:
    """How far a run is, with an estimate of the time left; before its first step, what it is at and for how long.

    Parameters
    ----------
    show
        What is shown.
    unit
        What a step is called.
    phase
        What the run is at first.
    """

    def __init__(self, show: ShowProgress, unit: str = "step", phase: str = READING) -> None:
        check_progress(show)
        options: dict[str, Any] = {"unit": unit, "desc": f"{phase}: ", "bar_format": WAITING, "file": sys.stderr}
        self.steps_format, self.seconds = None, TICK_SECONDS
        if show == "lines":
            self.steps_format, self.seconds = LINE, LINE_SECONDS
            options |= {"file": cast(TextIO, Lines(sys.stderr)), "mininterval": LINE_SECONDS, "miniters": 1}
            self.bar = TerminalBar(**options)
        else:
            # tqdm reads None as: off unless the stream is a terminal.
            shown = False if is_notebook() else None
            self.bar = choose_bar()(**options, disable=shown if show else True)
        width = getattr(self.bar, "ncols", None)
        if isinstance(width, int) and width < 1:  # the terminal reports none, and no height either
            self.bar.ncols, self.bar.nrows = USUAL_WIDTH, None
        self.phase, self.shown, self.ended = phase, not self.bar.disable, Event()
        if self.shown:
            self.programs = count_compilations()
            self.lowered, self.compiled = self.programs.lowered, self.programs.compiled

    def __enter__(self) -> Self:
        self.token: Token[Progress | None] = CURRENT.set(self)
        if self.is_renewed:
            self.warn, warnings.showwarning = warnings.showwarning, self.warn_above
            self.thread = Thread(target=self.renew, daemon=True)
            self.thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        CURRENT.reset(self.token)
        if self.is_renewed:
            self.ended.set()
            self.thread.join()
            warnings.showwarning = self.warn
        if self.shown:
            # Of a call that took no step nothing stays.
            self.bar.leave = self.bar.bar_format != WAITING
        self.bar.close()

    @property
    def is_widget(self) -> bool:
        """Whether the bar is a widget of a notebook."""
        return hasattr(self.bar, "container")

    @property
    def is_renewed(self) -> bool:
        """Whether the time is renewed: not where a notebook without widgets would keep each state in its output."""
        return self.shown and (self.is_widget or not is_notebook())

    def renew(self) -> None:
        """Renew what is shown until the run ends."""
        while not self.ended.wait(self.seconds):
            try:
                self.draw()
            except (OSError, ValueError):  # the terminal is closed
                return

    def draw(self) -> None:
        """Show the phase, and which program is compiled if one is."""
        compiled = self.programs.compiled - self.compiled
        is_compiling = self.programs.lowered - self.lowered > compiled
        text = f"{self.phase}, compiling program {compiled + 1}" if is_compiling else self.phase
        self.bar.set_description(text[: max(shutil.get_terminal_size().columns - 12, 10)])

    def warn_above(self, *arguments: Any, **keywords: Any) -> None:
        """Show a warning on lines of its own."""
        with tqdm.external_write_mode(file=sys.stderr):
            self.warn(*arguments, **keywords)

    def say(self, phase: str) -> None:
        """Say what the run is at."""
        self.phase = phase
        if self.shown:
            self.draw()

    def expect(self, steps: int, done: int = 0) -> None:
        """Say how many steps there are in all, and how many were made before, by the run that is continued."""
        if self.shown:
            bar, began = self.bar, self.bar.start_t
            if self.is_widget:
                bar.reset(steps)
            bar.total, bar.n, bar.initial, bar.last_print_n = steps, done, done, done
            bar.start_t, bar.bar_format = began, WAITING

    def advance(self, steps: int, phase: str) -> None:
        """Move on by some steps of a phase, such as ``"warm-up"``."""
        is_new, self.phase = phase != self.phase, phase
        if not self.shown:
            return
        bar = self.bar
        bar.set_description(phase, refresh=False)
        if bar.bar_format == WAITING:
            # The first step comes after the compilation, whose time says nothing about those to come.
            bar.bar_format, bar.n, bar.last_print_t = self.steps_format, bar.n + steps, time.time()
            bar.last_print_n = bar.n
        else:
            bar.update(steps)
        if is_new:
            bar.refresh()


def check_progress(progress: Any) -> None:
    """Raise unless it is a choice of what is shown."""
    if not (isinstance(progress, bool) or (isinstance(progress, str) and progress == "lines")):
        remedy = "Pass False for nothing, 'lines' for lines where there is no terminal."
        fail("progress", describe(progress), "True, False or 'lines'", remedy, error=TypeError)
