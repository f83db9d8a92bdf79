"""The contracts that every part of dpjax meets: kernels, models and imputations.

A *kernel* is a pure function ``step(rng_key, state) -> (state, info)`` on NamedTuples, in BlackJAX's form.
*Records* are a dict of named fields with a leading axis ``n``; *parameters* are a dict of named arrays.
"""

from collections import namedtuple
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.lazy import lazy_names
from dpjax._util.printing import MAX_LINES, Printed
from dpjax._util.pytree import Given, PyTree, static
from dpjax._util.words import describe_model
from dpjax.domain import Domain, domain_by

if TYPE_CHECKING:
    from blackjax.base import SamplingAlgorithm
else:
    __getattr__, __dir__ = lazy_names(__name__, {"blackjax.base": "SamplingAlgorithm"})

__all__ = [
    "Array",
    "ConjugateCounts",
    "Coordinates",
    "FunctionModel",
    "Imputation",
    "ImputationInfo",
    "ImputationKernel",
    "Key",
    "Latent",
    "MixedRecords",
    "Model",
    "NonCentred",
    "NormalScores",
    "Parameters",
    "Records",
    "SamplingAlgorithm",
    "Statistic",
    "static",
]

Array = jax.Array
Key = jax.Array
Records = dict[str, Any]
Parameters = dict[str, Any]
Statistic = Callable[[Records], Array]


class NormalScores(NamedTuple):
    """Noise as standard Normal variables, independent of each other and of the parameters.

    Attributes
    ----------
    scores
        ``noise -> normals``, of the same structure and shapes.
    noise
        ``normals -> noise``, its inverse.

    Examples
    --------
    >>> import dpjax
    >>> scores = dpjax.base.NormalScores(scores=lambda noise: noise["z"], noise=lambda normals: {"z": normals})
    >>> scores.noise(scores.scores({"z": 1.0}))
    {'z': 1.0}
    """

    scores: Callable[[Any], Any]
    noise: Callable[[Any], Any]


class Coordinates(NamedTuple):
    """Unconstrained coordinates of the parameters.

    Attributes
    ----------
    unconstrain
        From the parameters to a dict of real arrays of the same names.
    constrain
        Its inverse.
    log_jacobian
        ``unconstrained -> []``: log |det| of ``constrain``.
    """

    unconstrain: Callable[[Parameters], Parameters]
    constrain: Callable[[Parameters], Parameters]
    log_jacobian: Callable[[Parameters], Array]


class NonCentred(NamedTuple):
    """Records written as ``x = records(parameters, noise)``, where the noise is free of the parameters, or nearly so.

    Attributes
    ----------
    noise
        ``(key, parameters, records) -> noise``: the noise that gives these records, leaves of last axis [n]; a draw
        from its conditional distribution if several do (discrete fields), else the key is ignored.
    records
        ``(parameters, noise) -> records``.
    log_density
        ``(parameters, noise) -> [n]``: the log-density of each record's noise given the parameters, up to what does
        not depend on them. None if the noise is free of them.
    scores
        The noise as standard Normal variables, if it can be so written.
    forms
        Pairs of a field and a description of its noise.
    coordinates
        Coordinates in which the parameters are updated while the noise is fixed, if not the model's own.
    possible
        ``(parameters, noise) -> [n] bool``: whether the noise gives a record. It does not if the noise is NaN, or if
        the record would be out of range. None if it always does.
    sums
        ``noise -> sum``, where ``sum(parameters, contributions) -> (total [d], possible [])`` adds up
        ``contributions(records) [d, m]`` faster than one by one, and says whether all noise gives a record; or None.

    Examples
    --------
    >>> import dpjax
    >>> shifted = dpjax.models.NonCentred(lambda key, theta, x: x - theta, lambda theta, noise: theta + noise)
    >>> shifted.records(2.0, shifted.noise(None, 2.0, 5.0))
    5.0
    """

    noise: Callable[[Key, Parameters, Records], Any]
    records: Callable[[Parameters, Any], Records]
    log_density: Callable[[Parameters, Any], Array] | None = None
    scores: NormalScores | None = None
    forms: tuple[tuple[str, str], ...] = ()
    coordinates: Coordinates | None = None
    possible: Callable[[Parameters, Any], Array] | None = None
    sums: Callable[[Any], Callable[[Parameters, Callable[[Records], Array]], tuple[Array, Array]]] | None = None


