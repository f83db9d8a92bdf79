"""Data sets that a posterior gives, and how analyses of several of them are combined.

*Completed* data are the confidential records as the chains impute them, draws from p(records | release). *Synthetic*
data are new records, of any number, from the model at draws of the parameters. Both are functions of the release and
cost no privacy beyond it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import jax
import numpy as np
import scipy
from jax.typing import ArrayLike

from dpjax._util.spelling import names_methods
from dpjax._util.validation import check_count, check_key, check_share, fail, read_numbers
from dpjax._util.warn import warn_at_the_call
from dpjax.base import Key, Model, Parameters, Records
from dpjax.data_augmentation.counts.table import COUNTS, TableSums
from dpjax.data_augmentation.problem import Problem
from dpjax.data_augmentation.records.unknown_number import DataSetSum
from dpjax.data_augmentation.summed_out import MarginalLikelihood, sum_out
from dpjax.models.data_sets import NUMBER
from dpjax.models.programs import jit_model
from dpjax.models.simulation import GibbsState, parameter_shapes
from dpjax.posterior.further import draw_further, spacing_of
from dpjax.posterior.reports import level_names_of
from dpjax.release.unknown_count import is_unknown
from dpjax.release.weights import check_unweighted

if TYPE_CHECKING:
    from dpjax.posterior.posterior import Posterior

ROUNDING = 1e-9
"""How far below zero an eigenvalue of a matrix of correlations may be by rounding."""

Kind = Literal["completed", "synthetic"]


class Combined(NamedTuple):
    """What several data sets say together about a vector of estimands.

    Attributes
    ----------
    estimate
        The mean of the estimates [k].
    covariance
        Its covariance [k, k].
    degrees_of_freedom
        Those of the t distribution of each estimate [k].

    Examples
    --------
    >>> from dpjax.posterior.completed import Combined
    >>> import numpy as np
    >>> both = Combined(np.array([1.0]), np.array([[0.04]]), np.array([12.0]))
    >>> low, high = both.confidence_interval(0.9)
    >>> print(low.round(2), high.round(2))
    [0.64] [1.36]
    """

    estimate: np.ndarray
    covariance: np.ndarray
    degrees_of_freedom: np.ndarray

    @property
    def standard_errors(self) -> np.ndarray:
        """The square roots of the variances [k]."""
        return np.sqrt(np.diagonal(self.covariance))

    def confidence_interval(self, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper ends [k] of the intervals of a level."""
        check_share("level", level)
        half = scipy.stats.t.ppf((1 + level) / 2, self.degrees_of_freedom) * self.standard_errors
        return self.estimate - half, self.estimate + half


