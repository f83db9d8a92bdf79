"""Independent Metropolis within Gibbs (IMwG): a fresh draw from the model is proposed for each record.

A proposal y ~ f(·|θ) replaces record i with probability min(1, η(s | Σt − t_i + t(y)) / η(s | Σt)): the kernel of Ju,
Awan, Gong and Rao (2022), Algorithm 1, equation (5). A sweep is a pure function of the proposals and uniforms, and at
random places of these too; the kernel draws them and calls it. Very many identically distributed records are swept a
piece at a time. The proposals to a piece are made when the previous pieces are done, so that only one piece of them is
in memory. The systematic sweep serves `pcn` too, whose proposals depend on the records.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp

from dpjax._util.spelling import names_arguments
from dpjax._util.validation import check_choice, fail
from dpjax.base import Array, ImputationInfo, ImputationKernel, Key, Latent, Model, Parameters, Records
from dpjax.data_augmentation.kernel_checks import builds_kernel
from dpjax.data_augmentation.records import local, microdata
from dpjax.data_augmentation.records.births import build_births_kernel
from dpjax.data_augmentation.records.parts import MAX_RECORDS, NUM_PARTS, PartialKernel, part_of, size_of_part
from dpjax.data_augmentation.records.placed import decide_at, sweep_release
from dpjax.data_augmentation.records.proposals import (
    Decisions,
    check_exchangeable,
    check_noisy,
    latent_after,
    metropolis,
    proposal_at,
)
from dpjax.data_augmentation.records.rounds import (
    Window,
    check_window,
    choose_window,
    decide_in_rounds,
    window_of,
    window_with_default,
)
from dpjax.data_augmentation.records.unknown_number import DataSetSum, data_set_form
from dpjax.models.simulation import init_latent
from dpjax.numerics import accept, decision_uniforms, tree_where
from dpjax.numerics.arrays import Piece, are_many, for_pieces, put_piece, take_piece
from dpjax.release import PrivateRelease, Release
from dpjax.release.summed import as_sum, one_sum_of


@dataclass(frozen=True)
class IMwG:
    """IMwG; called with a model and a release, it builds the kernel."""

    scan: Literal["systematic", "random"]
    window: Window = None

    @builds_kernel
    def __call__(self, model: Model, release: PrivateRelease) -> ImputationKernel:
        """A kernel that leaves p(records | parameters, release) invariant."""
        if release.local is not None:
            return local.build_kernel(model, release.local)
        if release.fields:
            decide = partial(systematic_sweep, window=window_of(self.window))
            return microdata.build_kernel(model, release.microdata, decide)
        if release.summed is None:
            return build_kernel_of_all(model, release)
        release = as_sum(release)
        check_noisy(release, "imwg(...)")
        if isinstance(release.statistic, DataSetSum):
            return build_births_kernel(model, release)
        if self.scan == "systematic":
            proposal = proposal_at(model, correlation=0.0)
            return build_systematic_kernel(model, release, proposal, 1, window_of(self.window))
        check_exchangeable(model, 'imwg(scan="random")')
        return build_random_kernel(model, release)

    @property
    def placement(self) -> Literal["systematic", "random"]:
        """The scan."""
        return self.scan

    def num_weighed(self, n: int) -> int:
        """None: the scan gives the place."""
        del n
        return 0

    def takes_parts(self, n: int) -> bool:
        """Whether a sweep can be over some of n records: in a systematic scan, if a part is proposed at once."""
        return self.scan == "systematic" and n <= MAX_RECORDS

    def build_partial_kernel(self, model: Model, release: PrivateRelease) -> PartialKernel:
        """The systematic scan over some of the records, for a noisy sum."""
        return build_partial_kernel(model, as_sum(release), window_of(self.window))

    @property
    def needs_tuning(self) -> bool:
        """Whether the window is left to the warm-up."""
        return self.window == "auto"

    def with_defaults(self, model: Model, release: PrivateRelease) -> "IMwG":
        """With the default window of the backend."""
        del model, release
        return replace(self, window=window_with_default(self.window))

    def tune(self, key: Key, model: Model, release: PrivateRelease, latent: Latent, parameters: Parameters) -> "IMwG":
        """With the window of least cost at the chains' states."""
        return replace(self, window=choose_window(key, self, model, release, latent, parameters))

    def form(self, model: Model, release: PrivateRelease) -> tuple[Model, PrivateRelease]:
        """Model and release as they are, or those of whole data sets if the number of records is unknown."""
        summed = one_sum_of(release)
        return (model, release) if summed is None else data_set_form(model, summed)