class ConjugateCounts(NamedTuple):
    """The counts of the possible records with the parameters integrated out, for independent Dirichlet priors.

    With counts c of the possible records and sums S_q of the counts that belong to q,
    p(c | n) ∝ Π_k 1 / c_k! · Π_q Γ(S_q + shift_q)^sign_q.

    Attributes
    ----------
    places
        The indices of the sums to which each possible record adds 1, int [c, m]; no index twice within a row.
    shift
        The shift of each sum [q].
    sign
        +1 for the count of a level and −1 for the total of a Dirichlet distribution [q].
    update
        ``(key, sums) -> parameters``, a draw from p(parameters | counts) given the sums [q].
    log_density
        ``(parameters, sums) -> []``: the normalised log-density of that draw.
    """

    places: Array | np.ndarray
    shift: Array
    sign: Array | np.ndarray
    update: Callable[[Key, Array], Parameters]
    log_density: Callable[[Parameters, Array], Array]


class MixedRecords(NamedTuple):
    """Records with discrete fields among continuous ones, by scores at which sums over all levels are smooth.

    Attributes
    ----------
    levels
        ``() -> levels``: every combination of the values of the discrete fields, leading axis [c].
    num_scores
        The number k of standard Normal variables that the continuous fields of one record are made of.
    records
        ``(parameters, scores, levels) -> (records, log_probability)``. The records [m] have continuous fields with
        these scores [k, m] and discrete fields with these levels [m]. The log-probability [m] is that of the levels,
        each given the fields before it.
    """

    levels: Callable[[], Records]
    num_scores: int
    records: Callable[[Parameters, Array, Records], tuple[Records, Array]]


