"""What can be found out for nothing: the same program on no records at all."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np

from dpjax.base import Key
from dpjax.private.runs.run import Run, Status, make_chunk
from dpjax.running.chunk import Chunk
from dpjax.validation import fail

__all__ = ["rehearse"]

PROPOSALS = 60
"""Wanted of a rehearsal, over all chains."""
LEAST_PROPOSALS = 40
"""Of which not one is accepted by chance, with probability below 2 in 1000 where one in seven is."""
SHARE = 20
"""A rehearsal makes at most one for so many iterations of the run."""


def rehearse(run: Run, status: Status, keys: Key) -> None:
    """Raise if the noise, the bounds or the steps let no chain move, or lead out of the finite numbers.

    The program that the run will use is run with every record left out, so that nothing is asked of them, and neither
    the noise nor the prior depends on them.

    Raises
    ------
    ValueError
        If no proposal is accepted, or the chains leave the finite numbers.
    """
    num_chains = len(keys)
    wanted = min(-(-PROPOSALS // num_chains), (run.total - status.done) // SHARE)
    chunk = without_records(run, status, keys, max(1, wanted))
    refuse = "Take smaller steps or bounds, or less noise: private.plan chooses them. Nothing was charged."
    if not all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(chunk.states)):
        fail("kernel", "one that leads out of the finite numbers even without records", "one that stays there", refuse)
    proposals = max(1, wanted) * num_chains
    if proposals >= LEAST_PROPOSALS and not np.any(np.asarray(chunk.draws.totals.accepted)[0]):
        given = f"noise, bounds and steps with which none of {proposals} proposals was accepted even without records"
        fail("kernel", given, "some that let the chains move", refuse)


def without_records(run: Run, status: Status, keys: Key, length: int) -> Chunk:
    """So many iterations from the same states as one draw, with no record taking part."""
    target = run.kernel.target
    nobody = replace(
        target, records=jax.tree.map(jnp.zeros_like, target.records), weights=jnp.zeros_like(target.weights)
    )
    numbers = {"start": np.int32(status.done), "length": np.int32(1), "thin": np.int32(length)}
    return make_chunk(run, nobody, keys, status.states, numbers)
