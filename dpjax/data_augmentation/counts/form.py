"""The count form of a model and a release: a whole table is one record, whose field counts each possible value.

A model of records and a release of their sum become a model of one table and a release of the sum over its cells.
Both are an ordinary `Model` and `Release`, so that everything that works with records works with tables, at a cost that
does not grow with the number of records.
"""

import warnings
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln

from dpjax._util.pytree import static
from dpjax._util.validation import fail, is_traced, name_of
from dpjax.base import Array, Key, Model, Parameters, Records
from dpjax.data_augmentation.counts.table import COUNTS, CellLayout, Frozen, Structure, Table, TableSums, lay_out
from dpjax.domain import LARGEST_DOMAIN
from dpjax.mechanisms import Gaussian, Independent
from dpjax.mechanisms.base import Mechanism, parts_of
from dpjax.models.data_sets import NUMBER, take_number
from dpjax.models.programs import jit_model
from dpjax.models.same_parameters import SameParameters
from dpjax.models.simulation import position_shapes
from dpjax.numerics.counts import draw_multinomial
from dpjax.numerics.linear_algebra import product
from dpjax.release import PrecisionWarning, PrivateRelease, Release
from dpjax.release.joint import fill_up
from dpjax.release.unknown_count import UnknownCount, is_unknown
from dpjax.statistics import linear
from dpjax.statistics.base import statistic_at

__all__ = ["as_count_model", "count_form", "find_obstacle", "prefers_counts"]

NO_TOTALS = (
    "Neither counts nor records keep its exact sums: leave these out, or state them with their rounding as noise."
)

RECORDS_PER_CELL = 64
"""Smallest number of records per cell from which counts are faster if the parameters are not integrated out.

They then mix less well than records, whose latent normals can be fixed while the parameters move.
"""

LARGEST_TOGETHER = 256
"""Largest number of possible records under a mechanism that reads its sums together: moves are then made one by one."""

MAX_WIDTH = 256
"""Largest width of the windows of moves."""

NUM_DRAWS = 16
"""Number of prior draws of the parameters; a cell of probability 0 at all of them is taken to be impossible."""


def find_obstacle(model: Model, release: PrivateRelease) -> tuple[str, str, str] | None:
    """Why counts cannot replace the records: what was given, what is expected and the remedy; None if they can."""
    remedy = NO_TOTALS if tells_sums(release) else "Impute the records: dpjax.imwg()."
    summed = release.summed
    if release.fields or summed is None:
        return f"a {type(release).__name__}", "a release of one summed value", remedy
    domain = model.domain
    if not domain.is_finite:
        expected = f"a model whose records take at most {LARGEST_DOMAIN} possible values, which its `support` lists"
        return "a model of records without a listed support", expected, remedy
    if not model.exchangeable:
        return "a model of records that are not identically distributed", "exchangeable records", remedy
    if len(summed.value) > len(summed.noisy_sum):
        return f"{len(summed.value)} values of {len(summed.noisy_sum)} sums", "no more values than sums", remedy
    if obstacle := find_obstacle_of_mechanisms(summed, domain.size):
        return *obstacle, remedy
    if not 1 < domain.size <= LARGEST_DOMAIN:
        return f"{domain.size} possible records", f"from 2 to {LARGEST_DOMAIN}", remedy
    if missing := sorted(set(position_shapes(model, 1).records) - set(domain.fields)):
        return f"fields {missing} that the support does not list", "a support of whole records", remedy
    return None


def tells_sums(release: PrivateRelease) -> bool:
    """Whether sums are known that no move of one record after the other keeps."""
    summed = release.summed
    if summed is None:
        return False
    return any(part.sums.tells for part, _ in parts_of(summed.mechanism, len(summed.value)))


