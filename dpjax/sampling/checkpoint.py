"""Checkpoints: a run's status on disk, written whole or not at all, and taken up only by the same run."""

import json
import os
import time
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import jax
import jax.numpy as jnp
import numpy as np

from dpjax.parameters import Tuning
from dpjax.sampling.fingerprint import Plain, named_leaves, plain_values, restore
from dpjax.sampling.run import Run, Status, open_segment
from dpjax.validation import fail

SECONDS_BETWEEN_SAVES = 15.0


class Checkpoint:
    """The checkpoint file of one run.

    Parameters
    ----------
    path
        The file; it is written by way of a second file beside it.
    fingerprint
        What identifies the run; see `make_fingerprint`.
    """

    def __init__(self, path: Path, fingerprint: dict[str, Plain]) -> None:
        self.path = path
        self.fingerprint = fingerprint
        self.last_save = time.monotonic()

    def save(self, status: Status) -> None:
        """Write the status; whatever happens, the file holds either it or the one before."""
        held = jax.tree.map(lambda leaf: leaf[:, : status.filled], status.draws)
        trees = {"tuning": status.tuning, "chains": status.chains, "draws": held}
        arrays = {name: np.asarray(leaf) for tree in trees for name, leaf in named_leaves(tree, trees[tree]).items()}
        progress = {"segment": status.segment, "filled": status.filled, "plan": plain_values(status.plan)}
        texts = {"fingerprint": json.dumps(self.fingerprint), "progress": json.dumps(progress)}
        arrays |= {name: np.array(text) for name, text in texts.items()}
        unfinished = self.path.with_name(self.path.name + ".unfinished")
        try:
            with unfinished.open("wb") as file:
                np.savez(file, allow_pickle=False, **arrays)
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(self.path)
        finally:
            unfinished.unlink(missing_ok=True)
        self.last_save = time.monotonic()

    def save_sometimes(self, status: Status) -> None:
        """Write the status if the last time is some seconds ago."""
        if time.monotonic() - self.last_save >= SECONDS_BETWEEN_SAVES:
            self.save(status)

    def load(self, run: Run, tuning: Tuning) -> Status | None:
        """The status in the file, or None if there is no file; of the tuning only the shapes are used.

        Raises
        ------
        ValueError
            If the file is no checkpoint, or is that of another run; the message lists what differs.
        """
        if not self.path.exists():
            return None
        arrays = self.read()
        self.check_fingerprint(json.loads(str(arrays["fingerprint"])))
        progress = json.loads(str(arrays["progress"]))
        plan = restore(run.plan, progress["plan"])
        status = open_segment(run, progress["segment"], plan, tuning, run.state_shapes)
        for name, held in named_leaves("draws", status.draws).items():
            held[:, : progress["filled"]] = arrays[name]
        tuning, chains = (fill(name, getattr(status, name), arrays) for name in ("tuning", "chains"))
        return status._replace(filled=progress["filled"], tuning=tuning, chains=chains)

    def read(self) -> dict[str, np.ndarray]:
        """All arrays of the file."""
        try:
            # A file that numpy opens itself stays open if it is broken.
            with self.path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
                arrays = dict(archive)
        except (OSError, ValueError, EOFError, BadZipFile) as error:
            self.refuse(f"{str(self.path)!r}, which cannot be read ({error})")
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


def fill(name: str, tree: Any, arrays: dict[str, np.ndarray]) -> Any:
    """The tree with its leaves replaced by the saved ones."""
    leaves = [jnp.asarray(arrays[leaf]) for leaf in named_leaves(name, tree)]
    return jax.tree.unflatten(jax.tree.structure(tree), leaves)
