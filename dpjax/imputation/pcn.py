"""Preconditioned Crank–Nicolson moves (pCN) over blocks of the records' standard Normal noise.

A record is x = T(θ, v) with noise v ~ N(0, 1); given the record, v is drawn where several numbers give it. The offer
is T(θ, ρ v + √(1 − ρ²) ξ) with fresh ξ ~ N(0, 1), a move that leaves the law of the records given θ as it is, so that
a block of neighbouring records takes its offers with probability min(1, η′ / η): Cotter, Roberts, Stuart and White
(2013), section 4. With ρ = 0 and blocks of one record this is IMwG.

The offers do not depend on what other blocks do, so all are made at once and only sums over blocks go through the scan.
An elliptical slice would have to build its offers within the scan, one after the other.
"""

from dataclasses import dataclass, replace
from numbers import Real
from typing import Literal

import jax

from dpjax.base import ImputationKernel, Key, Latent, Model, Parameters
from dpjax.imputation.blocks import candidate_blocks, candidate_correlations, choose_block
from dpjax.imputation.noise_offers import offer_at
from dpjax.imputation.offers import check_noisy
from dpjax.imputation.systematic import build_systematic_kernel
from dpjax.imputation.widths import Window, check_window, choose_window, closed_window, window_of
from dpjax.models.noise_columns import has_scores
from dpjax.release import PrivateRelease, Release
from dpjax.release.summed import as_sum
from dpjax.validation import check_count, fail


@dataclass(frozen=True)
class PCN:
    """The choice of pCN; call it with a model and a release for the kernel."""

    block: int | Literal["auto"]
    correlation: float | Literal["auto"]
    window: Window = None

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
        offer = offer_at(model, self.correlation)
        return build_systematic_kernel(model, release, offer, self.block, window_of(self.window))

    @property
    def is_open(self) -> bool:
        """Whether block, correlation or window is left to the warm-up."""
        return "auto" in (self.block, self.correlation, self.window)

    def closed(self) -> "PCN":
        """With independent offers to single records, in the window of the machine, wherever the choice is open."""
        block = 1 if self.block == "auto" else self.block
        correlation = 0.0 if self.correlation == "auto" else self.correlation
        return PCN(block, correlation, closed_window(self.window))

    def adapt(self, key: Key, model: Model, release: Release, latent: Latent, parameters: Parameters) -> "PCN":
        """With the block and correlation that move the statistic most for their cost, and then the cheapest window."""
        block_key, window_key = jax.random.split(key)
        blocks = candidate_blocks(release.n) if self.block == "auto" else (self.block,)
        correlations = candidate_correlations(model) if self.correlation == "auto" else (self.correlation,)
        block, correlation = choose_block(block_key, model, release, latent, parameters, blocks, correlations)
        chosen = replace(self, block=block, correlation=correlation)
        if self.window != "auto":
            return chosen
        return replace(chosen, window=choose_window(window_key, chosen, model, release, latent, parameters))


def pcn(
    block: int | Literal["auto"] = "auto", correlation: float | Literal["auto"] = "auto", window: Window = None
) -> PCN:
    """Impute the records by pCN moves over blocks of their noise.

    Parameters
    ----------
    block
        How many neighbouring records are accepted or rejected together, in 1..n; ``"auto"`` to let ``dpjax.sample``
        choose. Large blocks are cheap where the release is noisy; the last one may be shorter.
    correlation
        That of old and offered noise, in [0, 1): 0 offers independent draws from the model, near 1 small steps.
        ``"auto"`` to let ``dpjax.sample`` choose. Above 0 the model must have `NonCentred.scores`.
    window
        How many blocks are decided on side by side, as of `imwg`.

    Raises
    ------
    ValueError, TypeError
        If block or window is not a positive whole number or correlation is not in [0, 1); at the build, if the block
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
            fail("correlation", repr(correlation), "a number in [0, 1) or 'auto'", "Pass 0 for independent offers.")
        correlation = float(correlation)
    return PCN(block, correlation, check_window(window))
