"""The contracts that every part of dpjax meets: kernels, models, mechanisms and imputations.

A *kernel* is a pure function ``step(rng_key, state) -> (state, info)`` on NamedTuples, in BlackJAX's form.
*Records* are a dict of named fields with a leading axis ``n``; *parameters* are a dict of named arrays.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
from blackjax.base import SamplingAlgorithm

__all__ = [
    "Array",
    "Imputation",
    "ImputationInfo",
    "ImputationKernel",
    "Key",
    "Latent",
    "Mechanism",
    "Model",
    "NonCentred",
    "Parameters",
    "Records",
    "SamplingAlgorithm",
    "Statistic",
]

Array = jax.Array
Key = jax.Array
Records = dict[str, Any]
Parameters = dict[str, Any]
Statistic = Callable[[Records], Array]


class NonCentred(NamedTuple):
    """Records written as ``x = records(parameters, noise)``, where the noise is free of the parameters.

    noise
        ``(key, parameters, records) -> noise``: the noise that gives these records; a draw from its
        conditional law where several do (discrete fields), else the key is ignored.
    records
        ``(parameters, noise) -> records``.
    """

    noise: Callable[[Key, Parameters, Records], Any]
    records: Callable[[Parameters, Any], Records]


class Model(NamedTuple):
    """A complete-data model: records independent given the parameters, and a prior.

    sample_prior
        ``key -> parameters``.
    log_prior
        ``parameters -> []``, the log-density on the natural scale.
    sample_records
        ``(key, parameters, n) -> records`` with leading axis n.
    log_density
        ``(parameters, records) -> [n]``, one value per record.
    update
        ``(key, parameters, records) -> parameters``, a draw that leaves p(parameters | records) invariant.
        Without it a BlackJAX kernel on the unconstrained scale is used.
    noncentred
        The non-centred form; with it, interweaving is on by default.
    unconstrain, constrain
        Maps between the parameters and a dict of unconstrained arrays of the same names; the identity
        where every real value is allowed. Give both or neither.
    log_jacobian
        ``unconstrained -> []``: log |det| of ``constrain``. Needed only where ``constrain`` is not elementwise.
    summarize, log_likelihood
        ``records -> summary`` and ``(parameters, summary) -> []``: the log-density of all records through
        a sufficient statistic, so that a parameter kernel pays for the records once a sweep.
        Give both or neither.
    support
        ``() -> records``: every possible record, leading axis [c], where there are finitely many.
    normal_field
        ``parameters -> (mean, standard deviation)`` where the model's one field is Normal given the parameters.
    derived
        ``parameters -> dict``: further quantities reported beside the draws, such as odds ratios.
    """

    sample_prior: Callable[[Key], Parameters]
    log_prior: Callable[[Parameters], Array]
    sample_records: Callable[[Key, Parameters, int], Records]
    log_density: Callable[[Parameters, Records], Array]
    update: Callable[[Key, Parameters, Records], Parameters] | None = None
    noncentred: NonCentred | None = None
    unconstrain: Callable[[Parameters], Parameters] | None = None
    constrain: Callable[[Parameters], Parameters] | None = None
    log_jacobian: Callable[[Parameters], Array] | None = None
    summarize: Callable[[Records], Any] | None = None
    log_likelihood: Callable[[Parameters, Any], Array] | None = None
    support: Callable[[], Records] | None = None
    normal_field: Callable[[Parameters], tuple[Array, Array]] | None = None
    derived: Callable[[Parameters], Parameters] | None = None


@runtime_checkable
class Mechanism(Protocol):
    """How a statistic was privatized: a conditional law of the released value given the statistic."""

    def log_density(self, value: Array, statistic: Array) -> Array:
        """The normalised log-density [] of the value [d] given the statistic [d]."""

    def sample(self, key: Key, statistic: Array) -> Array:
        """A released value [d] given the statistic [d]."""


class Latent(NamedTuple):
    """What an imputation kernel carries: the records, their summed statistic and the release's log-density.

    records
        The imputed confidential records, leading axis [n].
    statistic
        Their summed statistic [d]; empty [0] for a local release.
    log_density
        log η(release | records) [].
    """

    records: Records
    statistic: Array
    log_density: Array


class ImputationInfo(NamedTuple):
    """What an imputation sweep reports.

    acceptance_rate
        The share of offers accepted [].
    accepted
        How many offers each record accepted [n].
    num_nonfinite
        How many offers were rejected because their density was not a number [].
    """

    acceptance_rate: Array
    accepted: Array
    num_nonfinite: Array


ImputationKernel = Callable[[Key, Latent, Parameters], tuple[Latent, ImputationInfo]]
"""``step(rng_key, latent, parameters) -> (latent, info)``."""


class Imputation(Protocol):
    """Builds a kernel for the records given the parameters and a release.

    An imputation is hashable (a frozen dataclass or a module-level function), so that programs compiled
    for it are found again.
    """

    def __call__(self, model: Model, release: Any) -> ImputationKernel:
        """A kernel that leaves p(records | parameters, release) invariant."""
