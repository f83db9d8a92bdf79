"""Systematic sweeps: a new value is proposed for every record, or block of neighbours, in order.

A sweep is a pure function of the proposals and uniforms; the kernel draws these and calls it. Very many identically
distributed records are swept a piece at a time: the proposals to a piece are made when the previous pieces are done, so
that only one piece of them is in memory.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import isqrt
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.validation import check_count, fail
from dpjax.base import Array, Imputation, ImputationInfo, ImputationKernel, Key, Latent, Model, Parameters, Records
from dpjax.data_augmentation.records.proposals import Decisions, accept, finish, metropolis
from dpjax.models.recipe import jit_model
from dpjax.numerics import decision_uniforms, take_if
from dpjax.numerics.arrays import Piece, are_many, for_pieces, put_piece, take_piece
from dpjax.release import Release

__all__ = [
    "Window",
    "build_systematic_kernel",
    "check_window",
    "choose_window",
    "closed_window",
    "sum_blocks",
    "systematic_sweep",
    "window_of",
]


WINDOW = 256
"""Default number of proposals of a window. A regression with Laplace noise takes 1.4 rounds at ε = 0.1, 9 at 5."""


Window = int | Literal["auto"] | None
"""The option `window` of `imwg`."""

WIDTHS = (64, 256, 1024, 4096)
"""Candidate widths of windows."""

NUMBERS_PER_STEP = 2**18
"""Number of entries of all windows at which a round takes about twice its fixed time on a large GPU."""


def build_systematic_kernel(
    model: Model, release: Release, proposal: Callable[[Key, Parameters, Records], Records], block: int, window: int
) -> ImputationKernel:
    """A sweep over all blocks: it leaves p(records | parameters, release) invariant.

    Parameters
    ----------
    proposal
        ``(rng_key, parameters, records) -> records``, one proposal to each of them, by a kernel that is reversible for
        the distribution of the records given the parameters.
    block
        How many neighbouring records are decided on together.
    window
        How many blocks are decided on side by side; 1 for one after the other.
    """
    if model.exchangeable and are_many(release.n):
        return build_kernel_in_pieces(release, proposal, block, window)

    def step(rng_key: Key, latent: Latent, parameters: Parameters) -> tuple[Latent, ImputationInfo]:
        proposal_key, accept_key = jax.random.split(rng_key)
        proposals = proposal(proposal_key, parameters, latent.records)
        uniforms = decision_uniforms(accept_key, (num_blocks(release.n, block),))
        return systematic_sweep(release, latent.records, proposals, uniforms, block, window)

    return step


class Progress(NamedTuple):
    """The state of a sweep in pieces.

    residual
        The value less the summed statistic [d].
    log_density
        The log-density [] of the release at it.
    records
        All of them, those of earlier pieces as they are now.
    accepted
        Which of them took their proposal [n].
    num_broken
        How many proposals had a non-finite density [].
    num_rounds
        How many rounds were made [] if any.
    """

    residual: Array
    log_density: Array
    records: Records
    accepted: Array
    num_broken: Array
    num_rounds: Array

    def after(self, decisions: Decisions, records: Records, piece: Piece) -> "Progress":
        """The progress when a piece has been decided on and has these records."""
        return Progress(
            decisions.residual,
            decisions.log_density,
            put_piece(self.records, records, piece),
            put_piece(self.accepted, decisions.accepted, piece),
            self.num_broken + jnp.sum(decisions.broken),
            self.num_rounds + (0 if decisions.num_rounds is None else decisions.num_rounds),
        )


def start_sweep(release: Release, records: Records) -> Progress:
    """The progress before the first piece."""
    residual, zero = release.origin - release.total(records), jnp.zeros((), int)
    return Progress(residual, release.log_density_at(residual), records, jnp.zeros(release.n, bool), zero, zero)


def build_kernel_in_pieces(
    release: Release, proposal: Callable[[Key, Parameters, Records], Records], block: int, window: int
) -> ImputationKernel:
    """The kernel that draws and decides on the proposals of one piece of the records after another."""

    def step(rng_key: Key, latent: Latent, parameters: Parameters) -> tuple[Latent, ImputationInfo]:
        def sweep_piece(progress: Progress, index: Array | int, piece: Piece) -> Progress:
            proposal_key, accept_key = jax.random.split(jax.random.fold_in(rng_key, index))
            records = take_piece(progress.records, piece)
            proposals = proposal(proposal_key, parameters, records)
            uniforms = decision_uniforms(accept_key, (num_blocks(piece.size, block),))
            changes = release.contributions(proposals) - release.contributions(records)
            decisions = decide(release, progress.residual, changes, uniforms, block, window)
            return progress.after(decisions, take_if(decisions.accepted, proposals, records), piece)

        end = for_pieces(sweep_piece, start_sweep(release, latent.records), release.n, unit=block)
        where, num_rounds = (end.residual, end.log_density), None if window == 1 else end.num_rounds
        return finish(release, end.records, *where, end.accepted.astype(int), end.num_broken, num_rounds)

    return step


def systematic_sweep(
    release: Release, records: Records, proposals: Records, uniforms: Array, block: int = 1, window: int = 1
) -> tuple[Latent, ImputationInfo]:
    """One sweep as a function of its innovations: proposal i is made to record i, for i = 0, ..., n - 1.

    The scan carries only the residual [d] and the log-density []; the accepted proposals are moved into the records
    afterwards, at once.

    Parameters
    ----------
    records
        A pytree with leading axis [n].
    proposals
        Another of the same structure.
    uniforms : [⌈n / block⌉]
        The proposals to block i are accepted if ``uniforms[i]`` is below the acceptance ratio.
    block
        How many neighbouring records are accepted or rejected together; the last block may be shorter.
    window
        How many blocks are decided on side by side; 1 for one after the other.
    """
    current = release.contributions(records)
    # The sum is recomputed in each sweep, so that rounding does not accumulate.
    residual = release.origin - jnp.sum(current, axis=1)
    decisions = decide(release, residual, release.contributions(proposals) - current, uniforms, block, window)
    moved = take_if(decisions.accepted, proposals, records)
    where, num_broken = (decisions.residual, decisions.log_density), jnp.sum(decisions.broken)
    return finish(release, moved, *where, decisions.accepted.astype(int), num_broken, decisions.num_rounds)


def decide(release: Release, residual: Array, changes: Array, uniforms: Array, block: int, window: int) -> Decisions:
    """The decisions for each record [m] on proposals that change the sum by the columns of changes [d, m]."""
    columns, log_uniforms = sum_blocks(changes, block), jnp.log(uniforms)
    if window == 1:
        decisions = decide_in_turn(release, residual, columns, log_uniforms)
    else:
        decisions = decide_in_rounds(release, residual, columns, log_uniforms, window)
    if block == 1:
        return decisions
    return decisions._replace(accepted=jnp.repeat(decisions.accepted, block)[: changes.shape[1]])


def decide_in_turn(release: Release, residual: Array, changes: Array, log_uniforms: Array) -> Decisions:
    """The decisions on proposals that change the sum by the columns of changes [d, proposals], one after the other."""

    def attempt(carry: Any, proposal: Any) -> Any:
        (residual, log_density), (change, log_uniform) = carry, proposal
        return metropolis(release, residual, log_density, residual - change, log_uniform)

    start = (residual, release.log_density_at(residual))
    (residual, log_density), (accepted, broken) = jax.lax.scan(attempt, start, (changes.T, log_uniforms))
    return Decisions(residual, log_density, accepted, broken)


def num_blocks(n: int, block: int) -> int:
    """How many blocks n records make."""
    return -(-n // block)


def sum_blocks(columns: Array, block: int) -> Array:
    """The sums [d, ⌈n / block⌉] of columns [d, n] over neighbouring ones; the last block may be shorter."""
    if block == 1:
        return columns
    d, n = columns.shape
    return jnp.sum(jnp.pad(columns, ((0, 0), (0, -n % block))).reshape(d, -1, block), axis=2)


class Round(NamedTuple):
    """The rounds made [], the decisions [window] of the last, and whether it changed any []."""

    number: Array
    accepted: Array
    broken: Array
    changed: Array


def default_window() -> int:
    """The default number of proposals decided on side by side: 1 on a CPU, which gains nothing from more."""
    return 1 if jax.default_backend() == "cpu" else WINDOW


def decide_in_rounds(release: Release, residual: Array, changes: Array, log_uniforms: Array, window: int) -> Decisions:
    """The decisions on proposals that change the sum by the columns of changes [d, proposals], `window` at a time.

    Parameters
    ----------
    residual : [d]
        The residual before the first proposal.
    log_uniforms : [proposals]
        Each proposal is accepted if this is below the log of its acceptance ratio.
    window
        How many proposals are decided on side by side; the last window may hold fewer, and no window more than all.
    """
    d, count = changes.shape
    width = min(window, count)
    spare = -count % width
    columns = jnp.pad(changes, ((0, 0), (0, spare))).reshape(d, -1, width).swapaxes(0, 1)
    # No ratio is above an infinite bound: the spare places of the last window accept nothing.
    bounds = jnp.pad(log_uniforms, (0, spare), constant_values=jnp.inf).reshape(-1, width)

    def decide(residual: Array, proposals: tuple[Array, Array]) -> tuple[Array, Round]:
        last = decide_window(release, residual, *proposals)
        return residual - jnp.sum(jnp.where(last.accepted[None], proposals[0], 0), axis=1), last

    residual, last = jax.lax.scan(decide, residual, (columns, bounds))
    accepted, broken = (bits.reshape(-1)[:count] for bits in (last.accepted, last.broken))
    return Decisions(residual, release.log_density_at(residual), accepted, broken, jnp.sum(last.number))


def decide_window(release: Release, residual: Array, changes: Array, log_uniforms: Array) -> Round:
    """The last round of a window of proposals that change the sum by changes [d, window]."""
    width = log_uniforms.shape[0]

    def decide(given: Round) -> Round:
        before = residual[:, None] - sum_before(jnp.where(given.accepted[None], changes, 0))
        log_densities = release.log_densities_at(before)
        accepted, broken = accept(release.log_densities_at(before - changes), log_densities, log_uniforms)
        return Round(given.number + 1, accepted, broken, jnp.any(accepted != given.accepted))

    start = Round(jnp.array(0), jnp.ones(width, bool), jnp.zeros(width, bool), jnp.array(True))
    return jax.lax.while_loop(is_unfinished, decide, start)


def is_unfinished(last: Round) -> Array:
    """Whether decisions may still change []: after as many rounds as there are proposals none does."""
    return last.changed & (last.number < last.accepted.shape[0])


def sum_before(columns: Array) -> Array:
    """The sum [d, window] of the columns [d, window] before each: of the groups before its own, and within that.

    By masks instead of a running sum: few steps on an accelerator, and non-finite numbers do not reach earlier places.
    In two levels, because the work of one grows with the square of the window.
    """
    d, width = columns.shape
    side = isqrt(width - 1) + 1
    groups = jnp.pad(columns, ((0, 0), (0, -width % side))).reshape(d, -1, side)
    sums = earlier_sums(jnp.sum(groups, axis=2))[:, :, None] + earlier_sums(groups)
    return sums.reshape(d, -1)[:, :width]


def earlier_sums(values: Array) -> Array:
    """At each place of the last axis the sum of what is before it [..., m]."""
    places = jnp.arange(values.shape[-1])
    earlier = jnp.broadcast_to(places[:, None] < places[None, :], (*values.shape, values.shape[-1]))
    return jnp.sum(jnp.where(earlier, values[..., None], 0), axis=-2)


def check_window(window: Window) -> Window:
    """The window, or an error unless it is a positive whole number, ``"auto"`` or None."""
    if window is None or (isinstance(window, str) and window == "auto"):
        return window
    return check_count("window", window, "Pass a positive whole number, 'auto' or None.")


def window_of(window: Window) -> int:
    """The window of a kernel, or an error if the warm-up has yet to choose it."""
    if window == "auto":
        fail("window", "'auto'", "a number once the kernel is built", "dpjax.sample tunes it; else pass a number.")
    return default_window() if window is None else int(window)


def closed_window(window: Window) -> int | None:
    """The window, or None, the default of the backend, if it is open."""
    return None if window == "auto" else window


def choose_window(key: Key, imputation: Any, model: Model, release: Any, latent: Latent, parameters: Parameters) -> int:
    """The window in which a sweep by an imputation ``(window=...)`` costs least, counted in steps of an accelerator.

    A round costs a step, and more where its windows hold many numbers: (1 + chains · d · window / 2¹⁸).

    Parameters
    ----------
    imputation
        A frozen dataclass with a field ``window``.
    latent
        The latent data of the chains, with leading axis [chain].
    parameters
        Their parameters, with leading axis [chain].
    """
    keys = jax.random.split(key, latent.log_density.shape[0])
    numbers = release.observed.size * len(keys)

    def cost(window: int) -> float:
        rounds = most_rounds(model, replace(imputation, window=window), release, latent, parameters, keys)
        # Local releases and unknown numbers of records have no windows.
        return float("inf") if rounds is None else float(rounds) * (1 + window * numbers / NUMBERS_PER_STEP)

    costs = np.array([cost(window) for window in WIDTHS])
    return int(WIDTHS[np.argmin(costs)]) if np.isfinite(costs).any() else 1


@partial(jit_model, static_argnames=("imputation",))
def most_rounds(
    model: Model, imputation: Imputation, release: Any, latent: Latent, parameters: Parameters, keys: Key
) -> Array | None:
    """The rounds of a sweep of the chain that makes most []; None where it is not made in rounds."""
    _, info = jax.vmap(imputation(model, release))(keys, latent, parameters)
    return None if info.num_rounds is None else jnp.max(info.num_rounds)
