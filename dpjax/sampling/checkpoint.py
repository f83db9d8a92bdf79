"""Checkpoints of `sample`: what of a run is saved, and how it is taken up."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dpjax.digest import Digest, open_digest
from dpjax.parameters import Tuning
from dpjax.running.checkpoint import Arrays, PeriodicCheckpoint, fill, read_place
from dpjax.running.fingerprint import plain_values, restore
from dpjax.sampling.run import Run, Status, open_segment


class Checkpoint(PeriodicCheckpoint):
    """The checkpoint file of one run of `sample`; its fingerprint is that of `make_fingerprint`."""

    def pack(self, status: Status) -> tuple[dict[str, Any], dict[str, Any]]:
        """The plan, and the tuning, the chains and the draws."""
        held = jax.tree.map(lambda leaf: leaf[:, : status.filled], status.draws)
        digest = jax.tree.map(np.asarray, status.digest)
        trees = {"tuning": status.tuning, "chains": status.chains, "draws": held, "digest": digest}
        return {"plan": plain_values(status.plan)}, trees


def restore_status(run: Run, tuning: Tuning | None, progress: dict[str, Any], arrays: Arrays) -> Status:
    """The status in a file; whatever does not fit the run is an error. Of the tuning only the shapes are used."""
    segment, filled = read_place(run.schedule, progress)
    status = open_segment(run, segment, restore(run.plan, progress["plan"]), tuning, run.state_shapes)
    made = jax.tree.map(lambda held: held[:, :filled], status.draws)
    for held, saved in zip(jax.tree.leaves(made), jax.tree.leaves(fill("draws", made, arrays)), strict=True):
        held[...] = saved
    parts = {name: fill(name, getattr(status, name), arrays) for name in ("tuning", "chains")}
    status = status._replace(filled=filled, **jax.tree.map(jnp.asarray, parts))
    return status if status.digest is None else status._replace(digest=restore_digest(status.digest, filled, arrays))


def restore_digest(empty: Digest, filled: int, arrays: Arrays) -> Digest:
    """The digest of so many draws in a file; whatever does not fit is an error."""
    num_chains, size = empty.last_means.shape
    shapes = open_digest(num_chains, size, filled)
    saved: Digest = fill("digest", jax.tree.map(np.asarray, shapes), arrays)
    return saved._replace(number=filled, sketch=saved.sketch._replace(number=shapes.sketch.number))
