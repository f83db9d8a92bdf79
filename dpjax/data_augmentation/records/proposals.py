"""Common parts of imputation sweeps: decisions on proposals, and the update of the records."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from dpjax._util.validation import fail, is_traced
from dpjax.base import Array, ImputationInfo, Key, Latent, Model, Parameters, Records
from dpjax.mechanisms.base import parts_of
from dpjax.models.record_noise import normal_scores, scores_of
from dpjax.numerics import accept, leading_size, tree_where
from dpjax.numerics.normals import standard_normals
from dpjax.release import Release

Proposal = Callable[[Key, Parameters, Records, Array | float], Records]


class Decisions(NamedTuple):
    """The decisions on a sweep's proposals.

    Attributes
    ----------
    residual
        The residual after them [d].
    log_density
        The log-density [] at it.
    accepted
        Which of them were accepted [proposals].
    broken
        Which had a non-finite density [proposals].
    num_rounds
        How many rounds of decisions were made []; None if each proposal was decided on in turn.
    """

    residual: Array
    log_density: Array
    accepted: Array
    broken: Array
    num_rounds: Array | None = None


DEEPEST = 8.0
"""Largest log ratio between residues at which sums of records, which move one by one, pass from one to the next."""


def check_exchangeable(model: Model, imputation: str) -> None:
    """Raise if a proposal drawn for one record could not be made to another."""
    if not model.exchangeable:
        fail(
            "imputation",
            f"{imputation} with records that are not identically distributed",
            "exchangeable records, because proposals are made to any place",
            "Use dpjax.imwg(), which proposes for each record a draw from its own distribution.",
        )


KEEP_TOTALS = "If records take few values use imputation=dpjax.counts(), whose moves keep known totals. "
NO_TOTALS = "Else leave out what is exact, or state it with the noise of its rounding."


def check_noisy(release: Release, imputation: str, remedy: str = KEEP_TOTALS + NO_TOTALS) -> None:
    """Raise if a part of the release has no noise: single records could hardly move without changing its total."""
    parts = [mechanism for mechanism, _ in parts_of(release.mechanism, len(release.value))]
    if any(part.sums.tells for part in parts):
        fail(
            "imputation",
            f"{imputation} with a release that is exact in part",
            "noise on every released number, because records are imputed one by one",
            remedy,
        )
    check_wraps(release, imputation)


def check_wraps(release: Release, imputation: str) -> None:
    """Raise if values are residues, and single records could hardly move the sum between those a modulus apart."""
    for part, _ in parts_of(release.mechanism, len(release.value)):
        if part.sums.period and not is_traced(part) and part.sums.depth() > DEEPEST:
            given = f"{imputation} with residues modulo {part.sums.period}"
            expected = "noise that is wide against the modulus, because records are imputed one by one"
            remedy = "Subtract the modulus from values above its half; or impute counts, if records take few values."
            fail("imputation", given, expected, remedy)


def metropolis(
    release: Release, residual: Array, log_density: Array, proposed: Array, log_uniform: Array
) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """Accept the proposed residual [d] with probability min(1, η′/η); a non-finite density is rejected."""
    proposed_log_density = release.log_density_at(proposed)
    accepted, broken = accept(proposed_log_density, log_density, log_uniform)
    kept = (jnp.where(accepted, proposed, residual), jnp.where(accepted, proposed_log_density, log_density))
    return kept, (accepted, broken)


def take_sources(source: Array, proposals: Records, records: Records) -> Records:
    """The proposal ``source[i]`` at place i [n] where it is not negative, else the record."""
    chosen = jax.tree.map(lambda proposal: proposal[jnp.maximum(source, 0)], proposals)
    return tree_where(source >= 0, chosen, records)


def latent_after(
    release: Release,
    records: Records,
    residual: Array,
    log_density: Array,
    accepted: Array,
    num_nonfinite: Array,
    num_rounds: Array | None = None,
) -> tuple[Latent, ImputationInfo]:
    """The latent state and the report after a sweep of n proposals.

    Parameters
    ----------
    residual : [d]
        ``release.noisy_sum`` less the summed statistic of the records.
    accepted : [n]
        How many proposals each record took.
    """
    info = ImputationInfo(jnp.sum(accepted) / release.n, accepted, num_nonfinite, num_rounds)
    return Latent(records, release.noisy_sum - residual, log_density), info


def build_proposal(model: Model, correlated: bool) -> Proposal:
    """The proposals ``(key, parameters, records, correlation) -> records``, one to each record."""
    if not correlated:
        return lambda key, parameters, records, _: model.sample_records(key, parameters, leading_size(records))

    def proposal(key: Key, parameters: Parameters, records: Records, correlation: Array | float) -> Records:
        noise_key, fresh_key = jax.random.split(key)
        scores = scores_of(model, noise_key, parameters, records)
        proposals = mix(model, parameters, scores, draw_like(fresh_key, scores), correlation)
        # A record in the far tail that no finite noise gives does not change.
        return tree_where(have_noise(scores), proposals, records)

    return proposal


def proposal_at(model: Model, correlation: float) -> Callable[[Key, Parameters, Records], Records]:
    """The proposals of one correlation."""
    proposal = build_proposal(model, correlated=correlation > 0)
    return lambda key, parameters, records: proposal(key, parameters, records, correlation)


def have_noise(scores: Any) -> Array:
    """Which records [n] have finite scores."""
    finite = [jnp.isfinite(leaf).all(axis=tuple(range(leaf.ndim - 1))) for leaf in jax.tree.leaves(scores)]
    return jnp.stack(finite).all(axis=0)


def draw_like(key: Key, scores: Any) -> Any:
    """Standard Normal draws of the same structure."""
    leaves, structure = jax.tree.flatten(scores)
    draws = [
        standard_normals(jax.random.fold_in(key, index), leaf.shape, leaf.dtype) for index, leaf in enumerate(leaves)
    ]
    return jax.tree.unflatten(structure, draws)


def mix(model: Model, parameters: Parameters, scores: Any, fresh: Any, correlation: Array | float) -> Records:
    """The records at ``correlation · scores + √(1 − correlation²) · fresh``."""
    spread = jnp.sqrt(1 - jnp.square(jnp.asarray(correlation, float)))
    mixed = jax.tree.map(lambda old, new: (correlation * old + spread * new).astype(old.dtype), scores, fresh)
    return model.noncentred.records(parameters, normal_scores(model).noise(mixed))
