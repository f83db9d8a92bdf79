"""Ctrl-C, obeyed where nothing that is paid for is lost."""

import signal
import threading
from types import FrameType
from typing import Any, Self

__all__ = ["Interruption"]


class Interruption:
    """While it is entered, the first Ctrl-C is noted and no more; a second one interrupts at once.

    A program that is compiled, or waits for noise from the host, turns an interruption into a failure of its own and
    loses what it was computing. Signals are the main thread's matter: in another one nothing is changed. Nor is it
    where the process ignores interruptions, as one in the background may.
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
