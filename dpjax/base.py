"""The contracts that every part of dpjax meets: kernels, models and imputations.

A *kernel* is a pure function ``step(rng_key, state) -> (state, info)`` on NamedTuples, in BlackJAX's form.
*Records* are a dict of named fields with a leading axis ``n``; *parameters* are a dict of named arrays.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import jax
import numpy as np

from dpjax._util.lazy import lazy_names

if TYPE_CHECKING:
    from blackjax.base import SamplingAlgorithm
else:
    __getattr__, __dir__ = lazy_names(__name__, {"blackjax.base": "SamplingAlgorithm"})

__all__ = [
    "Array",
    "ConjugateCounts",
    "Coordinates",
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
    >>> import jax.numpy as jnp
    >>> scores = NormalScores(scores=lambda noise: noise["z"], noise=lambda normals: {"z": normals})
    >>> scores.noise(scores.scores({"z": jnp.ones(2)}))["z"].tolist()
    [1.0, 1.0]
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
        from its conditional distribution where several do (discrete fields), else the key is ignored.
    records
        ``(parameters, noise) -> records``.
    log_density
        ``(parameters, noise) -> [n]``: the log-density of each record's noise given the parameters, up to what does
        not depend on them. None where the noise is free of them.
    scores
        The noise as standard Normal variables, where it can be so written.
    forms
        Pairs of a field and a description of its noise.
    coordinates
        Coordinates in which the parameters are updated while the noise is fixed, if not the model's own: standardised
        group effects of a hierarchy, for instance.
    possible
        ``(parameters, noise) -> [n] bool``: whether the noise gives a record. It does not where the noise is NaN,
        because the record lies too far out, nor where the record would be out of range. None if it always does.
    sums
        ``noise -> sum``, where ``sum(parameters, contributions) -> (total [d], possible [])`` adds up
        ``contributions(records) [d, m]`` over the records of this noise, faster than one by one, and says whether all
        noise gives a record. None if there is no such way.

    Examples
    --------
    >>> shifted = NonCentred(lambda key, theta, x: x - theta, lambda theta, noise: theta + noise)
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


def show_shapes(fields: dict[str, Any]) -> str:
    """Names, types and shapes of arrays as text."""
    return ", ".join(f"{name} {leaf.dtype}{list(leaf.shape)}" for name, leaf in fields.items()) or "none"


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
    """Records with discrete fields among continuous ones, written by the scores of these and the levels of those.

    Sums over all levels at each point of the scores are smooth in the parameters, where records drawn by noise for
    their discrete fields too are not.

    Attributes
    ----------
    levels
        ``() -> levels``: every combination of the values of the discrete fields, leading axis [c].
    num_scores
        The number k of standard Normal variables that the continuous fields of one record are made of.
    records
        ``(parameters, scores, levels) -> (records, log_probability)``: the records [m] whose continuous fields have
        these scores [k, m] and whose discrete fields have these levels [m], and the log-probability [m] of the levels,
        each given the fields before it.
    """

    levels: Callable[[], Records]
    num_scores: int
    records: Callable[[Parameters, Array, Records], tuple[Records, Array]]


class Model(NamedTuple):
    """A complete-data model: records independent given the parameters, and a prior.

    The first four functions are enough. Then follow what makes samplers faster (from `update` on), what is known of the
    parameters (from `unconstrain` on), what is known of the records (from `support` on), and how the model was built.

    Attributes
    ----------
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
    update_log_density
        ``(new, parameters, records) -> []``: the normalised log-density of ``update(key, parameters, records)`` at
        `new`. With it coupled chains can meet in the parameters before they have met in every record.
    summarize
        ``records -> summary``, a sufficient statistic, so that a parameter kernel reads the records once a sweep.
        Give it with `log_likelihood`, or neither.
    log_likelihood
        ``(parameters, summary) -> []``: the log-density of all records.
    statistic_moments
        ``(parameters, statistic) -> (mean [d], covariance [d, d])`` of one record's contribution to a released sum,
        averaged over records that are not identically distributed. Where the covariance, or the whole result, is
        None, quadrature is used. For `dpjax.sample_clt`.
    conjugate
        ``() -> ConjugateCounts`` where there are finitely many possible records and the parameters can be integrated
        out.
    unconstrain
        From the parameters to a dict of unconstrained arrays of the same names; the identity where every real value
        is allowed. Give it with `constrain`, or neither.
    constrain
        The inverse of `unconstrain`.
    log_jacobian
        ``unconstrained -> []``: log |det| of ``constrain``. Needed only where ``constrain`` is not elementwise.
    derived
        ``parameters -> dict``: further quantities reported beside the draws, such as odds ratios.
    support
        ``() -> records``: every possible record, leading axis [c], where there are finitely many.
    num_records
        The only number of records that the model describes, such as that of its known covariates; None for any.
        ``sample_records`` then returns the first n of them for a smaller n.
    check_number
        ``n -> None``: raises where the model is not what it was taken for with the number of records of a release.
    exchangeable
        True if records are i.i.d. given the parameters. If False, the distribution of record i depends on i in
        ``sample_records`` and ``log_density``, so samplers keep records in order.
    count_field
        The name of the only random field, where that is an integer [] without an upper bound and ``log_density`` is −∞
        at impossible integers.
    normal_field
        ``parameters -> (mean, standard deviation)`` where the model's one field is Normal given the parameters.
    mixed
        The records by scores and levels, where discrete fields stand among continuous ones. For `dpjax.sample_clt`.
    reported
        ``records -> dict``: quantities of the records reported beside the draws, such as their number where that is
        unknown.
    recipe
        How the model is built, so that it can be pickled, and that its numbers can be arguments of compiled programs.

    Examples
    --------
    >>> import jax, jax.numpy as jnp
    >>> import dpjax
    >>> rate_prior = dpjax.models.GammaPrior(2.0, 1.0)
    >>> def sample_records(key, parameters, n):
    ...     return {"y": jax.random.exponential(key, (n,)) / parameters["rate"]}
    >>> def log_density(parameters, records):
    ...     return jnp.log(parameters["rate"]) - parameters["rate"] * records["y"]
    >>> model = Model(
    ...     sample_prior=lambda key: {"rate": jax.random.gamma(key, 2.0)},
    ...     log_prior=lambda parameters: jnp.log(parameters["rate"]) - parameters["rate"],
    ...     sample_records=sample_records,
    ...     log_density=log_density,
    ... )
    >>> dpjax.models.check_model(model)
    """

    # What every model has.
    sample_prior: Callable[[Key], Parameters]
    log_prior: Callable[[Parameters], Array]
    sample_records: Callable[[Key, Parameters, int], Records]
    log_density: Callable[[Parameters, Records], Array]
    # What makes it faster.
    update: Callable[[Key, Parameters, Records], Parameters] | None = None
    noncentred: NonCentred | None = None
    update_log_density: Callable[[Parameters, Parameters, Records], Array] | None = None
    summarize: Callable[[Records], Any] | None = None
    log_likelihood: Callable[[Parameters, Any], Array] | None = None
    statistic_moments: Callable[[Parameters, Statistic], tuple[Array, Array | None] | None] | None = None
    conjugate: Callable[[], ConjugateCounts] | None = None
    # What is known of its parameters.
    unconstrain: Callable[[Parameters], Parameters] | None = None
    constrain: Callable[[Parameters], Parameters] | None = None
    log_jacobian: Callable[[Parameters], Array] | None = None
    derived: Callable[[Parameters], Parameters] | None = None
    # What is known of its records.
    support: Callable[[], Records] | None = None
    num_records: int | None = None
    check_number: Callable[[Any], None] | None = None
    exchangeable: bool = True
    count_field: str | None = None
    normal_field: Callable[[Parameters], tuple[Array, Array]] | None = None
    mixed: MixedRecords | None = None
    reported: Callable[[Records], Records] | None = None
    # How it was built.
    recipe: Any = None

    def __reduce__(self) -> Any:
        return self.recipe.reduce() if self.recipe and self.recipe.matches(self) else (Model, tuple(self[:-1]))

    def describe(self) -> str:
        """A text: parameters, record fields, how the parameters are updated, and the non-centred form of each field."""
        key = jax.eval_shape(jax.random.key, 0)
        parameters = jax.eval_shape(self.sample_prior, key)
        n = self.num_records or 1
        records = jax.eval_shape(lambda key, parameters: self.sample_records(key, parameters, n), key, parameters)
        one = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), records)
        lines = [
            f"parameters: {show_shapes(parameters)}",
            f"records: {show_shapes(one)}; {'any number' if self.num_records is None else self.num_records}, "
            + ("identically distributed" if self.exchangeable else "not identically distributed"),
            "parameters given records: " + ("an exact draw" if self.update else "a BlackJAX kernel"),
            "interweaving: " + ("on by default" if self.noncentred else "not possible"),
            *(f"  {field}: {form}" for field, form in (self.noncentred.forms if self.noncentred else ())),
        ]
        return "\n".join(lines)


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
    >>> import dpjax, jax
    >>> model = dpjax.models.normal(dpjax.models.NormalPrior(0.0, 5.0), variance=4.0)
    >>> release = dpjax.Release([12.0], dpjax.Laplace(8.0), dpjax.statistics.total("y", -10.0, 10.0), n=10)
    >>> latent = dpjax.impute(model, release, {"mean": 1.0}).init({"y": jax.numpy.ones(10)})
    >>> float(latent.statistic[0])
    10.0
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
        The number of rounds that a sweep in windows took []; None where proposals are decided one by one.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> accepted = jnp.array([1, 0, 1])
    >>> info = ImputationInfo(acceptance_rate=jnp.mean(accepted), accepted=accepted, num_nonfinite=jnp.array(0))
    >>> round(float(info.acceptance_rate), 2)
    0.67
    """

    acceptance_rate: Array
    accepted: Array
    num_nonfinite: Array
    num_rounds: Array | None = None


ImputationKernel = Callable[[Key, Latent, Parameters], tuple[Latent, ImputationInfo]]
"""``step(rng_key, latent, parameters) -> (latent, info)``."""


class Imputation(Protocol):
    """Builds a kernel for the records given the parameters and a release.

    An imputation is hashable (a frozen dataclass or a module-level function), so that programs compiled
    for it are reused.
    """

    def __call__(self, model: Model, release: Any) -> ImputationKernel:
        """A kernel that leaves p(records | parameters, release) invariant."""
