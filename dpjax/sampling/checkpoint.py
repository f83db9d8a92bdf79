"""Checkpoints of `sample`: what of a run is saved, and how it is taken up."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dpjax.parameters import Tuning
from dpjax.running.checkpoint import Arrays, PeriodicCheckpoint, fill
from dpjax.running.fingerprint import named_leaves, plain_values, restore
from dpjax.sampling.run import Run, Status, open_segment


class Checkpoint(PeriodicCheckpoint):
    """The checkpoint file of one run of `sample`; its fingerprint is that of `make_fingerprint`."""

    def save(self, status: Status) -> None:
        """Write the status; whatever happens, the file holds either it or the one before."""
        held = jax.tree.map(lambda leaf: leaf[:, : status.filled], status.draws)
        trees = {"tuning": status.tuning, "chains": status.chains, "draws": held}
        arrays = {name: np.asarray(leaf) for tree in trees for name, leaf in named_leaves(tree, trees[tree]).items()}
        self.write({"segment": status.segment, "filled": status.filled, "plan": plain_values(status.plan)}, arrays)

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


def restore_status(run: Run, tuning: Tuning, progress: dict[str, Any], arrays: Arrays) -> Status:
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