@names_arguments
def imwg(scan: Literal["systematic", "random"] = "systematic", window: Window = None) -> IMwG:
    """Impute the records by independent Metropolis within Gibbs.

    Parameters
    ----------
    scan
        ``"systematic"`` proposes one draw for each record in order; ``"random"`` makes n proposals to places drawn
        uniformly with replacement. A local release needs neither: given θ its records are independent, and all are
        updated at once, by exact draws if channel and model allow. Nor does an unknown number of records: each sweep
        then adds, deletes and exchanges records in random order.
    window
        How many proposals of a systematic scan are decided on side by side, in rounds that give the scan in turn. It is
        for accelerators, whose time depends on the number of steps. 1 decides in turn; None is 1 on a CPU and 256
        elsewhere. ``"auto"`` lets the warm-up of ``dpjax.sample`` choose the width of 64 to 4,096 with the least time
        on an accelerator. Coupled chains and records of an unknown number always decide in turn.

    Raises
    ------
    ValueError, TypeError
        If the scan has another name, or the window is not a positive whole number or ``"auto"``, or one of a random
        scan.

    Examples
    --------
    >>> import dpjax
    >>> dpjax.imwg(scan="random").scan
    'random'
    """
    check_choice("scan", scan, ("systematic", "random"), "Choose the order in which records get their proposals.")
    if window is not None:
        window = check_window(window)
        if scan == "random":
            fail(
                "window", window, "None with scan='random'", "Proposals to one place wait for each other: leave it out."
            )
    return IMwG(scan, window)


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
        sweep = build_sweep_in_pieces(release, proposal, block, window)
        return partial(sweep, loop=partial(for_pieces, n=release.n, unit=block))

    def step(rng_key: Key, latent: Latent, parameters: Parameters) -> tuple[Latent, ImputationInfo]:
        proposal_key, accept_key = jax.random.split(rng_key)
        proposals = proposal(proposal_key, parameters, latent.records)
        uniforms = decision_uniforms(accept_key, (num_blocks(release.n, block),))
        return systematic_sweep(release, latent.records, proposals, uniforms, block, window)

    return step


