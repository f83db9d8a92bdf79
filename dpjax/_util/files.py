"""Files that are written whole or not at all."""

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO


def write_whole(path: Path, write: Callable[[BinaryIO], None], mode: int = 0o666) -> None:
    """Put what `write` writes on disk at once: whatever happens, the path holds it or what it held before.

    Once this returns, neither a crash of the process nor of the machine loses it. The file has
    the mode from its first byte on.

    Raises
    ------
    OSError
        If it cannot be written; the path then holds what it held before.
    """
    unfinished = path.with_name(f"{path.name}.{os.getpid()}-{threading.get_ident()}.unfinished")
    try:
        with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
    keep_names(path.parent)


def keep_names(folder: Path) -> None:
    """Put the names in a folder on disk, where the system has folders that can be opened."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
