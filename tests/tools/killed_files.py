"""Deaths of a process at any of its calls that change files, told without a process: nothing is tidied up after one."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

from dpjax._util import files

CALLS = ("open", "fsync")


class Death(BaseException):
    """What no program handles, as if its process had ended."""


class Clock:
    """Counts calls that change files, and dies before the one of a given number."""

    def __init__(self, at: int) -> None:
        self.at, self.count = at, 0

    def tick(self) -> None:
        """One further call; none is made after death, except what the system does: files are closed and locks free."""
        self.count += 1
        if self.count >= self.at:
            raise Death

    def before(self, function: Any) -> Any:
        """The function, before which the clock ticks."""

        def ticking(*arguments: Any, **options: Any) -> Any:
            self.tick()
            return function(*arguments, **options)

        return ticking


@contextmanager
def dying(at: int) -> Iterator[Clock]:
    """While the call of this number ends all."""
    clock = Clock(at)
    ticking = {name: clock.before(getattr(os, name)) for name in CALLS}
    with (
        mock.patch.object(files, "os", SimpleNamespace(**vars(os) | ticking)),
        mock.patch.object(Path, "replace", clock.before(Path.replace)),
        mock.patch.object(Path, "unlink", clock.before(Path.unlink)),
    ):
        yield clock


def left_behind(folder: Path) -> list[str]:
    """Files that were never finished."""
    return [path.name for path in folder.iterdir() if path.name.endswith(".unfinished")]