@names_methods
@dataclass(frozen=True, eq=False, repr=False)
class DataSets:
    """Several data sets; ``data[k]`` is one, ``data.frame(k)`` the same as a DataFrame.

    Parameters
    ----------
    kind
        ``"completed"`` or ``"synthetic"``, which decides how analyses are combined.
    parameters
        The draw [data set, ...] that each is from.
    records
        Arrays [data set, n, ...] by field; or the possible records [c, ...] if `counts` says how many there are of
        each.
    counts
        How many of each possible record there are [data set, c]; None if records are listed.
    num_records
        How many records each data set has [data set]; of listed records the others are padding.
    level_names
        The names of the levels of fields that have such, which `frame` shows in place of their numbers.

    Examples
    --------
    >>> from dpjax.posterior.completed import DataSets
    >>> import numpy as np
    >>> data = DataSets("synthetic", {}, {"y": np.array([0, 1])}, np.array([[2, 1], [0, 3]]), np.array([3, 3]))
    >>> [one["y"].tolist() for one in data]
    [[0, 0, 1], [1, 1, 1]]
    """

    kind: Kind
    parameters: Parameters
    records: Records
    counts: np.ndarray | None
    num_records: np.ndarray
    level_names: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.num_records)

    def __repr__(self) -> str:
        return f"{len(self)} {self.kind} data sets of {', '.join(self.records)}"

    def __getitem__(self, number: int) -> dict[str, np.ndarray]:
        if self.counts is not None:
            return {name: np.repeat(leaf, self.counts[number], axis=0) for name, leaf in self.records.items()}
        return {name: leaf[number, : self.num_records[number]] for name, leaf in self.records.items()}

    def __iter__(self) -> Iterator[dict[str, np.ndarray]]:
        return (self[number] for number in range(len(self)))

    def frame(self, number: int) -> Any:
        """One data set as a pandas DataFrame: a column for each entry of each field, such as ``x[0]``.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        from dpjax.diagnostics.frames import to_frame

        data = self[number]
        return to_frame(data | {name: np.asarray(names)[data[name]] for name, names in self.level_names.items()})

    def combine(self, estimates: ArrayLike, covariances: ArrayLike) -> Combined:
        """What analyses of all data sets say together; see `combine`, whose rule is that of the kind of data."""
        return combine(estimates, covariances, kind=self.kind)


def combine(estimates: ArrayLike, covariances: ArrayLike, *, kind: Kind) -> Combined:
    """The estimate, its covariance and degrees of freedom by m analyses of m data sets.

    For completed data the covariance is W + (1 + 1/m) B, with the mean W of the analyses' covariances and the
    covariance B between their estimates (Rubin 1987, chapter 3). For synthetic data it is (1 + 1/m) B − W, as B has in
    it how new records vary about their model, and W says how much that is. See Raghunathan, Reiter and Rubin (2003),
    and for private releases Räisä, Jälkö, Kaski and Honkela (2023). The posterior knows of the noise of the mechanism,
    and so do these.

    Parameters
    ----------
    estimates
        Those of each data set [m, k], or [m].
    covariances
        Their covariances within a data set [m, k, k]; variances [m, k] or [m] stand for a diagonal.
    kind
        ``"completed"`` or ``"synthetic"``; synthetic data sets have as many records as the confidential ones here.

    Raises
    ------
    TypeError, ValueError
        If there are fewer than two data sets, shapes do not fit, numbers are not finite, or the kind has another name.

    Notes
    -----
    For synthetic data (1 + 1/m) B − W may have a variance that is not positive. That estimand then has the variance of
    W and no covariance with those that have one (Reiter 2002). Correlations of the others are shrunk by one factor
    if their matrix has a negative eigenvalue, and standard errors stay. Both are warned of: draw more data sets.

    Examples
    --------
    >>> import dpjax
    >>> both = dpjax.posterior.combine([1.0, 1.2, 0.9], [0.01, 0.02, 0.01], kind="completed")
    >>> print(both.estimate.round(3), both.standard_errors.round(3))
    [1.033] [0.211]
    """
    if kind not in ("completed", "synthetic"):
        fail("kind", repr(kind), "'completed' or 'synthetic'", "Say what the data sets are.")
    found, within = check_analyses(estimates, covariances)
    m = len(found)
    between = (1 + 1 / m) * np.atleast_2d(np.cov(found, rowvar=False))
    ratio = np.diagonal(within) / np.maximum(np.diagonal(between), np.finfo(float).tiny)
    if kind == "completed":
        return Combined(found.mean(axis=0), within + between, (m - 1) * (1 + ratio) ** 2)
    fails = ratio >= 1
    if np.any(fails):
        text = f"(1 + 1/m) B - W is not positive for the estimands {np.flatnonzero(fails).tolist()}, which have W"
        warn_at_the_call(f"{text} in its place. Draw more data sets.")
    covariance = np.where(np.outer(fails, fails), within, 0.0)
    covariance[np.ix_(~fails, ~fails)] = shrink_correlations((between - within)[np.ix_(~fails, ~fails)])
    return Combined(found.mean(axis=0), covariance, (m - 1) * np.where(fails, 1.0, 1 - ratio) ** 2)


def shrink_correlations(matrix: np.ndarray) -> np.ndarray:
    """A matrix [k, k] of these variances, with the largest share of its correlations that makes it a covariance."""
    variances = np.diagonal(matrix)
    scales = np.sqrt(np.where(variances > 0, variances, 1.0))
    others = matrix - np.diag(variances)
    least = np.min(np.linalg.eigvalsh(others / np.outer(scales, scales)), initial=0.0)
    if least >= -1 - ROUNDING:
        return matrix
    text = "(1 + 1/m) B - W has a negative eigenvalue: correlations between estimands are shrunk"
    warn_at_the_call(f"{text} by a factor of {-1 / least:.2g}. Draw more data sets.")
    return np.diag(variances) - others / least


def check_analyses(estimates: ArrayLike, covariances: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Estimates [m, k] and the mean of the covariances [k, k], or an error."""
    remedy = "Pass one analysis for each data set."
    found = read_numbers("estimates", estimates, "finite numbers [m, k]", remedy)
    found = found[:, None] if found.ndim == 1 else found
    if found.ndim != 2 or len(found) < 2 or not np.all(np.isfinite(found)):
        fail("estimates", f"an array of shape {list(found.shape)}", "finite numbers [m, k], m at least 2", remedy)
    m, k = found.shape
    given = read_numbers("covariances", covariances, "finite numbers [m, k, k]", remedy)
    given = given[:, None] if given.ndim == 1 else given
    given = given[..., None] * np.eye(k) if given.shape == (m, k) else given
    if given.shape != (m, k, k) or not np.all(np.isfinite(given)) or np.any(np.diagonal(given, axis1=1, axis2=2) < 0):
        expected = f"finite covariances of shape [{m}, {k}, {k}], or variances [{m}, {k}]"
        fail("covariances", f"an array of shape {list(given.shape)}", expected, remedy)
    return found, given.mean(axis=0)