class Model(Printed, PyTree, abstract=True):
    """A complete-data model: records independent given the parameters, and a prior.

    A model of one's own is a subclass, whose fields are its numbers: the first four methods are enough. Models of one
    class that differ in numbers alone share compiled programs. Fields marked `static` say what is compiled.

    ``Model(sample_prior, log_prior, sample_records, log_density, ...)`` is a model of functions, which has no class of
    its own. Other functions and values are passed by the names of the members below.

    Examples
    --------
    >>> import dpjax, jax, jax.numpy as jnp, jax.scipy.stats as laws
    >>> class Location(dpjax.Model):
    ...     scale: float
    ...     def sample_prior(self, key):
    ...         return {"mean": self.scale * jax.random.normal(key)}
    ...     def log_prior(self, parameters):
    ...         return laws.norm.logpdf(parameters["mean"], 0.0, self.scale)
    ...     def sample_records(self, key, parameters, n):
    ...         return {"y": parameters["mean"] + jax.random.normal(key, (n,))}
    ...     def log_density(self, parameters, records):
    ...         return laws.norm.logpdf(records["y"], parameters["mean"])
    >>> Location(2.0) == Location(2.0), Location(2.0) == Location(3.0)
    (True, False)
    """

    def __new__(cls, *functions: Any, **others: Any) -> Any:
        """A model of functions, if no subclass is asked for."""
        return super().__new__(FunctionModel if cls is Model else cls)

    def sample_prior(self, key: Key) -> Parameters:
        """A draw from the prior."""
        raise NotImplementedError

    def log_prior(self, parameters: Parameters) -> Array:
        """The log-density [] of the prior on the natural scale."""
        raise NotImplementedError

    def sample_records(self, key: Key, parameters: Parameters, n: int) -> Records:
        """Records with leading axis n, drawn given the parameters."""
        raise NotImplementedError

    def log_density(self, parameters: Parameters, records: Records) -> Array:
        """The log-density of each record [n]."""
        raise NotImplementedError

    def log_joint(self, parameters: Parameters, records: Records) -> Array:
        """The log-density [] of parameters and records: that of the prior, and the sum of `log_density`."""
        return self.log_prior(parameters) + self.log_density(parameters, records).sum()

    # What makes samplers faster.

    def update(self, key: Key, parameters: Parameters, records: Records) -> Parameters:
        """A draw that leaves p(parameters | records) invariant.

        By default the parameters as they are, which a BlackJAX kernel then moves on the unconstrained scale.
        """
        return parameters

    @property
    def noncentred(self) -> NonCentred:
        """The non-centred form, with which interweaving is on by default; else the records are their own noise."""
        return NonCentred(lambda key, parameters, records: records, lambda parameters, noise: noise, self.log_density)

    def update_log_density(self, new: Parameters, parameters: Parameters, records: Records) -> Array:
        """The normalised log-density [] of `update` at ``new``, by which coupled chains meet before all records do."""
        raise NotImplementedError

    def summarize(self, records: Records) -> Any:
        """A sufficient statistic, given with `log_likelihood`: kernels read records once. By default the records."""
        return records

    def log_likelihood(self, parameters: Parameters, summary: Any) -> Array:
        """The log-density [] of all records given their summary."""
        return self.log_density(parameters, summary).sum()

    def statistic_moments(self, parameters: Parameters, statistic: Statistic) -> tuple[Array, Array | None] | None:
        """The mean [d] and covariance [d, d] of one record's contribution to a released sum.

        They are averaged over records that are not identically distributed. If the covariance, or the whole result, is
        None, quadrature is used. For `dpjax.sample_clt`.
        """
        return None

    def conjugate(self) -> ConjugateCounts:
        """The counts with the parameters integrated out, if that can be done and there are finitely many records."""
        raise NotImplementedError

    # What is known of the parameters.

    def unconstrain(self, parameters: Parameters) -> Parameters:
        """A dict of unconstrained arrays of the same names; the parameters, if all reals are allowed."""
        return parameters

    def constrain(self, unconstrained: Parameters) -> Parameters:
        """The inverse of `unconstrain`."""
        return unconstrained

    def log_jacobian(self, unconstrained: Parameters) -> Array:
        """log |det| [] of `constrain`. Needed only if that is not elementwise."""
        if not self.has("constrain"):
            return jnp.zeros(())
        # An elementwise map has a diagonal Jacobian: one forward derivative along the vector of ones holds all of it.
        _, slopes = jax.jvp(self.constrain, (unconstrained,), (jax.tree.map(jnp.ones_like, unconstrained),))
        return sum((jnp.sum(jnp.log(jnp.abs(slope))) for slope in jax.tree.leaves(slopes)), start=jnp.zeros(()))

    def derived(self, parameters: Parameters) -> Parameters:
        """Further quantities reported beside the draws, such as odds ratios; none by default."""
        return {}

    # What is known of the records.

    @property
    def support(self) -> Callable[[], Records] | None:
        """``() -> records``: every possible record, leading axis [c], if there are finitely many."""
        return None

    @property
    def discrete_support(self) -> Callable[[], Records] | None:
        """``() -> records``: every combination of the values of discrete fields among others, leading axis [c]."""
        return None

    @property
    def domain(self) -> Domain:
        """What records can be if it is finite; else the discrete fields among others, as far as they are listed."""
        return domain_by(self.support, self.mixed.levels if self.has("mixed") else self.discrete_support)

    @property
    def num_records(self) -> int | None:
        """The only number of records that the model describes, such as that of its known covariates; None for any.

        ``sample_records`` then returns the first n of them for a smaller n.
        """
        return None

    def check_number(self, n: Any) -> None:
        """Raise if the model is another one with n records, the number of a release."""

    @property
    def draws_prior(self) -> bool:
        """Whether `sample_prior` draws from the prior, as from no improper one; if not, only starts use its draws."""
        return True

    @property
    def exchangeable(self) -> bool:
        """True if records are i.i.d. given the parameters; False if the distribution of record i depends on i."""
        return True

    @property
    def record_covariates(self) -> tuple[Any, ...] | None:
        """What is known of the records [n, ...] and makes their distributions differ; None if it cannot be listed."""
        return () if self.exchangeable else None

    @property
    def known_columns(self) -> dict[str, Any]:
        """What is known of the records [n, ...] by name, such as covariates and the names of groups, for `to_arviz`."""
        return {}

    def of_records(self, places: Array | np.ndarray) -> "Model":
        """The model of the records at some places [m] alone, with their covariates; asked for if these are listed."""
        return self

    @property
    def count_field(self) -> str | None:
        """The only random field, if that is an integer [] whose values are not listed; others have density 0."""
        return None

    def normal_field(self, parameters: Parameters) -> tuple[Array, Array]:
        """Mean and standard deviation, [] or [n], if the one field is Normal given the parameters."""
        raise NotImplementedError

    def binomial_field(self, parameters: Parameters) -> tuple[Array, Array]:
        """Number of trials and probability, [] or [n], if the one field is Binomial given the parameters."""
        raise NotImplementedError

    @property
    def mixed(self) -> MixedRecords:
        """The records by scores and levels, if discrete fields stand among continuous ones. For `dpjax.sample_clt`."""
        raise NotImplementedError

    @property
    def level_names(self) -> dict[str, tuple[str, ...]]:
        """The names of the levels of the records' fields, where they have names."""
        return {}

    def entry_labels(self, level_names: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[tuple[str, ...], ...]]:
        """The names of the entries of draws, one tuple for each axis, given those of levels."""
        return {}

    def reported(self, records: Records) -> Records:
        """Quantities of the records reported beside the draws, such as an unknown number; none by default."""
        return {}

    def log_density_between(self, parameters: Parameters, records: Records, ends: Any) -> Array:
        """The log-density [n] of records whose fields of these names lie between two ends [n], or are equal to both."""
        raise NotImplementedError

    def chain_field(self, parameters: Parameters) -> Any:
        """The sums along the one field if that is a chain in time: one of `dpjax.numerics.chains`, rows [1] or [n]."""
        raise NotImplementedError

    def has(self, member: str) -> bool:
        """Whether the model has a member of its own, such as ``"update"``, and not the default."""
        return getattr(type(self), member) is not getattr(Model, member)

    def _replace(self, **changes: Any) -> "FunctionModel":
        """The model with other functions or values in place of some, as of NamedTuples: a model of functions."""
        return FunctionModel(**{name: getattr(self, name) for name in MEMBERS if self.has(name)} | changes)

    def describe(self) -> str:
        """A text: parameters, record fields, how the parameters are updated, and the non-centred form of each field."""
        return describe_model(self)

    def __repr__(self) -> str:
        try:
            lines = self.describe().splitlines()
        except Exception:  # whatever a function of the user's own may raise
            lines = []
        return "\n".join([type(self).__name__, *lines][:MAX_LINES])


