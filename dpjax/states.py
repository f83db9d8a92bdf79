"""Where a chain is: parameters with records, and what a sampler carries from sweep to sweep."""

from typing import NamedTuple

from dpjax.base import Latent, Parameters, Records
from dpjax.release import PrivateRelease


class Position(NamedTuple):
    """Where a chain is: parameters on their natural scale and records with leading axis [n].

    Attributes
    ----------
    parameters
        On their natural scale.
    records
        Each field with leading axis [n].
    """

    parameters: Parameters
    records: Records


class GibbsState(NamedTuple):
    """What the sampler carries: the parameters and the latent state of the imputation.

    Attributes
    ----------
    parameters
        On their natural scale.
    latent
        The state of the imputation.

    Examples
    --------
    >>> import dpjax
    >>> import jax
    >>> model = dpjax.models.normal(dpjax.models.NormalPrior(0.0, 5.0), variance=4.0)
    >>> release = dpjax.Release([12.0], dpjax.Laplace(8.0), dpjax.statistics.total("y", -10.0, 10.0), n=10)
    >>> algorithm = dpjax.gibbs(model, release, tuning=dpjax.initial_tuning(jax.random.key(1), model))
    >>> state = algorithm.init(dpjax.Position({"mean": 1.0}, {"y": jax.numpy.ones(10)}))
    >>> float(state.latent.statistic[0])
    10.0
    """

    parameters: Parameters
    latent: Latent


def init_latent(release: PrivateRelease, records: Records) -> Latent:
    """The latent state at given records [n, ...]: their summed statistic and the log-density of the release."""
    return Latent(records, *release.total_and_density(records))


def init_state(release: PrivateRelease, position: Position) -> GibbsState:
    """The state at a position."""
    return GibbsState(position.parameters, init_latent(release, position.records))
