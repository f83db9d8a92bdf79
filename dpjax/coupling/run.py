"""Runs of pairs, from their starts or a checkpoint until all pairs have ended."""

from contextlib import nullcontext
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.threads import one_blas_thread
from dpjax.base import Key
from dpjax.coupling.pool import LONGEST, Lane, PairSettings, Pool, PoolStatus, new_status, open_pool, run_program
from dpjax.runtime.checkpoint import Arrays, PeriodicCheckpoint, check_path, fill
from dpjax.runtime.devices import Devices, num_devices, share_evenly
from dpjax.runtime.fingerprint import Plain, identify_key, identify_parts
from dpjax.runtime.progress import PREPARING, Progress, ShowProgress

__all__ = ["run_pairs"]


def run_pairs(
    key: Key,
    settings: PairSettings,
    num_pairs: int,
    batch_size: int,
    devices: Devices,
    checkpoint: Any,
    progress: ShowProgress,
) -> Lane:
    """The final lanes of all pairs [pair], without the chains.

    Raises
    ------
    TypeError, ValueError
        If there are no such devices, or the checkpoint belongs to another run.
    RuntimeError
        If another run is using the checkpoint.
    KeyboardInterrupt
        If the run is interrupted. Nothing is returned: the pairs that have ended so far are those that meet early.
    """
    mesh, size = share_evenly(devices, min(batch_size, num_pairs), "pairs at once")
    path = None if checkpoint is None else check_path(checkpoint, mesh)
    pool, file = Pool(key, settings, mesh), None
    if path is not None:
        fingerprint = make_fingerprint(key, settings, num_pairs, size, num_devices(mesh))
        file = PeriodicCheckpoint(path, fingerprint, mesh, pack)
    held = nullcontext() if file is None else file.held()
    with Progress(progress, "pair", PREPARING) as bar, held, one_blas_thread():
        saved = None if file is None else file.load(partial(restore_status, pool, num_pairs, size))
        status = open_pool(pool, num_pairs, size) if saved is None else saved
        bar.expect(num_pairs, int(np.sum(status.ended)))
        return run_to_ends(pool, status, file, bar)


def pack(status: PoolStatus) -> tuple[dict[str, Any], dict[str, Any]]:
    """What is saved: the next program's steps and pair, and the lanes, their owners and the results."""
    arrays = {name: getattr(status, name) for name in ("owners", "lanes", "ended", "results")}
    return {"steps": status.steps, "waiting": status.waiting}, arrays


def run_to_ends(pool: Pool, status: PoolStatus, file: PeriodicCheckpoint | None, bar: Progress) -> Lane:
    """Run programs until all pairs are at their ends; the results."""
    try:
        while np.any(status.owners >= 0):
            before = np.sum(status.ended)
            status = run_program(pool, status)
            bar.advance(int(np.sum(status.ended) - before), "ended")
            if file is not None:
                file.save_sometimes(status)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(explain(status, file)) from None
    if file is not None:
        file.save_last(status)
    return status.results


def explain(status: PoolStatus, file: PeriodicCheckpoint | None) -> str:
    """How far an interrupted run had come, and how to continue it, once it is saved."""
    if file is not None and not file.is_shared:
        file.save_last(status)
    remedy = "Pass `checkpoint`, in a folder with room, to continue interrupted runs." if file is None else file.remedy
    return f"Interrupted when {np.sum(status.ended)} of {len(status.ended)} pairs had ended. {remedy}"


def restore_status(pool: Pool, num_pairs: int, size: int, progress: dict[str, Any], arrays: Arrays) -> PoolStatus:
    """The status in a file, or an error if it does not fit the run."""
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
    """Raise unless every pair that has started is either in one lane or has ended."""
    begun = np.sort(np.concatenate([owners[owners >= 0], np.flatnonzero(ended)]))
    if not np.array_equal(begun, np.arange(waiting)):
        raise ValueError("pairs that are missing or counted twice")


def make_fingerprint(key: Key, settings: PairSettings, num_pairs: int, size: int, devices: int) -> dict[str, Plain]:
    """Everything that determines a run and the layout of its file, under names that users know."""
    numbers = {name: getattr(settings, name) for name in ("lag", "k", "m", "max_steps")}
    kernel = {f"kernel.{name}": part for name, part in settings.kernel._asdict().items()}
    return {
        **identify_key(key),
        **numbers,
        "num_pairs": num_pairs,
        "pairs at once": size,
        "devices": devices,
        **identify_parts({**kernel, "function": settings.function}),
    }