NOT_GIVEN: tuple[str, ...] = ("has", "domain", "log_joint", "describe", "of_records", "record_covariates")
NOT_GIVEN += ("known_columns", "level_names", "entry_labels")
"""What a model says with its other members, and what goes with arrays or names: a model of functions has none."""

MEMBERS = tuple(name for name in vars(Model) if not name.startswith("_") and name not in NOT_GIVEN)
"""The functions and values of a model, in the order in which a model of functions takes them."""

REQUIRED = MEMBERS[:4]
"""Those without a default."""

Functions: Any = namedtuple("Functions", MEMBERS, defaults=[None] * len(MEMBERS[len(REQUIRED) :]))  # type: ignore[misc]
"""The members of a model of functions, None for those that are left out."""


class FunctionModel(Model):
    """A model of functions, which are static: a program is compiled for each of them."""

    functions: Any = static()

    def __init__(self, *functions: Any, **others: Any) -> None:
        object.__setattr__(self, "functions", Functions(*functions, **others))

    def has(self, member: str) -> bool:
        """Whether it was given."""
        return getattr(self.functions, member) is not None


for _name in MEMBERS:
    setattr(FunctionModel, _name, Given(_name))


class Latent(NamedTuple):
    """The state of an imputation kernel: the records, their summed statistic and the release's log-density.

    Attributes
    ----------
    records
        The imputed confidential records, leading axis [n].
    statistic
        Their summed statistic [d]; empty [0] for a local release.
    log_density
        log η(release | records) [].

    Examples
    --------
    >>> from dpjax.base import Latent
    >>> Latent(records={"y": [1.0, 2.0]}, statistic=[3.0], log_density=-1.5).statistic
    [3.0]
    """

    records: Records
    statistic: Array
    log_density: Array


class ImputationInfo(NamedTuple):
    """The report of an imputation sweep.

    Attributes
    ----------
    acceptance_rate
        The share of proposals accepted [].
    accepted
        How many proposals each record accepted [n].
    num_nonfinite
        How many proposals were rejected because their density was non-finite [].
    num_rounds
        The number of rounds that a sweep in windows took []; None if proposals are decided one by one.

    Examples
    --------
    >>> from dpjax.base import ImputationInfo
    >>> ImputationInfo(acceptance_rate=0.5, accepted=[1, 0], num_nonfinite=0).acceptance_rate
    0.5
    """

    acceptance_rate: Array
    accepted: Array
    num_nonfinite: Array
    num_rounds: Array | None = None


ImputationKernel = Callable[[Key, Latent, Parameters], tuple[Latent, ImputationInfo]]
"""``step(rng_key, latent, parameters) -> (latent, info)``."""


class Imputation(Protocol):
    """Builds a kernel for the records given the parameters and a release.

    It is hashable (a frozen dataclass or a module-level function), so that programs compiled for it are reused.
    """

    def __call__(self, model: Model, release: Any) -> ImputationKernel:
        """A kernel that leaves p(records | parameters, release) invariant."""
