"""Preconditioned Crank–Nicolson moves (pCN) over blocks of the records' standard Normal noise.

A record is x = T(θ, v) with noise v ~ N(0, 1); given the record, v is drawn if several numbers give it. The proposal
is T(θ, ρ v + √(1 − ρ²) ξ) with fresh ξ ~ N(0, 1), a move that is reversible for p(records | θ). So a block of
neighbouring records accepts its proposals with probability min(1, η′ / η): Cotter, Roberts, Stuart and White (2013),
section 4. With ρ = 0 and blocks of one record this is IMwG.

The proposals do not depend on what other blocks do, so all are made at once and only sums over blocks go through the
scan. An elliptical slice would have to build its proposals within the scan, one after the other.
"""

from dataclasses import dataclass, replace
from functools import partial
from numbers import Real
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.spelling import names_arguments
from dpjax._util.validation import check_count, describe, fail
from dpjax.base import Array, ImputationKernel, Key, Latent, Model, Parameters
from dpjax.data_augmentation.kernel_checks import builds_kernel
from dpjax.data_augmentation.records.imwg import build_systematic_kernel, sum_blocks
from dpjax.data_augmentation.records.proposals import build_proposal, check_noisy, proposal_at
from dpjax.data_augmentation.records.rounds import Window, check_window, choose_window, window_of, window_with_default
from dpjax.data_augmentation.records.soma import candidate_sizes
from dpjax.models.programs import jit_model
from dpjax.models.record_noise import has_scores
from dpjax.numerics import proper_density
from dpjax.numerics.linear_algebra import product
from dpjax.release import PrivateRelease, Release
from dpjax.release.summed import as_sum

CORRELATIONS = (0.0, 0.5, 0.8, 0.9, 0.95, 0.98)
"""Candidate correlations."""

FIXED_COST = 1.5
"""Cost of a sweep per record besides its scan, in steps of the scan; see docs/samplers.md."""


MAX_BLOCK = 64
"""Largest block: beyond, the cost of the scan is negligible, so that larger blocks save nothing."""

ENOUGH_RECORDS = 2_048
"""Number of proposals evaluated per chain, or all n if these are more."""


@dataclass(frozen=True)
class PCN:
    """pCN; called with a model and a release, it builds the kernel."""

    block: int | Literal["auto"]
    correlation: float | Literal["auto"]
    window: Window = None

    @builds_kernel
    def __call__(self, model: Model, release: PrivateRelease) -> ImputationKernel:
        """A kernel that leaves p(records | parameters, release) invariant."""
        remedy = "Records with their own released values are independent: use dpjax.imwg()."
        release = as_sum(release, remedy, asker="pcn(...)")
        check_noisy(release, "pcn(...)")
        if self.block == "auto" or self.correlation == "auto":
            name, given = ("block", self.block) if self.block == "auto" else ("correlation", self.correlation)
            fail(name, repr(given), "a number once the kernel is built", "dpjax.sample tunes it; else pass a number.")
        if self.block > release.n:
            fail("block", self.block, f"a whole number in 1..{release.n}", "A block holds at most all n records.")
        if self.correlation > 0 and not has_scores(model):
            fail(
                "correlation",
                self.correlation,
                "0, because the model does not write its records through standard Normal noise",
                "Give model.noncentred its `scores`, or use dpjax.pcn(correlation=0) or dpjax.imwg().",
            )
        proposal = proposal_at(model, self.correlation)
        return build_systematic_kernel(model, release, proposal, self.block, window_of(self.window))

    @property
    def needs_tuning(self) -> bool:
        """Whether block, correlation or window is left to the warm-up."""
        return "auto" in (self.block, self.correlation, self.window)

    def with_defaults(self, model: Model, release: PrivateRelease) -> "PCN":
        """With independent proposals to single records, in the default window of the backend, by default."""
        del model, release
        block = 1 if self.block == "auto" else self.block
        correlation = 0.0 if self.correlation == "auto" else self.correlation
        return PCN(block, correlation, window_with_default(self.window))

    def tune(self, key: Key, model: Model, release: Release, latent: Latent, parameters: Parameters) -> "PCN":
        """With the block and correlation that move the statistic most for their cost, and then the cheapest window."""
        block_key, window_key = jax.random.split(key)
        blocks = candidate_blocks(release.n) if self.block == "auto" else (self.block,)
        correlations = candidate_correlations(model) if self.correlation == "auto" else (self.correlation,)
        block, correlation = choose_block(block_key, model, release, latent, parameters, blocks, correlations)
        chosen = replace(self, block=block, correlation=correlation)
        if self.window != "auto":
            return chosen
        return replace(chosen, window=choose_window(window_key, chosen, model, release, latent, parameters))


