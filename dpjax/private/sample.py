"""Draws published under a privacy budget: a run that charges every query before it is made."""

from dataclasses import dataclass
from math import ceil
from typing import Any, NamedTuple

import jax
import numpy as np

from dpjax.base import Key
from dpjax.private.kernel import PrivateKernel
from dpjax.private.ledger import BudgetExceeded, Ledger, PrivacySpent
from dpjax.private.loop import Chunk, Totals, run_chunk, start_chains
from dpjax.validation import check_count, check_key, fail

__all__ = ["Diagnostics", "PrivateDraws", "sample"]

NUM_CHUNKS = 10
"""A run is charged in this many parts at least, so that an interrupted one pays for little that it has not drawn."""
MOST_DRAWS = 10_000
"""Draws of a chain that a chunk holds at most."""


class Diagnostics(NamedTuple):
    """Per-chain means [chains] over the iterations, **not private**: for the data holder's eyes, not for publication.

    acceptance_rate
        The fraction of proposals that were accepted.
    clipped_gradients, clipped_ratios
        The fraction of records whose gradient or log-likelihood ratio was clipped; NaN where there are none.
    """

    acceptance_rate: np.ndarray
    clipped_gradients: np.ndarray
    clipped_ratios: np.ndarray


@dataclass(frozen=True, eq=False)
class PrivateDraws:
    """The result of a private run.

    Attributes
    ----------
    draws
        A pytree with leading axes [chains, draws], on the scale of the model. This alone is what the budget pays for.
    not_private
        `Diagnostics`; showing them to anyone else costs privacy that nothing accounts for.
    ledger
        The ledger that was charged.
    num_iterations
        Iterations of each chain that were made.
    """

    draws: Any
    not_private: Diagnostics
    ledger: Ledger
    num_iterations: int

    def privacy_spent(self) -> PrivacySpent:
        """What everything charged to the ledger costs, this run and what came before it."""
        return self.ledger.privacy_spent()

    def __repr__(self) -> str:
        return f"PrivateDraws(num_iterations={self.num_iterations}, privacy_spent={self.privacy_spent()})"


def sample(
    key: Key,
    kernel: PrivateKernel,
    positions: Any,
    ledger: Ledger,
    *,
    num_iterations: int | None = None,
    thin: int = 1,
) -> PrivateDraws:
    """Draws of several chains that share one budget: each query is charged to the ledger before it is made.

    Parameters
    ----------
    key
        A typed key for everything but the protection of the records, which is the noise source's matter. Keep it
        secret all the same: with it and ``noise.jax`` the noise can be computed.
    kernel
        Such as `dp_hmc` builds.
    positions
        Where the chains start, unconstrained, with leading axis [chains]. They must not be computed from the records,
        or only by way of this ledger.
    ledger
        The budget and all that was spent of it; without a default.
    num_iterations
        Iterations of each chain; None for as many as the budget allows.
    thin
        Every how many iterations a draw is kept. Draws that are not kept are paid for all the same.

    Raises
    ------
    TypeError, ValueError
        If an argument is out of range; if the kernel makes no noisy queries; or if the budget does not allow the
        iterations, in which case no query is made.

    Notes
    -----
    An interruption by the keyboard keeps the draws of whole parts of the run.
    """
    check_key("key", key)
    check_kernel(kernel, ledger)
    num_chains = check_positions(kernel, positions)
    thin = check_count("thin", thin)
    total = choose_iterations(kernel, ledger, num_chains, num_iterations, thin)
    states = start_chains(kernel.build, kernel.target, positions)
    chain_keys = jax.random.split(key, num_chains)
    return collect(kernel, ledger, states, chain_keys, total, thin)


def collect(kernel: PrivateKernel, ledger: Ledger, states: Any, chain_keys: Key, total: int, thin: int) -> PrivateDraws:
    """The loop over chunks, each charged before it is run."""
    length = thin * min(ceil(total / (thin * NUM_CHUNKS)), MOST_DRAWS)
    chunks: list[Chunk] = []
    done = 0
    try:
        while done < total:
            part = min(length, total - done)
            ledger.charge(kernel.queries, times=part * len(chain_keys))
            chunk = run_part(kernel, states, chain_keys, done, part, length, thin)
            states, done = chunk.states, done + part
            chunks.append(chunk._replace(states=None))
    except (KeyboardInterrupt, BudgetExceeded):
        pass  # what is drawn is paid for and kept
    return PrivateDraws(join_draws(kernel, chunks), join_totals(chunks, done), ledger, done)


