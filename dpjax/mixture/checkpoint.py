"""Checkpoints of `mixture.sample`: what of a run is saved, how it is taken up, and by which runs."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dpjax.base import Key
from dpjax.mixture.draws import Draw, join
from dpjax.mixture.inputs import exercise
from dpjax.mixture.run import Run, Status, shapes_of_draws, shapes_of_starts
from dpjax.mixture.samplers.base import MAX_SLOTS, Setup
from dpjax.running.checkpoint import Arrays, PeriodicCheckpoint, fill, read_place
from dpjax.running.fingerprint import Plain, identify_arrays, identify_parts, identify_run, plain_values

__all__ = ["Checkpoint", "make_fingerprint", "restore_status"]


class Checkpoint(PeriodicCheckpoint):
    """The checkpoint file of one run of `mixture.sample`; its fingerprint is that of `make_fingerprint`."""

    def pack(self, status: Status) -> tuple[dict[str, Any], dict[str, Any]]:
        """The numbers of slots, and the states and the draws."""
        draws = {"draws": join(status.chunks, status.setup.capacity)} if status.chunks else {}
        return {"slots": status.setup.capacity, "needed": status.needed}, {"states": status.states, **draws}


def restore_status(run: Run, setup: Setup, progress: dict[str, Any], arrays: Arrays) -> Status:
    """The status in a file, with as many slots as it had by then; whatever does not fit the run is an error."""
    segment, filled = read_place(run.schedule, progress)
    slots, needed = progress["slots"], progress["needed"]
    if slots not in range(1, MAX_SLOTS + 1) or needed not in range(MAX_SLOTS + 1):
        raise ValueError(f"{slots} slots, of which {needed} were needed")
    setup = setup.with_capacity(slots)
    states = jax.tree.map(jnp.asarray, fill("states", shapes_of_starts(run, setup), arrays))
    status = Status(segment, filled, setup, states, needed)
    if not filled or segment < len(run.schedule) - 1:
        return status
    draws: Draw = fill("draws", shapes_of_draws(run, status, filled), arrays)
    return status._replace(chunks=(jax.tree.map(lambda leaf: np.swapaxes(leaf, 0, 1), draws),))


def make_fingerprint(key: Key, run: Run, setup: Setup) -> dict[str, Plain]:
    """All that decides the draws of a run, under names that a user knows."""
    problem, sampler = run.problem, setup.sampler
    arrays = {name: getattr(problem, name) for name in ("values", "channel", "component", "concentration")}
    parts = {name: getattr(problem, name) for name in ("channel", "component")}
    parts |= {"known marginal": problem.tractable, "sampler": sampler, "collect": run.collect}
    return {
        **identify_run(key, len(run.chain_keys), run.schedule[-1]),
        **{f"sampler.{name}": value for name, value in plain_values(sampler).items()},
        **identify_parts(parts),
        **identify_arrays(arrays),
        **identify_arrays({"functions of component": jax.jit(exercise)(problem.component)}, rounded=True),
    }
