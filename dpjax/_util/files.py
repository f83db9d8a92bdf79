"""Atomic writes of files."""

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO


def write_whole(path: Path, write: Callable[[BinaryIO], None], mode: int = 0o666) -> None:
    """Write a file atomically and durably: the path holds either the new content or the old.

    Once this returns, no crash of the process or the machine loses the content. The file has its mode from the first
    byte on.

    Raises
    ------
    OSError
        If the file cannot be written; the path then holds its old content.
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
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Flush a folder's entries to disk, on systems where a folder can be opened."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