def run_part(
    kernel: PrivateKernel, states: Any, chain_keys: Key, start: int, part: int, length: int, thin: int
) -> Chunk:
    """One chunk, on the host, without the buffers' unused end."""
    chunk = run_chunk(
        kernel.build,
        kernel.target,
        chain_keys,
        states,
        np.int32(start),
        np.int32(part),
        capacity=length // thin,
        thin=thin,
    )
    kept = jax.tree.map(lambda leaf: np.asarray(leaf)[: part // thin], chunk.draws)
    return Chunk(chunk.states, kept, jax.tree.map(np.asarray, chunk.totals))


def join_draws(kernel: PrivateKernel, chunks: list[Chunk]) -> Any:
    """The draws of all chunks [chains, draws, ...]; None if there are none."""
    if not chunks:
        return None
    return jax.tree.map(lambda *parts: np.swapaxes(np.concatenate(parts), 0, 1), *[chunk.draws for chunk in chunks])


def join_totals(chunks: list[Chunk], done: int) -> Diagnostics:
    """The means over the iterations made."""
    if not chunks:
        return Diagnostics(*(np.zeros(0),) * 3)
    sums: Totals = jax.tree.map(lambda *parts: np.sum(parts, axis=0) / done, *[chunk.totals for chunk in chunks])
    return Diagnostics(*(np.asarray(leaf) for leaf in jax.tree.leaves(sums)))


def check_kernel(kernel: Any, ledger: Any) -> None:
    """Raise unless the kernel makes noisy queries and the ledger is one."""
    if not isinstance(ledger, Ledger):
        remedy = "Pass Ledger(Budget(epsilon, delta, neighbours)): there is no default budget."
        fail("ledger", type(ledger).__name__, "a dpjax.private.Ledger", remedy, error=TypeError)
    if not isinstance(kernel, PrivateKernel):
        fail("kernel", type(kernel).__name__, "a PrivateKernel", "Build it with dp_hmc or the like.", error=TypeError)
    if not kernel.queries:
        fail("kernel", "one without noise", "a private one", "hmc and rwmh protect nobody; use dp_hmc or dp_penalty.")


def check_positions(kernel: PrivateKernel, positions: Any) -> int:
    """The number of chains, where each position has the structure and shapes of the target's parameters."""
    target = kernel.target
    vector = jax.ShapeDtypeStruct((target.dimension,), target.weights.dtype)
    expected = jax.eval_shape(target.unravel, vector)
    shapes = jax.tree.map(np.shape, positions)
    leading = {shape[:1] for shape in jax.tree.leaves(shapes, is_leaf=lambda leaf: isinstance(leaf, tuple))}
    wanted = jax.tree.map(lambda leaf: (*next(iter(leading), ()), *leaf.shape), expected)
    if len(leading) != 1 or () in leading or shapes != wanted:
        remedy = "Stack the chains' starts; of one chain, too."
        fail("positions", f"shapes {shapes}", "the target's parameters with a leading axis [chains]", remedy)
    if not all(np.all(np.isfinite(np.asarray(leaf))) for leaf in jax.tree.leaves(positions)):
        fail("positions", "numbers that are not finite", "finite ones", "Start elsewhere.")
    return int(next(iter(leading))[0])


def choose_iterations(
    kernel: PrivateKernel, ledger: Ledger, num_chains: int, num_iterations: int | None, thin: int
) -> int:
    """Iterations of a chain, a multiple of `thin`: those asked for if the budget allows them, else an error."""
    if num_iterations is not None:
        check_count("num_iterations", num_iterations)
    affordable = ledger.affordable(kernel.queries) // num_chains
    wanted = (affordable if num_iterations is None else num_iterations) // thin * thin
    if wanted < 1 or wanted > affordable:
        given = f"{num_iterations} iterations of each of {num_chains} chains, thinned by {thin}"
        expected = f"at most the {affordable} that {ledger.budget} still allows, and at least {thin}"
        remedy = "Ask for fewer, run fewer chains, add more noise, or let the data holder decide on a larger budget."
        fail("num_iterations", given, expected, remedy)
    return wanted
