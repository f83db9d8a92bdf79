"""Atomic writes of files."""

import os
import secrets
import stat
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO


def write_whole(path: Path, write: Callable[[BinaryIO], None], mode: int = 0o666) -> None:
    """Write a file atomically and durably: the path holds either the new content or the old.

    Once this returns, no crash of the process or the machine loses the content. A file that exists keeps its mode, and
    a new one has `mode` from the first byte on, less what the process's umask withholds.

    Raises
    ------
    OSError
        If the file cannot be written; the path then holds its old content.
    """
    unfinished = path.with_name(f"{path.name}.{secrets.token_hex(8)}.unfinished")
    kept = stat.S_IMODE(path.stat().st_mode) if path.exists() else None
    # Nobody else can have put a file or a link there.
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode if kept is None else 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            if kept is not None:
                unfinished.chmod(kept)
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
