"""Checkpoint files: how far a run is, on disk whole or not at all, and taken up only by the same run."""

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import partial
from io import BytesIO
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO

import jax
import numpy as np
from jax.sharding import Mesh

from dpjax._util.archives import read_archive, write_archive
from dpjax._util.files import Lock, clear_away, held, open_regular, write_whole
from dpjax._util.validation import check_destination, fail, is_refusal, summarize_error
from dpjax._util.warn import warn_at_the_call
from dpjax.runtime.chunk import Segment
from dpjax.runtime.devices import agree, leads, share_bytes, spans_processes, to_host
from dpjax.runtime.fingerprint import named_leaves

__all__ = ["Arrays", "CheckpointFile", "PeriodicCheckpoint", "check_path", "fill", "read_place"]

Arrays = dict[str, np.ndarray]
Packed = tuple[dict[str, Any], dict[str, Any]]

SECONDS_BETWEEN_SAVES = 15.0


def check_path(path: Any, mesh: Mesh | None = None) -> Path:
    """The path of a checkpoint, or an error if no file can be written; of several processes the first looks."""
    if not leads(mesh):
        return Path(path)
    result = check_destination(
        "checkpoint", path, "Pass the path of a file, such as 'run.npz', in a folder that exists."
    )
    if not (result.exists() or os.access(result.parent, os.W_OK)):
        fail("checkpoint", repr(str(path)), "a file in a folder that can be written to", "Pass another path.")
    return result


class CheckpointFile:
    """The checkpoint file of one run.

    Parameters
    ----------
    path
        The file; it is written by way of a second file beside it, and a third one beside it keeps other runs away.
    fingerprint
        What identifies the run: values that JSON has, under names that a user knows.
    mesh
        The devices of the run. If they are of several processes, these make the same calls. The first of them reads and
        writes the file, and sends the others what it reads.
    """

    REMEDY = "Pass another path, or remove the file to start afresh."
    SECRET: Mapping[str, str] = MappingProxyType({})
    """What messages call those whose values they may not show, by name."""

    def __init__(self, path: Path, fingerprint: dict[str, Any], mesh: Mesh | None = None) -> None:
        self.path = path
        self.fingerprint = fingerprint
        self.mesh = mesh
        self.lock: Lock | None = None

    @property
    def is_shared(self) -> bool:
        """Whether several processes share the run."""
        return spans_processes(self.mesh)

    @contextmanager
    def held(self) -> Iterator[None]:
        """While no other run uses the file, in this process or another.

        Raises
        ------
        RuntimeError
            If another run does, or there can be no lock.
        """
        with ExitStack() as stack:
            if leads(self.mesh):
                self.lock = stack.enter_context(self.locked())
                clear_away(self.path)
            yield

    @contextmanager
    def locked(self) -> Iterator[Lock]:
        """While the lock beside the file is this run's."""
        with ExitStack() as stack:
            try:
                lock = stack.enter_context(held(self.path.with_name(self.path.name + ".lock"), 0.0))
            except TimeoutError:
                given, remedy = "which another run is using", "Wait for it, or pass another path."
                self.refuse_use(given, "a file that is this run's alone", remedy)
            except (OSError, NotImplementedError) as error:
                given, remedy = f"where no lock can be had ({error})", "Copy it to a folder that can be written to."
                self.refuse_use(given, "a file that no other run can use meanwhile", remedy)
            yield lock

    def refuse_use(self, given: str, expected: str, remedy: str) -> None:
        """Raise the error of a file that others may use."""
        fail("checkpoint", f"{str(self.path)!r}, {given}", expected, remedy, error=RuntimeError)

    def write(self, progress: dict[str, Any], arrays: Arrays) -> None:
        """Put arrays on disk with how far they are; whatever happens, the file holds them or what it held before.

        Raises
        ------
        OSError
            If they cannot be written, or the lock is gone: another run may use the file.
        """
        if self.lock is not None and not self.lock.is_held():
            raise OSError(f"{str(self.lock.path)!r} was removed, so that another run may use the file")
        texts = {"fingerprint": self.fingerprint, "progress": progress}
        content = arrays | {name: np.array(json.dumps(text)) for name, text in texts.items()}
        write_whole(self.path, partial(write_archive, content), 0o600)

    def take_up(self, restore: Callable[[dict[str, Any], Arrays], Any]) -> Any:
        """What ``restore(progress, arrays)`` makes of the file, or None if there is no file.

        Whatever does not fit the run is an error in `restore`.

        Raises
        ------
        ValueError
            If the file is no checkpoint, is damaged, or is that of another run; the message lists what differs.
        """
        try:
            with self.open() as file:
                return None if file is None else restore(*self.read(file))
        except Exception as error:  # whatever a damaged file may lead to
            if is_refusal(error):
                raise
            return self.refuse(f"which cannot be read ({summarize_error(error)})")

    def open(self) -> AbstractContextManager[BinaryIO | None]:
        """The file, or None if there is none; one that numpy opens itself would stay open if it is broken."""
        found = open_regular(self.path) if leads(self.mesh) and self.path.exists() else nullcontext()
        if not self.is_shared:
            return found
        with found as file:
            content = share_bytes(self.mesh, None if file is None else file.read())
        return nullcontext() if content is None else BytesIO(content)

    def read(self, file: BinaryIO) -> tuple[dict[str, Any], Arrays]:
        """The progress and the arrays in a file of this run."""
        arrays = read_archive(file)
        if not {"fingerprint", "progress"} <= set(arrays):
            self.refuse("which is no checkpoint")
        fingerprint, progress = (json.loads(str(arrays.pop(name))) for name in ("fingerprint", "progress"))
        self.check_fingerprint(fingerprint)
        return progress, arrays

    def check_fingerprint(self, saved: dict[str, Any]) -> None:
        """Raise unless the saved fingerprint is that of this run."""
        ours, missing = self.fingerprint, "nothing"
        differences = [
            self.SECRET.get(name) or f"{name}: saved {saved.get(name, missing)}, now {ours.get(name, missing)}"
            for name in sorted({*saved, *ours})
            if saved.get(name, missing) != ours.get(name, missing)
        ]
        if differences:
            self.refuse("of a run that differs in " + "; ".join(dict.fromkeys(differences)))

    def refuse(self, why: str) -> Any:
        """Raise the error of a file that cannot be continued."""
        return fail("checkpoint", f"{str(self.path)!r}, {why}", "a checkpoint of this run", self.REMEDY)


