"""Checkpoints of runs of pairs: what of a run is saved, how it is taken up, and by which runs."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dpjax.base import Key
from dpjax.coupling.lanes import Course
from dpjax.coupling.pool import LONGEST, Pool, Status, new_status
from dpjax.running.checkpoint import Arrays, PeriodicCheckpoint, fill
from dpjax.running.devices import num_devices
from dpjax.running.fingerprint import Plain, identify_key, identify_parts

__all__ = ["Checkpoint", "make_fingerprint", "restore_status"]


class Checkpoint(PeriodicCheckpoint):
    """The checkpoint file of one run of pairs; its fingerprint is that of `make_fingerprint`."""

    def pack(self, status: Status) -> tuple[dict[str, Any], dict[str, Any]]:
        """The next program's steps and pair, and the lanes, their owners and the results."""
        arrays = {name: getattr(status, name) for name in ("owners", "lanes", "ended", "results")}
        return {"steps": status.steps, "waiting": status.waiting}, arrays


def restore_status(pool: Pool, num_pairs: int, size: int, progress: dict[str, Any], arrays: Arrays) -> Status:
    """The status in a file; whatever does not fit the run is an error."""
    filled, steps, waiting = (progress[name] for name in ("filled", "steps", "waiting"))
    num_lanes = len(arrays["owners"])
    possible = filled >= 0 and steps in range(1, LONGEST + 1) and waiting in range(size, num_pairs + 1)
    if not possible or num_lanes not in range(1, size + 1) or num_lanes % num_devices(pool.mesh):
        raise ValueError(f"{num_lanes} lanes, {progress}")
    owners = np.arange(num_lanes)
    empty = new_status(pool, num_pairs, waiting, owners, jax.eval_shape(pool.start, owners))
    held = {name: fill(name, getattr(empty, name), arrays) for name in ("owners", "lanes", "ended", "results")}
    check_owners(held["owners"], held["ended"], waiting)
    return empty._replace(filled=filled, steps=steps, **(held | {"lanes": jax.tree.map(jnp.asarray, held["lanes"])}))


def check_owners(owners: np.ndarray, ended: np.ndarray, waiting: int) -> None:
    """Raise unless every pair that does not wait is either in one lane or at its end."""
    begun = np.sort(np.concatenate([owners[owners >= 0], np.flatnonzero(ended)]))
    if not np.array_equal(begun, np.arange(waiting)):
        raise ValueError("pairs that are lost or counted twice")


def make_fingerprint(key: Key, course: Course, num_pairs: int, size: int, devices: int) -> dict[str, Plain]:
    """All that decides a run and how its file is laid out, under names that a user knows."""
    numbers = {name: getattr(course, name) for name in ("lag", "k", "m", "max_steps")}
    kernel = {f"kernel.{name}": part for name, part in course.kernel._asdict().items()}
    return {
        **identify_key(key),
        **numbers,
        "num_pairs": num_pairs,
        "pairs at once": size,
        "devices": devices,
        **identify_parts({**kernel, "function": course.function}),
    }
