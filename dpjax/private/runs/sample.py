"""Draws published under a privacy budget: a run that charges every query before it is made."""

import os
import secrets
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from dpjax._util.spelling import names_arguments
from dpjax._util.validation import check_count, check_key, fail, is_traced
from dpjax._util.warn import warn_at_the_call
from dpjax.base import Key
from dpjax.private.accounting.composition import check_gaussian
from dpjax.private.accounting.ledger import Ledger, RunPart
from dpjax.private.kernels.base import PrivateKernel, check_contract
from dpjax.private.runs.checkpoint import Checkpoint, make_fingerprint
from dpjax.private.runs.draws import Diagnostics, PrivateDraws
from dpjax.private.runs.run import (
    STANDS_STILL,
    PrivateRun,
    PrivateStatus,
    choose_capacity,
    make_chunk,
    run_charged,
    to_host,
)
from dpjax.private.runs.starts import begin
from dpjax.runtime.checkpoint import check_path
from dpjax.runtime.chunk import Chunk, Steps
from dpjax.runtime.devices import Devices, choose_mesh, spans_processes

__all__ = ["sample"]

MOST_ITERATIONS = 2**31 - 1


PROPOSALS = 60
"""Number of proposals of a rehearsal, over all chains."""
LEAST_PROPOSALS = 40
"""Smallest number of proposals for a refusal: none is accepted with probability below 0.002 if one in seven is."""
SHARE = 20
"""Smallest number of iterations of the run per iteration of a rehearsal."""


CHARGED_AGAIN = (
    "The ledger was not charged for all iterations in the checkpoint, and is now for {times}: one that begins anew in "
    "each process forgets what was spent before. Keep one ledger in a file, Ledger(budget, path), and no copy of it."
)


