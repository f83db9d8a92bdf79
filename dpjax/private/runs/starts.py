"""The start of a private run: at positions, or at the end of an earlier run."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.pytree import shapes_of, signature
from dpjax._util.validation import fail, leaves_of
from dpjax.private.arguments import check_numbers
from dpjax.private.kernels.base import NotPrivate, PrivateKernel, position_of
from dpjax.private.runs.draws import PrivateDraws
from dpjax.private.runs.run import PrivateStatus, RunTotals, log_priors, open_status, start_chains, to_device

__all__ = ["begin"]


def begin(kernel: PrivateKernel, positions: Any, thin: int) -> PrivateStatus:
    """The status of a run that starts at positions, or continues an earlier one.

    Raises
    ------
    TypeError, ValueError
        If the positions are not parameters of the target, or outside the prior's support; or if the earlier run is of
        another kernel or has another `thin`.
    """
    if isinstance(positions, PrivateDraws):
        return go_on(kernel, positions, thin)
    positions, num_chains = check_positions(kernel, positions)
    check_prior(kernel, positions)
    return open_status(kernel.target, start_chains(kernel.build, kernel.target, positions), num_chains)


def go_on(kernel: PrivateKernel, earlier: PrivateDraws, thin: int) -> PrivateStatus:
    """The final status of an earlier run."""
    if earlier.thin != thin:
        fail("thin", thin, f"{earlier.thin}, as in the run that goes on", "Keep every draw as often as before.")
    num_chains = len(earlier.not_private.acceptance_rate)
    vector = jax.ShapeDtypeStruct((num_chains, kernel.target.dimension), kernel.target.dtype)
    positions = jax.eval_shape(jax.vmap(kernel.target.unravel), vector)
    expected = jax.eval_shape(lambda at: start_chains(kernel.build, kernel.target, at), positions)
    if signature(expected) != signature(earlier.final_states):
        given = f"a run of another kernel or target, with states {type(earlier.final_states).__name__}"
        remedy = "Start a new run at positions=result.final_states.position."
        fail("positions", given, f"one with states {type(expected).__name__} of the same shapes", remedy)
    sums: list[Any] = [rate * earlier.num_iterations for rate in earlier.not_private]
    totals = RunTotals(sums[0], NotPrivate(*sums[1:]))
    return PrivateStatus(to_device(earlier.final_states), earlier.draws, totals, earlier.num_iterations, earlier.parts)


def check_positions(kernel: PrivateKernel, positions: Any) -> tuple[Any, int]:
    """The positions as the target's numbers and the number of chains, if they are the target's parameters."""
    expected = position_of(kernel.target)
    leaves = leaves_of("positions", positions, "Pass positions of the target's parameters.")
    for leaf in leaves:
        check_numbers("positions", leaf)
    shapes = jax.tree.map(np.shape, positions)
    leading = {np.shape(leaf)[:1] for leaf in leaves}
    wanted = jax.tree.map(lambda leaf: (*next(iter(leading), ()), *leaf.shape), expected)
    if len(leading) != 1 or () in leading or (0,) in leading or shapes != wanted:
        remedy = "Stack the chains' starts, at least one; of one chain, too."
        fail("positions", f"shapes {shapes}", f"{shapes_of(expected)} with a leading axis [chains]", remedy)
    if not all(np.all(np.isfinite(np.asarray(leaf))) for leaf in leaves):
        fail("positions", "numbers that are not finite", "finite ones", "Start elsewhere.")
    return jax.tree.map(lambda leaf, shape: jnp.asarray(leaf, shape.dtype), positions, expected), len(leaves[0])


def check_prior(kernel: PrivateKernel, positions: Any) -> None:
    """Raise unless the prior has positive density at every start: no records are needed to know."""
    impossible = ~np.isfinite(np.asarray(log_priors(kernel.target, positions)))
    if np.any(impossible):
        chains = np.flatnonzero(impossible).tolist()
        given = f"starts of chains {chains} at which the log-density of the prior is not finite"
        remedy = "Start elsewhere, or mend the prior. Nothing was charged."
        fail("positions", given, "starts within its support", remedy)