class PeriodicCheckpoint(CheckpointFile):
    """The checkpoint file of a run that is saved from time to time, and goes on if it cannot be.

    Parameters
    ----------
    path
        See `CheckpointFile`.
    fingerprint
        See `CheckpointFile`.
    mesh
        See `CheckpointFile`.
    pack
        ``status -> (values, trees)``: what is saved of a status beside its segment and the number of its draws, as
        values that JSON has and as named trees of arrays.
    """

    def __init__(
        self, path: Path, fingerprint: dict[str, Any], mesh: Mesh | None, pack: Callable[[Any], Packed]
    ) -> None:
        super().__init__(path, fingerprint, mesh)
        self.pack = pack
        self.last_save = time.monotonic()
        self.problem: OSError | None = None
        self.saved_at: tuple[int, int] | None = None

    def save(self, status: Any) -> None:
        """Write the status; whatever happens, the file holds either it or the one before."""
        values, trees = self.pack(status)
        named = {name: leaf for root, tree in trees.items() for name, leaf in named_leaves(root, tree).items()}
        arrays = to_host(named)
        if leads(self.mesh):
            self.write({"segment": status.segment, "filled": status.filled, **values}, arrays)

    def load(self, restore: Callable[[dict[str, Any], Arrays], Any]) -> Any:
        """The status in the file by `take_up`, or None if there is no file."""
        status = self.take_up(restore)
        if status is not None:
            self.saved_at = (status.segment, status.filled)
        return status

    def try_to_save(self, status: Any) -> None:
        """Write the status; a disk that is full or cannot be written to costs a warning and not the draws."""
        try:
            self.save(status)
            self.saved_at, self.problem = (status.segment, status.filled), None
        except OSError as error:
            if self.problem is None:
                text = f"The run could not be saved in {str(self.path)!r}: {error}. Its draws are returned all the same"
                warn_at_the_call(f"{text}; the file holds what was saved before, if anything.")
            self.problem = error
        self.last_save = time.monotonic()

    def save_sometimes(self, status: Any) -> None:
        """Write the status if the last time is some seconds ago."""
        if agree(self.mesh, time.monotonic() - self.last_save >= SECONDS_BETWEEN_SAVES):
            self.try_to_save(status)

    def save_last(self, status: Any) -> None:
        """Write the status at the end of the run, unless the file holds it."""
        if agree(self.mesh, self.saved_at == (status.segment, status.filled)):
            return
        try:
            self.try_to_save(status)
        except KeyboardInterrupt:  # one more, while the run was being saved: the draws come first
            warn_at_the_call(f"The end of the run was not saved in {str(self.path)!r}.")

    @property
    def remedy(self) -> str:
        """How to continue the run; nothing if it was not saved."""
        return "" if self.problem else f"Call again with the same arguments to continue from {str(self.path)!r}."


def read_place(schedule: tuple[Segment, ...], progress: dict[str, Any]) -> tuple[int, int]:
    """The segment and how many of its draws are made; an error if the run has no such place."""
    segment, filled = progress["segment"], progress["filled"]
    if segment not in range(len(schedule)) or filled not in range(schedule[segment].draws + 1):
        raise ValueError(f"{filled} draws of segment {segment}")
    return segment, filled


def fill(root: str, tree: Any, arrays: Arrays) -> Any:
    """The tree with its saved leaves, of its types and shapes; whatever does not fit is an error."""
    leaves = named_leaves(root, tree)
    for name, leaf in leaves.items():
        if (arrays[name].dtype, arrays[name].shape) != (leaf.dtype, leaf.shape):
            raise ValueError(f"{name} of {arrays[name].dtype}{list(arrays[name].shape)}")
    return jax.tree.unflatten(jax.tree.structure(tree), [arrays[name] for name in leaves])
