"""The bar on the terminal, and how many draws to make between two of its moves."""

import sys
from typing import Self

from tqdm import tqdm

TARGET_SECONDS = 0.25
FASTEST_GROWTH = 8


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
