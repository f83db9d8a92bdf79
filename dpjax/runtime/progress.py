"""How far a run is: a bar on a terminal or in a notebook, or lines on standard error if there is neither."""

import sys
from typing import Any, Literal, Self, TextIO, cast

from tqdm import tqdm

from dpjax._util.validation import fail

__all__ = ["Progress", "ShowProgress", "check_progress"]

ShowProgress = bool | Literal["lines"]
"""True for a bar on a terminal or in a notebook, False for nothing, ``"lines"`` for lines anywhere."""

COMPILING = "compiling the sampler"
"""What a run is at before its first step, for up to minutes."""

LINE_SECONDS = 10.0
"""Fewest seconds between two lines."""

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


def choose_bar() -> Any:
    """The bar of notebooks, where this is one that has widgets, or that of terminals."""
    if not is_notebook():
        return tqdm
    from tqdm.auto import tqdm as of_notebooks

    return of_notebooks


class Progress:
    """How far a run is, with an estimate of the time left; before its first step, that its program is compiled.

    Parameters
    ----------
    steps
        All steps of the run.
    done
        Steps made before, by the run that is continued.
    show
        What is shown.
    unit
        What a step is called.
    """

    def __init__(self, steps: int, done: int, show: ShowProgress, unit: str = "step") -> None:
        options: dict[str, Any] = {"total": steps, "initial": done, "unit": unit, "desc": COMPILING}
        if show == "lines":
            stream = cast(TextIO, Lines(sys.stderr))
            self.bar = tqdm(**options, file=stream, mininterval=LINE_SECONDS, bar_format=LINE, miniters=1)
        else:
            # tqdm reads None as: off unless the stream is a terminal.
            shown = False if is_notebook() else None
            self.bar = choose_bar()(**options, file=sys.stderr, disable=shown if show else True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.bar.close()

    def advance(self, steps: int, phase: str) -> None:
        """Move on by some steps of a phase, such as ``"warm-up"``."""
        self.bar.set_description(phase, refresh=False)
        self.bar.update(steps)


def check_progress(progress: Any) -> None:
    """Raise unless it is a choice of what is shown."""
    if not (isinstance(progress, bool) or progress == "lines"):
        remedy = "Pass False for nothing, 'lines' for lines where there is no terminal."
        fail("progress", repr(progress), "True, False or 'lines'", remedy, error=TypeError)