@names_arguments
def sample(
    key: Key,
    kernel: PrivateKernel,
    positions: Any,
    ledger: Ledger,
    *,
    num_iterations: int | None = None,
    thin: int = 1,
    checkpoint: str | os.PathLike[str] | None = None,
    devices: Devices = None,
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
        The starts of the chains, unconstrained, with leading axis [chains]. They must not be computed from the records,
        or only by way of this ledger. Or the `PrivateDraws` of an earlier run of the kernel, which then continues. Its
        draws come first in the result, and with the same key the two runs are the one that they would have been.
    ledger
        The budget and all that was spent of it; without a default.
    num_iterations
        Iterations of each chain, further ones if a run goes on; a multiple of `thin`. None for as many as the budget
        allows.
    thin
        The number of iterations per kept draw. Draws that are not kept are charged as well.
    checkpoint
        A file. What was charged is saved there as it comes, every few seconds, before more is charged; a call with the
        same arguments continues from it. It is **as confidential as the records**, other than the draws in it. A ledger
        that was not charged for all of it, as one that begins anew, is charged for the rest: keep it in a file, too.
    devices
        The devices over which chains are spread, as in `dpjax.sample`, of this process alone. Each holds all records.

    Raises
    ------
    TypeError, ValueError
        If an argument is out of range, or the kernel makes no noisy queries. If the starts are outside the prior's
        support, or noise and bounds let no chain move even without records. If the checkpoint is that of another run.
        If the budget does not allow the iterations. No query is made then.
    RuntimeError, KeyboardInterrupt
        If another run is using the checkpoint, since each would write over what was charged to the other; and what
        breaks the run off before its first draw.

    Warns
    -----
    UserWarning
        If a ledger is charged for the iterations in a checkpoint. If fewer are made than asked for, with the reason. It
        may be an interruption, an error, a budget that others have spent, a file that cannot be written, or chains that
        do not move. The draws made are returned all the same.

    Notes
    -----
    The first Ctrl-C ends the run after the part of a few seconds that was charged; a second one at once, and loses it.

    Examples
    --------
    >>> import dpjax
    >>> import jax, jax.numpy as jnp
    >>> from dpjax import private
    >>> def density(mean, y):
    ...     return -((y - mean) ** 2) / 2
    >>> data = jnp.array([0.0, 1.0, 9.0])
    >>> target = private.target(density, lambda mean: -(mean**2) / 2, data, jnp.zeros(()))
    >>> kernel = private.dp_penalty(target, private.noise.jax, proposal_scale=0.5, ratio_bound=1.0, tau=50.0)
    >>> ledger = private.Ledger(private.Budget(4.0, 1e-6, neighbours="replace-one"))
    >>> published = dpjax.private.sample(jax.random.key(1), kernel, jnp.zeros(2), ledger, num_iterations=20)
    >>> published.draws.shape
    (2, 20)
    """
    check_key("key", key)
    if is_traced(key, positions):
        remedy = "Call it outside of jax.jit and jax.vmap: a compiled program is charged once, however often it runs."
        fail("key", "a value of a traced program", "a known one", remedy, error=TypeError)
    check_kernel(kernel, ledger)
    thin = check_count("thin", thin)
    path = None if checkpoint is None else check_path(checkpoint)
    start = begin(kernel, positions, thin)
    check_paid(start, ledger)
    asked = check_iterations(num_iterations, thin)
    file = None if path is None else Checkpoint(path, make_fingerprint(key, kernel, start, ledger, asked, thin))
    with nullcontext() if file is None else file.held():
        saved = None if file is None else file.load(start)
        status, total = saved or (start, start.done + choose_iterations(kernel, ledger, start, asked, thin))
        rehearsal_keys, chain_keys = split_keys(key, len(status.totals.accepted))
        mesh = check_one_process(choose_mesh(devices, len(chain_keys), "the number of chains"))
        part = RunPart(secrets.token_hex(8) if file is None else file.run, secrets.token_hex(8), used_key(key, kernel))
        run = PrivateRun(kernel, ledger, chain_keys, total, thin, choose_capacity(total - start.done, thin), mesh, part)
        ledger.check_key(part._replace(first=status.done))
        save = nowhere if file is None else partial(file.save, total)
        if saved is None:
            rehearse(run, status, rehearsal_keys)
            save_first(save, status)
        else:
            charge_again(run, start, status)
        return make_private_draws(run, *run_charged(run, status, save), path)


def charge_again(run: PrivateRun, start: PrivateStatus, status: PrivateStatus) -> None:
    """Charge the ledger for what it lacks of the iterations of a checkpoint, over all chains, by part of the run.

    Some may have been charged to another ledger, or to this one before an older copy of it was put back.

    Raises
    ------
    BudgetExceeded
        If that would exceed the budget.
    """
    lacks = missing(run.ledger, status)
    for part, times in lacks.items():
        charged = run.part._replace(part=part, first=start.done, last=status.done)
        run.ledger.charge(run.kernel.queries, times, part=charged)
    if lacks:
        warn_at_the_call(CHARGED_AGAIN.format(times=sum(lacks.values())))


def missing(ledger: Ledger, status: PrivateStatus) -> dict[str, int]:
    """The iterations over all chains that a ledger was not charged for, by the part of the run that made them."""
    made = {part: len(status.totals.accepted) * done for part, done in status.parts.items()}
    lacks = {part: times - ledger.times_charged(part) for part, times in made.items()}
    return {part: times for part, times in lacks.items() if times > 0}


def used_key(key: Key, kernel: PrivateKernel) -> bytes | None:
    """The key as bytes if noise or samples are drawn by it, so that two runs by one key would have the same."""
    if all(query.grade == "secure" for query in kernel.queries):
        return None
    return str(jax.random.key_impl(key)).encode() + np.asarray(jax.random.key_data(key)).tobytes()


def check_one_process(mesh: Mesh | None) -> Mesh | None:
    """The devices, or an error if some are another process's: each process would charge its ledger for the others."""
    if spans_processes(mesh):
        remedy = "Pass jax.local_devices(), and run the draws in one process."
        fail("devices", "devices of several processes", "those of one process", remedy)
    return mesh


def nowhere(status: PrivateStatus) -> None:
    """Save nothing."""


def split_keys(key: Key, num_chains: int) -> tuple[Key, Key]:
    """Keys of the chains [chains] for the rehearsal and for the run."""
    rehearsal, chains = jax.random.split(key)
    return jax.random.split(rehearsal, num_chains), jax.random.split(chains, num_chains)


def make_private_draws(
    run: PrivateRun, status: PrivateStatus, reason: str | BaseException | None, path: Path | None
) -> PrivateDraws:
    """The draws that were charged, with a warning if something broke the run off; what did, if there are none."""
    if status.done == 0:
        raise reason if isinstance(reason, BaseException) else KeyboardInterrupt(reason)
    if reason is not None:
        warn_at_the_call(explain(run, status, reason, path))
    means = (np.asarray(leaf) / status.done for leaf in jax.tree.leaves(status.totals))
    return PrivateDraws(
        draws=status.draws,
        not_private=Diagnostics(*means),
        ledger=run.ledger,
        num_iterations=status.done,
        thin=run.thin,
        final_states=to_host(status.states),
        parts=status.parts,
    )


def explain(run: PrivateRun, status: PrivateStatus, reason: str | BaseException, path: Path | None) -> str:
    """How far a run has come that was broken off, why, and how to continue it."""
    after = f"after {status.done} of {run.total} iterations"
    remedy = "Pass the draws as positions to continue"
    remedy += "." if path is None else f", or call again with the same arguments to continue from {str(path)!r}."
    if isinstance(reason, KeyboardInterrupt):
        return f"private.sample was interrupted {after}. {remedy}"
    if reason == STANDS_STILL:
        remedy = "Draws that go on from there would stand still as well: lead the chains nearer to the posterior first."
    why = reason if isinstance(reason, str) else f"{type(reason).__name__}: {reason}"
    return f"private.sample stopped {after} ({why}). {remedy}"


def save_first(save: Callable[[PrivateStatus], None], status: PrivateStatus) -> None:
    """Raise if the checkpoint cannot be written, as long as nothing is charged."""
    try:
        save(status)
    except OSError as error:
        remedy = "Make room or give access. Nothing was charged."
        fail("checkpoint", f"a file that fails ({error})", "one that can be written", remedy, error=RuntimeError)


def check_kernel(kernel: Any, ledger: Any) -> None:
    """Raise unless the kernel is one that makes noisy queries, and the ledger is one."""
    if not isinstance(ledger, Ledger):
        remedy = "Pass Ledger(Budget(epsilon, delta, neighbours)): there is no default budget."
        fail("ledger", type(ledger).__name__, "a dpjax.private.Ledger", remedy, error=TypeError)
    check_gaussian("ledger", ledger.budget)
    if not isinstance(kernel, PrivateKernel):
        fail("kernel", type(kernel).__name__, "a PrivateKernel", "Build it with dp_hmc or the like.", error=TypeError)
    if not kernel.queries:
        fail("kernel", "one without noise", "a private one", "hmc and rwmh protect nobody; use dp_hmc or dp_penalty.")
    check_contract(kernel)


def check_paid(start: PrivateStatus, ledger: Ledger) -> None:
    """Raise if a run goes on from draws that the ledger was not charged for."""
    if sum(start.parts.values()) != start.done or missing(ledger, start):
        remedy = "Pass result.ledger, or open its file; a new run starts at result.final_states.position."
        fail("ledger", "one that was not charged for the draws that go on", "the ledger of that run", remedy)


def check_iterations(num_iterations: Any, thin: int) -> int | None:
    """The requested number of iterations, None for as many as the budget allows."""
    if num_iterations is None:
        return None
    asked = check_count("num_iterations", num_iterations)
    if asked % thin:
        remedy = "The last iterations would be charged without a draw."
        fail("num_iterations", f"{asked} with thin = {thin}", "a multiple of thin", remedy)
    return asked


def choose_iterations(kernel: PrivateKernel, ledger: Ledger, start: PrivateStatus, asked: int | None, thin: int) -> int:
    """Iterations of a chain, a multiple of `thin`: those asked for if the budget allows them, else an error."""
    num_chains = len(start.totals.accepted)
    affordable = ledger.affordable(kernel.queries) // num_chains
    wanted = affordable // thin * thin if asked is None else asked
    if wanted < 1 or wanted > affordable:
        given = f"{asked} iterations of each of {num_chains} chains, thinned by {thin}"
        expected = f"at most the {affordable} that {ledger.budget} still allows, and at least {thin}"
        remedy = "Ask for fewer, run fewer chains, add more noise, or let the data holder decide on a larger budget."
        fail("num_iterations", given, expected, remedy)
    if start.done + wanted > MOST_ITERATIONS:
        fail("num_iterations", wanted, f"at most {MOST_ITERATIONS} in all", "Name a number, or add less noise.")
    return wanted


def rehearse(run: PrivateRun, status: PrivateStatus, keys: Key) -> None:
    """Raise if the noise, the bounds or the steps let no chain move, or lead out of the finite numbers.

    The program that the run will use is run with every record left out. So nothing is asked of them, and neither the
    noise nor the prior depends on them.

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


def without_records(run: PrivateRun, status: PrivateStatus, keys: Key, length: int) -> Chunk:
    """`length` iterations from the same states as one draw, without any record."""
    target = run.kernel.target
    nothing = jax.tree.map(jnp.zeros_like, target.records)
    nobody = replace(target, records=nothing, count=jnp.zeros_like(target.count))
    steps = Steps.of(status.done, 1, length)
    return make_chunk(run, nobody, keys, status.states, steps)
