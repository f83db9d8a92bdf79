"""Systematic sweeps: every record, or block of neighbours, is offered another value in order.

A sweep is a pure function of the offers and uniforms; the kernel draws these and calls it. Very many records of one law
are swept a piece at a time: the offers to a piece are made when those before it have been decided on, so that no more
than a piece of them is ever held.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from dpjax.base import Array, ImputationInfo, ImputationKernel, Key, Latent, Model, Parameters, Records
from dpjax.imputation.offers import Decisions, finish, metropolis
from dpjax.imputation.rounds import decide_in_rounds
from dpjax.numerics import decision_uniforms, take_if
from dpjax.numerics.pieces import Piece, are_many, for_pieces, put_piece, take_piece
from dpjax.release import Release

__all__ = ["build_systematic_kernel", "sum_blocks", "systematic_sweep"]


def build_systematic_kernel(
    model: Model, release: Release, offer: Callable[[Key, Parameters, Records], Records], block: int, window: int
) -> ImputationKernel:
    """A sweep over all blocks: it leaves p(records | parameters, release) invariant.

    Parameters
    ----------
    offer
        ``(rng_key, parameters, records) -> records``, one offer to each of them, by a kernel that is reversible for
        the law of the records given the parameters.
    block
        How many neighbouring records are decided on together.
    window
        How many blocks are decided on side by side; 1 for one after the other.
    """
    if model.exchangeable and are_many(release.n):
        return build_kernel_in_pieces(release, offer, block, window)

    def step(rng_key: Key, latent: Latent, parameters: Parameters) -> tuple[Latent, ImputationInfo]:
        offer_key, accept_key = jax.random.split(rng_key)
        offers = offer(offer_key, parameters, latent.records)
        uniforms = decision_uniforms(accept_key, (num_blocks(release.n, block),))
        return systematic_sweep(release, latent.records, offers, uniforms, block, window)

    return step


class Progress(NamedTuple):
    """How far a sweep in pieces has come.

    residual
        The value less the summed statistic [d].
    log_density
        The log-density [] of the release at it.
    records
        All of them, those of earlier pieces as they are now.
    accepted
        Which of them took their offer [n].
    num_broken
        How many offers had a density that is not a number [].
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
    release: Release, offer: Callable[[Key, Parameters, Records], Records], block: int, window: int
) -> ImputationKernel:
    """The kernel that draws and decides on the offers of one piece of the records after another."""

    def step(rng_key: Key, latent: Latent, parameters: Parameters) -> tuple[Latent, ImputationInfo]:
        def sweep_piece(progress: Progress, index: Array | int, piece: Piece) -> Progress:
            offer_key, accept_key = jax.random.split(jax.random.fold_in(rng_key, index))
            records = take_piece(progress.records, piece)
            offers = offer(offer_key, parameters, records)
            uniforms = decision_uniforms(accept_key, (num_blocks(piece.size, block),))
            changes = release.contributions(offers) - release.contributions(records)
            decisions = decide(release, progress.residual, changes, uniforms, block, window)
            return progress.after(decisions, take_if(decisions.accepted, offers, records), piece)

        end = for_pieces(sweep_piece, start_sweep(release, latent.records), release.n, unit=block)
        where, num_rounds = (end.residual, end.log_density), None if window == 1 else end.num_rounds
        return finish(release, end.records, *where, end.accepted.astype(int), end.num_broken, num_rounds)

    return step


def systematic_sweep(
    release: Release, records: Records, offers: Records, uniforms: Array, block: int = 1, window: int = 1
) -> tuple[Latent, ImputationInfo]:
    """One sweep as a function of its innovations: offer i is made to record i, for i = 0, ..., n - 1.

    Only the residual [d] and the log-density [] travel through the sweep; the accepted offers are moved into the
    records afterwards, at once.

    Parameters
    ----------
    records
        A pytree with leading axis [n].
    offers
        Another of the same structure.
    uniforms : [⌈n / block⌉]
        The offers to block i are accepted if ``uniforms[i]`` is below the acceptance ratio.
    block
        How many neighbouring records are accepted or rejected together; the last block may be shorter.
    window
        How many blocks are decided on side by side; 1 for one after the other.
    """
    current = release.contributions(records)
    # The sum is taken afresh in each sweep, so that rounding does not pile up over sweeps.
    residual = release.origin - jnp.sum(current, axis=1)
    decisions = decide(release, residual, release.contributions(offers) - current, uniforms, block, window)
    moved = take_if(decisions.accepted, offers, records)
    where, num_broken = (decisions.residual, decisions.log_density), jnp.sum(decisions.broken)
    return finish(release, moved, *where, decisions.accepted.astype(int), num_broken, decisions.num_rounds)


def decide(release: Release, residual: Array, changes: Array, uniforms: Array, block: int, window: int) -> Decisions:
    """The decisions for each record [m] on offers that change the sum by the columns of changes [d, m]."""
    columns, log_uniforms = sum_blocks(changes, block), jnp.log(uniforms)
    if window == 1:
        decisions = decide_in_turn(release, residual, columns, log_uniforms)
    else:
        decisions = decide_in_rounds(release, residual, columns, log_uniforms, window)
    if block == 1:
        return decisions
    return decisions._replace(accepted=jnp.repeat(decisions.accepted, block)[: changes.shape[1]])


def decide_in_turn(release: Release, residual: Array, changes: Array, log_uniforms: Array) -> Decisions:
    """The decisions on offers that change the sum by the columns of changes [d, offers], one after the other."""

    def attempt(carry: Any, offer: Any) -> Any:
        (residual, log_density), (change, log_uniform) = carry, offer
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
