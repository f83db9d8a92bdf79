"""A run of pairs: from their starts, or from its checkpoint, to the ends of all of them."""

from contextlib import nullcontext
from functools import partial
from typing import Any

import numpy as np

from dpjax.base import Key
from dpjax.coupling.checkpoint import Checkpoint, make_fingerprint, restore_status
from dpjax.coupling.lanes import Course, Lane
from dpjax.coupling.pool import Pool, Status, open_pool, run_program
from dpjax.running.checkpoint import check_path
from dpjax.running.devices import Devices, num_devices, share_evenly
from dpjax.threads import one_blas_thread

__all__ = ["run_pairs"]


def run_pairs(key: Key, course: Course, num_pairs: int, batch_size: int, devices: Devices, checkpoint: Any) -> Lane:
    """The lanes of all pairs [pair] at their ends, without the chains themselves.

    Raises
    ------
    TypeError, ValueError
        If there are no such devices, or the checkpoint is that of another run.
    RuntimeError
        If another run is using the checkpoint.
    KeyboardInterrupt
        If the run is interrupted: the pairs that have ended by then are those that meet early, and would mislead.
    """
    mesh, size = share_evenly(devices, min(batch_size, num_pairs), "pairs at once")
    path = None if checkpoint is None else check_path(checkpoint, mesh)
    pool, file = Pool(key, course, mesh), None
    if path is not None:
        file = Checkpoint(path, make_fingerprint(key, course, num_pairs, size, num_devices(mesh)), mesh)
    with nullcontext() if file is None else file.held(), one_blas_thread():
        saved = None if file is None else file.load(partial(restore_status, pool, num_pairs, size))
        return finish(pool, open_pool(pool, num_pairs, size) if saved is None else saved, file)


def finish(pool: Pool, status: Status, file: Checkpoint | None) -> Lane:
    """Run programs until all pairs are at their ends; the results."""
    try:
        while np.any(status.owners >= 0):
            status = run_program(pool, status)
            if file is not None:
                file.save_sometimes(status)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(explain(status, file)) from None
    if file is not None:
        file.save_last(status)
    return status.results


def explain(status: Status, file: Checkpoint | None) -> str:
    """How far an interrupted run had come, and how to continue it, once it is saved."""
    if file is not None and not file.is_shared:
        file.save_last(status)
    remedy = "Pass `checkpoint`, in a folder with room, to continue interrupted runs." if file is None else file.remedy
    return f"Interrupted when {np.sum(status.ended)} of {len(status.ended)} pairs were at their ends. {remedy}"