def find_obstacle_of_mechanisms(release: Release, num_cells: int) -> tuple[str, str] | None:
    """What was given and what is expected of the mechanisms; None if counts can be moved under all."""
    for mechanism, _ in parts_of(release.mechanism, len(release.observed)):
        if mechanism._is_opaque:
            return f"a mechanism {name_of(mechanism)}", "a mechanism that is a pytree"
        if reads_together(mechanism) and num_cells > LARGEST_TOGETHER:
            given = f"{num_cells} possible records and a mechanism {name_of(mechanism)}"
            return given, f"noise on each sum by itself, or at most {LARGEST_TOGETHER} possible records"
    return None


def reads_together(mechanism: Any) -> bool:
    """Whether the density of a value depends on its sums together, and is no product over them."""
    return not (
        mechanism.sums.known or mechanism.noise is not None or mechanism._is_elementwise or can_decorrelate(mechanism)
    )


def can_decorrelate(mechanism: Mechanism) -> bool:
    """Whether combinations of the sums have independent noise, which are found if the covariance is numbers."""
    is_simple = mechanism._is_elementwise or mechanism.noise is not None
    return not (is_simple or is_traced(mechanism)) and mechanism._normal_covariance(1) is not None


def prefers_counts(model: Model, release: PrivateRelease) -> bool:
    """Whether counts can stand for the records, and are cheaper or the only latent data that fit."""
    if find_obstacle(model, release):
        return False
    summed, num_cells = release.summed, model.domain.size
    parts = [mechanism for mechanism, _ in parts_of(summed.mechanism, len(summed.value))]
    if any(part.sums.known or part.sums.reveals for part in parts) or is_unknown(release):
        return True
    return num_cells * (1 if model.has("conjugate") else RECORDS_PER_CELL) <= release.n


def count_form(model: Model, release: PrivateRelease) -> tuple[Model, Release]:
    """The count form of a model and a release.

    Parameters
    ----------
    model
        A model whose records are exchangeable and take finitely many values, listed by its `support`.
    release
        A `Release` of sums over the records, each with noise of its own or by a mechanism that reads them together.

    Returns
    -------
    model
        The model of one record ``{"counts": [c] int}``: a multinomial draw. Parameters are those of the given model.
    release
        The release of n = 1 such record.

    Raises
    ------
    TypeError, ValueError
        If the records are continuous, too many values are possible, or more values were released than there are sums.
    """
    if release.summed is not None and isinstance(release.summed.statistic, TableSums):
        return model, release.summed
    if obstacle := find_obstacle(model, release):
        given, expected, remedy = obstacle
        fail("imputation", f"counts() with {given}", expected, remedy)
    check_number(release.n)
    release = with_independent_noise(fill_up(release.summed))
    parts = parts_of(release.mechanism, len(release.value))
    has_totals = any(mechanism.sums.known or mechanism.sums.reveals for mechanism, _ in parts)
    if has_totals and is_traced(release.value):
        remedy = "Build the count form outside jit and vmap, where the known totals are numbers."
        fail("release", "known totals that are traced", "numbers", remedy, error=TypeError)
    known = tuple(known_values(mechanism, release.value[where]) for mechanism, where in parts)
    limited = tuple(mechanism.sums.bounds is not None for mechanism, _ in parts)
    sizes = tuple(where.stop - where.start for _, where in parts)
    together = any(reads_together(mechanism) for mechanism, _ in parts)
    layout = CellLayout(sizes, known, limited, release.value.dtype, together)
    counted, statistic = bind(model, statistic_at(release.statistic, release.value), release.n, layout)
    check_wraps([mechanism for mechanism, _ in parts], statistic.table)
    with warnings.catch_warnings():
        # The user was warned where the release was made.
        warnings.simplefilter("ignore", PrecisionWarning)
        return counted, replace(release, statistic=statistic, n=1)