def complete(posterior: "Posterior", key: Key, num: int) -> DataSets:
    """Data sets whose records are imputed; see `Posterior.completed`."""
    check_key("key", key)
    check_count("num", num)
    if posterior.final_states is None or posterior.plan is None:
        remedy = "Use posterior.synthetic, or dpjax.sample."
        fail("posterior", "one without imputed records", "one of dpjax.sample with them", remedy)
    check_unweighted(posterior.model, posterior.release, "posterior", "imputed data sets")
    if posterior.plan.sums_out:
        return replace(draw_summed_out(posterior, key, num), level_names=level_names_of(posterior))
    key_spacing, key_draws = jax.random.split(key)
    drawn = draw_further(posterior, key_draws, num, spacing_of(posterior, key_spacing), take_data)
    return replace(as_data_sets(posterior.problem, *drawn), level_names=level_names_of(posterior))


def draw_summed_out(posterior: "Posterior", key: Key, num: int) -> DataSets:
    """Data sets of records that were summed out, drawn given evenly spaced draws of the parameters."""
    draws = {name: posterior.draws[name] for name in parameter_shapes(posterior.model)}
    size = posterior.info["acceptance_rate"].size
    chosen = np.linspace(0, size - 1, num).round().astype(int)
    parameters = {name: leaf.reshape(size, *leaf.shape[2:])[chosen] for name, leaf in draws.items()}
    likelihood = sum_out(posterior.model, posterior.release, parameters)
    return as_data_sets(posterior.problem, parameters, draw_given(posterior.model, likelihood, key, parameters))


@jit_model
def draw_given(model: Model, likelihood: MarginalLikelihood, key: Key, parameters: Parameters) -> Records:
    """Records [draw, n, ...] given parameters [draw, ...] and what was released."""
    del model
    keys = jax.random.split(key, len(jax.tree.leaves(parameters)[0]))
    return jax.lax.map(lambda given: likelihood.sample_records(*given), (keys, parameters))


def take_data(state: GibbsState) -> tuple[Parameters, Records]:
    """Parameters and records."""
    return state.parameters, state.latent.records


def as_data_sets(problem: Problem, parameters: Parameters, records: Records) -> DataSets:
    """Data sets of imputed records [data set, n, ...], of counts, or of records in an unknown number.

    Which of these they are is seen in the statistic of the release that an imputation has formed: fields may have any
    name.
    """
    model, statistic = problem.given_model, getattr(problem.release, "statistic", None)
    if isinstance(statistic, TableSums):
        counts = records[COUNTS][:, 0].astype(int)
        support = {name: np.asarray(leaf) for name, leaf in model.domain().items()}
        return DataSets("completed", parameters, support, counts, counts.sum(axis=1))
    if isinstance(statistic, DataSetSum):
        rows = {name: leaf[:, 0] for name, leaf in records.items() if name != NUMBER}
        return DataSets("completed", parameters, rows, None, records[NUMBER][:, 0])
    number, length = np.shape(next(iter(records.values())))[:2]
    return DataSets("completed", parameters, records, None, np.full(number, length))


def synthesize(
    key: Key, model: Model, parameters: Parameters, n: int, level_names: Mapping[str, Sequence[str]]
) -> DataSets:
    """A data set of n new records at each of the parameters [data set, ...]; see `Posterior.synthetic`."""
    check_count("n", n)
    records = {name: np.asarray(leaf) for name, leaf in draw_records(model, n, key, parameters).items()}
    sizes = np.full(len(next(iter(records.values()))), n)
    return DataSets("synthetic", parameters, records, None, sizes, level_names)


def default_size(posterior: "Posterior") -> int:
    """As many records as there are confidential ones."""
    if posterior.release.n is None or is_unknown(posterior.release):
        fail("n", None, "a positive whole number, as the number of records is unknown", "Pass n.")
    return int(posterior.release.n)


@partial(jit_model, static_argnames=("n",))
def draw_records(model: Model, n: int, key: Key, parameters: Parameters) -> Records:
    """Records [draw, n, ...] from the model at parameters [draw, ...]."""
    num = len(jax.tree.leaves(parameters)[0])
    return jax.vmap(model.sample_records, in_axes=(0, 0, None))(jax.random.split(key, num), parameters, n)
