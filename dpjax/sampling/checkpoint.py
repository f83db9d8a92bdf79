"""Checkpoints: a run's status on disk, written whole or not at all, and taken up only by the same run."""

import glob
import json
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from filelock import FileLock, Timeout

from dpjax.files import write_whole
from dpjax.parameters import Tuning
from dpjax.sampling.fingerprint import Plain, named_leaves, plain_values, restore
from dpjax.sampling.run import Run, Status, open_segment
from dpjax.validation import fail, is_refusal, summarize_error

SECONDS_BETWEEN_SAVES = 15.0


class Checkpoint:
    """The checkpoint file of one run.

    Parameters
    ----------
    path
        The file; it is written by way of a second file beside it, and a third one beside it keeps other runs away.
    fingerprint
        What identifies the run; see `make_fingerprint`.
    """

    def __init__(self, path: Path, fingerprint: dict[str, Plain]) -> None:
        self.path = path
        self.fingerprint = fingerprint
        self.last_save = time.monotonic()
        self.problem: OSError | None = None
        self.saved_at: tuple[int, int] | None = None

    @contextmanager
    def held(self) -> Iterator[None]:
        """While no other run uses the file, in this process or another.

        Raises
        ------
        RuntimeError
            If another run does.
        """
        lock = FileLock(self.path.with_name(self.path.name + ".lock"), timeout=0)
        try:
            lock.acquire()
            for left in self.path.parent.glob(glob.escape(self.path.name) + ".*.unfinished"):
                left.unlink(missing_ok=True)  # by a run that was killed while it saved
        except Timeout:
            given, remedy = f"{str(self.path)!r}, which another run is using", "Wait for it, or pass another path."
            fail("checkpoint", given, "a file that is this run's alone", remedy, error=RuntimeError)
        except (OSError, NotImplementedError):
            pass  # there is no lock where nothing can be written; the first save will say so
        try:
            yield
        finally:
            lock.release()

    def save(self, status: Status) -> None:
        """Write the status; whatever happens, the file holds either it or the one before."""
        held = jax.tree.map(lambda leaf: leaf[:, : status.filled], status.draws)
        trees = {"tuning": status.tuning, "chains": status.chains, "draws": held}
        arrays = {name: np.asarray(leaf) for tree in trees for name, leaf in named_leaves(tree, trees[tree]).items()}
        progress = {"segment": status.segment, "filled": status.filled, "plan": plain_values(status.plan)}
        texts = {"fingerprint": json.dumps(self.fingerprint), "progress": json.dumps(progress)}
        arrays |= {name: np.array(text) for name, text in texts.items()}
        write_whole(self.path, lambda file: np.savez(file, allow_pickle=False, **arrays))

    def try_to_save(self, status: Status) -> None:
        """Write the status; a disk that is full or cannot be written to costs a warning and not the draws."""
        try:
            self.save(status)
            self.saved_at, self.problem = (status.segment, status.filled), None
        except OSError as error:
            if self.problem is None:
                text = f"The run could not be saved in {str(self.path)!r}: {error}. Its draws are returned all the same"
                warnings.warn(f"{text}; the file holds what was saved before, if anything.", stacklevel=2)
            self.problem = error
        self.last_save = time.monotonic()

    def save_sometimes(self, status: Status) -> None:
        """Write the status if the last time is some seconds ago."""
        if time.monotonic() - self.last_save >= SECONDS_BETWEEN_SAVES:
            self.try_to_save(status)

    def load(self, run: Run, tuning: Tuning) -> Status | None:
        """The status in the file, or None if there is no file; of the tuning only the shapes are used.

        Raises
        ------
        ValueError
            If the file is no checkpoint, is damaged, or is that of another run; the message lists what differs.
        """
        if not self.path.exists():
            return None
        try:
            arrays = self.read()
            self.check_fingerprint(json.loads(str(arrays["fingerprint"])))
            status = restore_status(run, tuning, arrays)
        except Exception as error:  # whatever a damaged file may lead to
            if is_refusal(error):
                raise
            self.refuse(f"{str(self.path)!r}, which cannot be read ({summarize_error(error)})")
        self.saved_at = (status.segment, status.filled)
        return status

    def read(self) -> dict[str, np.ndarray]:
        """All arrays of the file."""
        # A file that numpy opens itself stays open if it is broken.
        with self.path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = dict(archive)
        if not {"fingerprint", "progress"} <= set(arrays):
            self.refuse(f"{str(self.path)!r}, which is no checkpoint")
        return arrays

    def check_fingerprint(self, saved: dict[str, Plain]) -> None:
        """Raise unless the saved fingerprint is that of this run."""
        names = sorted(set(saved) | set(self.fingerprint))
        ours, missing = self.fingerprint, "nothing"
        differences = [
            f"{name}: saved {saved.get(name, missing)}, now {ours.get(name, missing)}"
            for name in names
            if saved.get(name, missing) != ours.get(name, missing)
        ]
        if differences:
            self.refuse(f"{str(self.path)!r}, of a run that differs in " + "; ".join(differences))

    def refuse(self, given: str) -> None:
        """Raise the error of a file that cannot be continued."""
        fail("checkpoint", given, "a checkpoint of this run", "Pass another path, or remove the file to start afresh.")


def restore_status(run: Run, tuning: Tuning, arrays: dict[str, np.ndarray]) -> Status:
    """The status in the arrays of a file; whatever does not fit the run is an error."""
    progress = json.loads(str(arrays["progress"]))
    segment, filled = progress["segment"], progress["filled"]
    if segment not in range(len(run.schedule)) or filled not in range(run.schedule[segment].draws + 1):
        raise ValueError(f"{filled} draws of segment {segment}")
    status = open_segment(run, segment, restore(run.plan, progress["plan"]), tuning, run.state_shapes)
    made = jax.tree.map(lambda held: held[:, :filled], status.draws)
    for held, saved in zip(jax.tree.leaves(made), fill("draws", made, arrays), strict=True):
        held[...] = saved
    parts = {name: getattr(status, name) for name in ("tuning", "chains")}
    for name, tree in parts.items():
        leaves = map(jnp.asarray, fill(name, tree, arrays))
        parts[name] = jax.tree.unflatten(jax.tree.structure(tree), leaves)
    return status._replace(filled=filled, **parts)


def fill(root: str, tree: Any, arrays: dict[str, np.ndarray]) -> list[np.ndarray]:
    """The saved leaves of a tree, in its order, of its types and shapes."""
    leaves = named_leaves(root, tree)
    for name, leaf in leaves.items():
        if (arrays[name].dtype, arrays[name].shape) != (leaf.dtype, leaf.shape):
            raise ValueError(f"{name} of {arrays[name].dtype}{list(arrays[name].shape)}")
    return [arrays[name] for name in leaves]