def check_wraps(mechanisms: list[Mechanism], table: Table) -> None:
    """Raise unless moves pass between all sums that are as good as each other, where values are residues."""
    for mechanism, sums in zip(mechanisms, table.parts, strict=True):
        if not mechanism.sums.period or (isinstance(mechanism.sums.period, int) and mechanism.sums.period <= MAX_WIDTH):
            continue
        weights, most = np.append(sums.weight, 0.0), table.bounds[1]
        span = np.inf if most is None else most * (weights.max() - weights.min())
        if mechanism.sums.period <= span + 2 * mechanism.reach:  # type: ignore[attr-defined]
            given = f"counts() with residues modulo {mechanism.sums.period}, and sums up to {span:g} apart"
            expected = f"a whole modulus up to {MAX_WIDTH}, or one beyond all sums and their noise"
            fail("imputation", given, expected, "The residues leave out so much that no moves are known to pass.")


def with_independent_noise(release: Release) -> Release:
    """The release of as many combinations of its sums, of the same density, with noise that is independent."""
    parts = parts_of(release.mechanism, len(release.value))
    if not any(can_decorrelate(mechanism) for mechanism, _ in parts):
        return release
    matrix, mechanisms = np.eye(len(release.value)), []
    for mechanism, where in parts:
        if can_decorrelate(mechanism):
            matrix[where, where], deviation = decorrelate(mechanism, where.stop - where.start)
            mechanism = Gaussian(jnp.asarray(deviation, release.value.dtype))
        mechanisms.append(mechanism)
    together = Independent(tuple(mechanisms), tuple(where.stop - where.start for _, where in parts))
    value = product(jnp.asarray(matrix, release.value.dtype), release.value)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrecisionWarning)
        return Release(value, together, linear(statistic_at(release.statistic, release.value), matrix), release.n)


def decorrelate(mechanism: Mechanism, size: int) -> tuple[np.ndarray, np.ndarray]:
    """The matrix L⁻¹ [d, d] and the deviations √D [d] of Normal noise of covariance L D Lᵀ, with ones along L."""
    covariance = mechanism._normal_covariance(size)
    assert covariance is not None
    root = np.linalg.cholesky(covariance)
    deviation = np.diag(root)
    return np.linalg.inv(root / deviation), deviation


def known_values(mechanism: Mechanism, value: Array) -> tuple[float | None, ...] | None:
    """The sums [d] that a part of the release tells, None in the place of each that it does not, or for all of them."""
    if mechanism.sums.known:
        return tuple(np.asarray(value, float).tolist())
    if mechanism.sums.bounds is None or not mechanism.sums.reveals:
        return None
    least, most = (np.asarray(end, float).tolist() for end in mechanism.sums.bounds(value))
    values = tuple(low if low == high else None for low, high in zip(least, most, strict=True))
    return values if any(one is not None for one in values) else None


def check_number(n: int | UnknownCount) -> None:
    """Raise if a number of records is too large for the whole numbers in use."""
    largest = jnp.iinfo(jnp.result_type(int)).max
    if not isinstance(n, UnknownCount) and n > largest:
        remedy = 'Call jax.config.update("jax_enable_x64", True) at the start.'
        fail("release", f"n = {n} records", f"at most {largest}, the largest of 32 bits", remedy)


def bind(model: Model, statistic: Any, n: int | UnknownCount, layout: CellLayout) -> tuple[Model, TableSums]:
    """The count model and the statistic, which is the same object for models that differ in their numbers alone."""
    with jax.ensure_compile_time_eval():
        support = jax.tree.map(np.asarray, model.domain())
        impossible, conjugate = find_impossible(model, support), conjugate_sums(model)
        structure = Structure(Frozen(support), Frozen(impossible), Frozen(conjugate), statistic, n, layout)
        statistic = lay_out(structure)
        return CountModel(model, statistic.table), statistic


def conjugate_sums(model: Model) -> tuple[np.ndarray, np.ndarray] | None:
    """The sums of counts to which each possible record adds 1 [c, m], and their signs [q], of `ConjugateCounts`."""
    if not model.has("conjugate"):
        return None
    conjugate = model.conjugate()
    return np.asarray(conjugate.places), np.asarray(conjugate.sign)