class WindowProgress(NamedTuple):
    """The state of a sweep in pieces.

    residual
        The value less the summed statistic [d].
    log_density
        The log-density [] of the release at it.
    records
        All of them, those of earlier pieces as they are now.
    accepted
        How many proposals each of them took [n].
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

    def after(self, decisions: Decisions, records: Records, piece: Piece) -> "WindowProgress":
        """The progress when a piece has been decided on and has these records."""
        accepted = take_piece(self.accepted, piece) + decisions.accepted.astype(int)
        return WindowProgress(
            decisions.residual,
            decisions.log_density,
            put_piece(self.records, records, piece),
            put_piece(self.accepted, accepted, piece),
            self.num_broken + jnp.sum(decisions.broken),
            self.num_rounds + (0 if decisions.num_rounds is None else decisions.num_rounds),
        )


def start_sweep(release: Release, records: Records) -> WindowProgress:
    """The progress before the first piece."""
    residual, zero = release.noisy_sum - release.total(records), jnp.zeros((), int)
    return WindowProgress(residual, release.log_density_at(residual), records, jnp.zeros(release.n, int), zero, zero)


def build_sweep_in_pieces(
    release: Release, proposal: Callable[[Key, Parameters, Records], Records], block: int, window: int
) -> Callable[..., tuple[Latent, ImputationInfo]]:
    """The sweep that draws and decides on the proposals of one piece of the records after another.

    It is a function ``(rng_key, latent, parameters, loop) -> (latent, info)``: ``loop(function, progress)`` is the
    progress after ``function(progress, index, piece)`` for each piece, with another index for each.
    """

    def sweep(
        rng_key: Key, latent: Latent, parameters: Parameters, loop: Callable[[Any, WindowProgress], WindowProgress]
    ) -> tuple[Latent, ImputationInfo]:
        def sweep_piece(progress: WindowProgress, index: Array | int, piece: Piece) -> WindowProgress:
            proposal_key, accept_key = jax.random.split(jax.random.fold_in(rng_key, index))
            records = take_piece(progress.records, piece)
            proposals = proposal(proposal_key, parameters, records)
            uniforms = decision_uniforms(accept_key, (num_blocks(piece.size, block),))
            changes = release.contributions(proposals) - release.contributions(records)
            decisions = decide(release, progress.residual, changes, uniforms, block, window)
            return progress.after(decisions, tree_where(decisions.accepted, proposals, records), piece)

        end = loop(sweep_piece, start_sweep(release, latent.records))
        where, num_rounds = (end.residual, end.log_density), None if window == 1 else end.num_rounds
        return latent_after(release, end.records, *where, end.accepted, end.num_broken, num_rounds)

    return sweep


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
    residual = release.noisy_sum - jnp.sum(current, axis=1)
    decisions = decide(release, residual, release.contributions(proposals) - current, uniforms, block, window)
    moved = tree_where(decisions.accepted, proposals, records)
    where, num_broken = (decisions.residual, decisions.log_density), jnp.sum(decisions.broken)
    return latent_after(release, moved, *where, decisions.accepted.astype(int), num_broken, decisions.num_rounds)


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


def build_partial_kernel(model: Model, release: Release, window: int) -> PartialKernel:
    """The systematic scan over parts of identically distributed records; see `PartialKernel`."""
    sweep = build_sweep_in_pieces(release, proposal_at(model, correlation=0.0), 1, window)

    def step(
        rng_key: Key, latent: Latent, parameters: Parameters, first: Array, number: Array
    ) -> tuple[Latent, ImputationInfo]:
        def for_parts(
            function: Callable[[WindowProgress, Array, Piece], WindowProgress], progress: WindowProgress
        ) -> WindowProgress:
            def body(index: Array, progress: WindowProgress) -> WindowProgress:
                return function(progress, index, part_of(release.n, (first + index) % NUM_PARTS))

            return jax.lax.fori_loop(0, number, body, progress)

        latent, info = sweep(rng_key, latent, parameters, for_parts)
        num_made = jnp.asarray(number * size_of_part(release.n), int)
        return latent, info._replace(acceptance_rate=jnp.sum(info.accepted) / num_made)

    return step


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


def build_kernel_of_all(model: Model, release: PrivateRelease) -> ImputationKernel:
    """A systematic scan for a release of any kind: its density, of all records, is computed for each proposal."""

    def step(rng_key: Key, latent: Latent, parameters: Parameters) -> tuple[Latent, ImputationInfo]:
        proposal_key, accept_key = jax.random.split(rng_key)
        proposals = model.sample_records(proposal_key, parameters, release.n)
        log_uniforms = jnp.log(decision_uniforms(accept_key, (release.n,)))

        def move(carry: tuple[Records, Array], place: Array) -> Any:
            changed = jax.tree.map(lambda leaf, new: leaf.at[place].set(new[place]), carry[0], proposals)
            proposed = release.log_likelihood(changed)
            accepted, broken = accept(proposed, carry[1], log_uniforms[place])
            return tree_where(accepted, (changed, proposed), carry), (accepted, broken)

        begin = latent.records, release.log_likelihood(latent.records)
        (records, _), (accepted, broken) = jax.lax.scan(move, begin, jnp.arange(release.n))
        return init_latent(release, records), local.imputation_info(accepted, jnp.sum(broken))

    return step


def build_random_kernel(model: Model, release: Release) -> ImputationKernel:
    """The random-scan kernel: it leaves p(records | parameters, release) invariant."""

    def step(rng_key: Key, latent: Latent, parameters: Parameters) -> tuple[Latent, ImputationInfo]:
        proposal_key, accept_key, place_key = jax.random.split(rng_key, 3)
        proposals = model.sample_records(proposal_key, parameters, release.n)
        uniforms = decision_uniforms(accept_key, (release.n,))
        places = jax.random.randint(place_key, (release.n,), 0, release.n)
        return random_sweep(release, latent.records, proposals, uniforms, places)

    return step


def random_sweep(
    release: Release, records: Records, proposals: Records, uniforms: Array, places: Array
) -> tuple[Latent, ImputationInfo]:
    """One sweep as a function of its innovations: proposal k is made to record ``places[k]``, for k = 0, ..., n - 1."""
    return sweep_release(release, records, proposals, decide_at, (places, jnp.log(uniforms)))
