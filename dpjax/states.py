"""Where a chain is: parameters with records, and what a sampler carries from sweep to sweep."""

from typing import NamedTuple

import jax.numpy as jnp

from dpjax.base import Latent, Parameters, Records
from dpjax.release import LocalRelease, Release


class Position(NamedTuple):
    """Where a chain is: parameters on their natural scale and records with leading axis [n]."""

    parameters: Parameters
    records: Records


class GibbsState(NamedTuple):
    """What the sampler carries: the parameters and the latent state of the imputation."""

    parameters: Parameters
    latent: Latent


def init_latent(release: Release | LocalRelease, records: Records) -> Latent:
    """The latent state at given records [n, ...]: their summed statistic and the log-density of the release."""
    if isinstance(release, LocalRelease):
        return Latent(records, jnp.zeros(0), release.log_likelihood(records))
    statistic = release.total(records)
    return Latent(records, statistic, release.log_density(statistic))


def init_state(release: Release | LocalRelease, position: Position) -> GibbsState:
    """The state at a position."""
    return GibbsState(position.parameters, init_latent(release, position.records))