def find_impossible(model: Model, support: Records) -> np.ndarray:
    """Which records [c] have probability 0 at all of several prior draws; none under Dirichlet priors."""
    if model.has("conjugate"):
        return np.zeros(len(jax.tree.leaves(support)[0]), bool)
    keys = jax.random.split(jax.random.key(0), NUM_DRAWS)
    return np.all(np.asarray(log_probabilities.unoptimized(model, support, keys)) == -np.inf, axis=0)


@jit_model
def log_probabilities(model: Model, support: Records, keys: Key) -> Array:
    """The log-probabilities [draw, c] of possible records at parameters from the prior."""
    return jax.vmap(lambda key: model.log_density(model.sample_prior(key), support))(keys)


class CountModel(SameParameters):
    """The model of a whole table as one record.

    Parameters
    ----------
    model
        That of the records.
    table
        The possible records, and what is known of their counts.
    """

    model: Model
    table: Table = static()

    def of_cells(self, parameters: Parameters) -> Array:
        """The log-probability of each possible record [c]."""
        return self.model.log_density(parameters, self.table.support)

    def sample_records(self, key: Key, parameters: Parameters, n: int) -> Records:
        """Tables drawn given the parameters."""
        parameters, known = take_number(parameters)
        probability = jnp.exp(self.of_cells(parameters))

        def draw(key: Key) -> Array:
            number_key, count_key = jax.random.split(key)
            number = self.table.draw_number(number_key) if known is None else known
            return draw_multinomial(count_key, number, probability)

        return {COUNTS: jax.vmap(draw)(jax.random.split(key, n))}

    def log_density(self, parameters: Parameters, records: Records) -> Array:
        """The log-density of each table [n]."""
        counts, prior = records[COUNTS].astype(float), self.table.prior
        terms = weigh(self.of_cells(parameters)[None], counts) - gammaln(counts + 1)
        number = jnp.sum(records[COUNTS], axis=1)
        total = jnp.sum(terms, axis=1) + gammaln(number.astype(float) + 1)
        return total if prior is None else total + prior.log_probability(number)

    def has(self, member: str) -> bool:
        """Whether the parameters can be integrated out, too, so that they are drawn exactly."""
        return super().has(member) and (not member.startswith("update") or self.model.has("conjugate"))

    def update(self, key: Key, parameters: Parameters, records: Records) -> Parameters:
        """An exact draw of the parameters given tables; the parameters themselves, if they cannot be integrated out."""
        if not self.has("update"):
            return parameters
        return self.model.conjugate().update(key, self.sums(records))

    def update_log_density(self, new: Parameters, parameters: Parameters, records: Records) -> Array:
        """The log-density [] of that draw."""
        return self.model.conjugate().log_density(new, self.sums(records))

    def sums(self, records: Records) -> Array:
        """The sums of counts of `ConjugateCounts`."""
        assert self.table.conjugate is not None
        sums, _ = self.table.conjugate
        return sums.total(jnp.sum(records[COUNTS], axis=0)).astype(float)

    def summarize(self, records: Records) -> Array:
        """The counts [c] of all tables."""
        return jnp.sum(records[COUNTS], axis=0)

    def log_likelihood(self, parameters: Parameters, summary: Array) -> Array:
        """The log-probability [] of all records."""
        return jnp.sum(weigh(self.of_cells(parameters), summary))

    def reported(self, records: Records) -> Records:
        """The number of records, if it is unknown."""
        return {} if self.table.prior is None else {NUMBER: jnp.sum(records[COUNTS])}


def as_count_model(model: Model) -> CountModel:
    """A model in count form."""
    assert isinstance(model, CountModel)
    return model


def weigh(log_probability: Array, counts: Array) -> Array:
    """Each cell's contribution to the log-likelihood [..., c]; empty impossible cells contribute 0."""
    return jnp.where(counts > 0, counts.astype(log_probability.dtype) * log_probability, 0.0)
