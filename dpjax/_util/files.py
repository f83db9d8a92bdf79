"""Files alone, no devices or pipes: atomic writes, and locks, which the system gives back when a process dies."""

import os
import secrets
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path
from typing import BinaryIO

try:
    import fcntl
except ImportError:  # not a POSIX system
    fcntl = None  # type: ignore[assignment]

__all__ = ["Lock", "clear_away", "held", "no_file", "open_regular", "sync_folder", "write_whole"]

SECONDS_BETWEEN_TRIES = 0.002

SPECIAL = {stat.S_IFDIR: "the folder", stat.S_IFIFO: "the pipe", stat.S_IFSOCK: "the socket"}
"""What has a path and is no regular file; all others are devices."""


def no_file(path: Path) -> str | None:
    """What the path leads to if it is no regular file; None if it is one, or leads nowhere.

    A pipe would make its reader wait without end, and a device would be replaced by a file.

    Raises
    ------
    OSError, ValueError
        If that cannot be known, as of a name that no file can have.
    """
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return None
    return None if stat.S_ISREG(mode) else f"{SPECIAL.get(stat.S_IFMT(mode), 'the device')} {str(path)!r}"


def open_regular(path: Path) -> BinaryIO:
    """A regular file, open to be read; anything else is an OSError, and never waited for."""
    refuse_special(path)
    return path.open("rb")


def refuse_special(path: Path) -> None:
    """Raise an OSError if the path leads to something that is no regular file."""
    if special := no_file(path):
        raise OSError(f"{special} is no regular file")


class Lock:
    """A file that is locked, for one holder at a time: threads of one process keep each other out, too."""

    def __init__(self, path: Path, descriptor: int | None) -> None:
        self.path, self.descriptor = path, descriptor

    def is_held(self) -> bool:
        """Whether the name still leads to the file that is locked: another could lock a new one."""
        return self.descriptor is None or leads_to(self.path, self.descriptor)


@contextmanager
def held(path: Path, seconds: float) -> Iterator[Lock]:
    """While the file that has this name is locked; it is created empty if there is none.

    Whoever waited for a file that has lost the name meanwhile waits for the new one. So the holder may replace the
    file, and no second file is needed that could be removed. On systems without POSIX locks there is one, ``.lock``.

    Raises
    ------
    TimeoutError
        If the lock cannot be had in so many seconds.
    OSError
        If there can be no lock.
    """
    refuse_special(path)
    if fcntl is None:
        from filelock import FileLock  # raises a TimeoutError, too

        with FileLock(f"{path}.lock", timeout=seconds):
            yield Lock(path, None)
        return
    lock = acquire(path, time.monotonic() + seconds)
    assert lock.descriptor is not None
    try:
        yield lock
    finally:
        fcntl.flock(lock.descriptor, fcntl.LOCK_UN)  # a fork may have the file open still
        os.close(lock.descriptor)


def acquire(path: Path, deadline: float) -> Lock:
    """The lock on the file that has the name when it is locked."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            if try_lock(descriptor) and leads_to(path, descriptor):
                return Lock(path, descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
        if time.monotonic() >= deadline:
            raise TimeoutError(f"{str(path)!r} is locked")
        time.sleep(SECONDS_BETWEEN_TRIES)


def write_whole(path: Path, write: Callable[[BinaryIO], None], mode: int = 0o666) -> None:
    """Write a file atomically and durably: the path holds either the new content or the old.

    Once this returns, no crash of the process or the machine loses the content. A file that exists keeps its mode, and
    a new one has `mode` from the first byte on, less what the process's umask withholds. What killed processes left
    beside the file is removed.

    Raises
    ------
    OSError
        If the file cannot be written; the path then holds its old content.
    """
    refuse_special(path)
    clear_away(path)
    kept = stat.S_IMODE(path.stat().st_mode) if path.exists() else None
    unfinished, descriptor = open_unfinished(path, mode if kept is None else 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            if kept is not None:
                unfinished.chmod(kept)
            write(file)
            file.flush()
            os.fsync(file.fileno())
            if fcntl is not None:  # while it is locked, nobody takes it for abandoned
                unfinished.replace(path)
        if fcntl is None:
            unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
    sync_folder(path.parent)


def open_unfinished(path: Path, mode: int) -> tuple[Path, int]:
    """A new file beside the path, locked for as long as it is open; nobody else can have put a file or a link there."""
    while True:
        unfinished = path.with_name(f"{path.name}.{secrets.token_hex(8)}.unfinished")
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with suppress(OSError):  # without locks nothing is ever taken for abandoned
            if fcntl is not None and not (try_lock(descriptor) and leads_to(unfinished, descriptor)):
                os.close(descriptor)  # taken for abandoned before it was locked
                continue
        return unfinished, descriptor


def clear_away(path: Path) -> None:
    """Remove the unfinished files of processes that were killed while they wrote."""
    for left in path.parent.glob(f"{escape(path.name)}.*.unfinished"):
        with suppress(OSError):  # it has just been finished, or is somebody else's
            remove_abandoned(left)


def remove_abandoned(left: Path) -> None:
    """Remove a file unless somebody is writing to it, who then has it locked, or open where that keeps it."""
    if fcntl is None:
        left.unlink()
        return
    descriptor = os.open(left, os.O_RDWR)  # network file systems lock no file that is open for reading alone
    try:
        if try_lock(descriptor):
            left.unlink()
    finally:
        os.close(descriptor)


def try_lock(descriptor: int) -> bool:
    """Whether the open file is locked now: its lock was free."""
    assert fcntl is not None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def leads_to(path: Path, descriptor: int) -> bool:
    """Whether the path is a name of the open file."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def sync_folder(folder: Path) -> None:
    """Flush a folder's entries to disk, on systems where a folder can be opened."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
