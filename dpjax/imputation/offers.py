"""What imputation sweeps share: the decision on an offer, and the move of accepted ones into the records."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from dpjax.base import Array, ImputationInfo, Latent, Model, Records
from dpjax.mechanisms.base import is_exact, parts_of
from dpjax.numerics import take_if
from dpjax.release import Release
from dpjax.validation import fail


class Decisions(NamedTuple):
    """What became of a sweep's offers.

    Attributes
    ----------
    residual
        Where they lead [d].
    log_density
        The log-density [] there.
    accepted
        Which of them were accepted [offers].
    broken
        Which had a density that is not a number [offers].
    num_rounds
        How many rounds of decisions were made []; None where each offer was decided on in turn.
    """

    residual: Array
    log_density: Array
    accepted: Array
    broken: Array
    num_rounds: Array | None = None


def check_exchangeable(model: Model, imputation: str) -> None:
    """Raise if an offer drawn for one record could not be made to another."""
    if not model.exchangeable:
        fail(
            "imputation",
            f"{imputation} with a model whose records have laws of their own",
            "exchangeable records, because offers are made to any place",
            "Use dpjax.imwg(), which offers each record a draw from its own law.",
        )


def check_noisy(release: Release, imputation: str) -> None:
    """Raise if a part of the release has no noise: single records could hardly move without changing its total."""
    if any(is_exact(mechanism) for mechanism, _ in parts_of(release.mechanism, len(release.value))):
        fail(
            "imputation",
            f"{imputation} with a release that is exact in part",
            "noise on every released number, because records are imputed one by one",
            "Use imputation=dpjax.counts(), whose moves keep known totals.",
        )


def metropolis(
    release: Release, residual: Array, log_density: Array, proposed: Array, log_uniform: Array
) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """Accept the proposed residual [d] with probability min(1, η′/η); a density that is none is a rejection."""
    proposed_log_density = release.log_density_at(proposed)
    accepted, broken = accept(proposed_log_density, log_density, log_uniform)
    kept = (jnp.where(accepted, proposed, residual), jnp.where(accepted, proposed_log_density, log_density))
    return kept, (accepted, broken)


def accept(proposed: Array, log_density: Array, log_uniform: Array) -> tuple[Array, Array]:
    """Whether the offer of a log-density [...] is accepted after the present one, and whether their ratio is none."""
    log_ratio = proposed - log_density
    return (log_uniform < log_ratio) & (proposed < jnp.inf), ~(log_ratio < jnp.inf)


def take_sources(source: Array, offers: Records, records: Records) -> Records:
    """The offer ``source[i]`` at place i [n] where it is not negative, else the record."""
    chosen = jax.tree.map(lambda offer: offer[jnp.maximum(source, 0)], offers)
    return take_if(source >= 0, chosen, records)


def finish(
    release: Release,
    records: Records,
    residual: Array,
    log_density: Array,
    accepted: Array,
    num_nonfinite: Array,
    num_rounds: Array | None = None,
) -> tuple[Latent, ImputationInfo]:
    """The latent state and the report after a sweep of n offers.

    Parameters
    ----------
    residual : [d]
        ``release.origin`` less the summed statistic of the records.
    accepted : [n]
        How many offers each record took.
    """
    info = ImputationInfo(jnp.sum(accepted) / release.n, accepted, num_nonfinite, num_rounds)
    return Latent(records, release.origin - residual, log_density), info