@names_arguments
def pcn(
    block: int | Literal["auto"] = "auto", correlation: float | Literal["auto"] = "auto", window: Window = None
) -> PCN:
    """Impute the records by pCN moves over blocks of their noise.

    Parameters
    ----------
    block
        How many neighbouring records are accepted or rejected together, in 1..n; ``"auto"`` to let ``dpjax.sample``
        choose. Large blocks are cheap if the release is noisy; the last one may be shorter.
    correlation
        That of old and proposed noise, in [0, 1): 0 proposals independent draws from the model, near 1 small steps.
        ``"auto"`` to let ``dpjax.sample`` choose. Above 0 the model must have `NonCentred.scores`.
    window
        How many blocks are decided on side by side, as of `imwg`.

    Raises
    ------
    ValueError, TypeError
        If block or window is not a positive whole number or correlation is not in [0, 1). At the build, if the block
        exceeds n, the model lacks scores that are needed, or the release is local (`dpjax.imwg` is exact or vectorised
        there).

    Examples
    --------
    >>> import dpjax
    >>> dpjax.pcn(block=50, correlation=0.9).block
    50
    """
    if not (isinstance(block, str) and block == "auto"):
        block = check_count("block", block, "Pass a whole number in 1..n or 'auto'.")
    if not (isinstance(correlation, str) and correlation == "auto"):
        if isinstance(correlation, bool) or not isinstance(correlation, Real) or not 0 <= correlation < 1:
            fail(
                "correlation",
                describe(correlation),
                "a number in [0, 1) or 'auto'",
                "Pass 0 for independent proposals.",
            )
        correlation = float(correlation)
    return PCN(block, correlation, check_window(window))


def candidate_blocks(n: int) -> tuple[int, ...]:
    """The powers of two below n, and n, all at most `MAX_BLOCK`."""
    return candidate_sizes(n, MAX_BLOCK)


def candidate_correlations(model: Model) -> tuple[float, ...]:
    """All `CORRELATIONS`, or 0 alone if the model has no standard Normal noise."""
    return CORRELATIONS if has_scores(model) else (0.0,)


def choose_block(
    key: Key,
    model: Model,
    release: Release,
    latent: Latent,
    parameters: Parameters,
    blocks: tuple[int, ...],
    correlations: tuple[float, ...],
) -> tuple[int, float]:
    """The block and correlation of the greatest expected squared jump of the statistic for its cost.

    Parameters
    ----------
    latent
        The records of the chains, leaves [chain, ...].
    parameters
        Their parameters, leaves [chain, ...].
    blocks
        The sizes to choose from.
    correlations
        The correlations to choose from.
    """
    keys = jax.random.split(key, latent.log_density.shape[0])
    jumps = np.asarray(mean_jumps(model, blocks, correlations, release, latent, parameters, keys), float)
    gains = jumps / (FIXED_COST + 1.0 / np.asarray(blocks, float))
    row, column = np.unravel_index(np.argmax(gains), gains.shape)
    return blocks[column], correlations[row]


@partial(jit_model, static_argnames=("blocks", "correlations"))
def mean_jumps(
    model: Model,
    blocks: tuple[int, ...],
    correlations: tuple[float, ...],
    release: Release,
    latent: Latent,
    parameters: Parameters,
    keys: Key,
) -> Array:
    """The expected squared jump [correlations, blocks] of a sweep, averaged over chains.

    Each coordinate of the statistic counts in units of what independent proposals that are all accepted would give.
    """
    proposal = build_proposal(model, correlated=correlations != (0.0,))

    def chain(key: Key, latent: Latent, parameters: Parameters) -> Array:
        unit_key, proposal_key = jax.random.split(key)
        current = release.contributions(latent.records)
        fresh = release.contributions(model.sample_records(unit_key, parameters, release.n)) - current
        unit = jnp.sum(fresh**2, axis=1)
        weights = jnp.where(unit > 0, 1 / jnp.where(unit > 0, unit, 1.0), 0.0)

        def jumps(correlation: Array, index: Array) -> Array:
            # One key for all correlations: they are compared on the same innovations.
            proposals = proposal(jax.random.fold_in(proposal_key, index), parameters, latent.records, correlation)
            changes = release.contributions(proposals) - current
            return jnp.stack([expected_jump(release, latent, sum_blocks(changes, block), weights) for block in blocks])

        def mean_jump(correlation: Array) -> Array:
            repeats = jnp.arange(num_repeats(release.n))
            return jnp.mean(jax.lax.map(lambda index: jumps(correlation, index), repeats), axis=0)

        return jax.lax.map(mean_jump, jnp.asarray(correlations, float))

    return jnp.mean(jax.vmap(chain)(keys, latent, parameters), axis=0)


def num_repeats(n: int) -> int:
    """How many sweeps' proposals are averaged: few records make few blocks."""
    return max(1, ENOUGH_RECORDS // n)


def expected_jump(release: Release, latent: Latent, changes: Array, weights: Array) -> Array:
    """Σ min(1, η′/η) |change|² over the changes [d, blocks] of the statistic, its coordinates weighted by [d]."""
    residual = release.noisy_sum - latent.statistic
    log_densities = proper_density(release.log_densities_at(residual[:, None] - changes))
    acceptance = jnp.exp(jnp.minimum(log_densities - latent.log_density, 0.0))
    return jnp.sum(acceptance * (product(weights, changes**2)))
