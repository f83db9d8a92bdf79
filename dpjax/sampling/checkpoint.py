"""Checkpoints of `sample`: when a run is saved, and what of it."""

import time
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dpjax.parameters import Tuning
from dpjax.running.checkpoint import CheckpointFile
from dpjax.sampling.fingerprint import Plain, named_leaves, plain_values, restore
from dpjax.sampling.run import Run, Status, open_segment

SECONDS_BETWEEN_SAVES = 15.0


class Checkpoint(CheckpointFile):
    """The checkpoint file of one run of `sample`; its fingerprint is that of `make_fingerprint`."""

    def __init__(self, path: Path, fingerprint: dict[str, Plain]) -> None:
        super().__init__(path, fingerprint)
        self.last_save = time.monotonic()
        self.problem: OSError | None = None
        self.saved_at: tuple[int, int] | None = None

    def save(self, status: Status) -> None:
        """Write the status; whatever happens, the file holds either it or the one before."""
        held = jax.tree.map(lambda leaf: leaf[:, : status.filled], status.draws)
        trees = {"tuning": status.tuning, "chains": status.chains, "draws": held}
        arrays = {name: np.asarray(leaf) for tree in trees for name, leaf in named_leaves(tree, trees[tree]).items()}
        self.write({"segment": status.segment, "filled": status.filled, "plan": plain_values(status.plan)}, arrays)

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
        status: Status | None = self.take_up(partial(restore_status, run, tuning))
        if status is not None:
            self.saved_at = (status.segment, status.filled)
        return status


def restore_status(run: Run, tuning: Tuning, progress: dict[str, Any], arrays: dict[str, np.ndarray]) -> Status:
    """The status in a file; whatever does not fit the run is an error."""
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
