"""The count form of a model and a release: a whole table is one record, whose field is how often each value occurs.

A model of records and a release of their sum become a model of one table and a release of the sum over its cells.
Both are what they are elsewhere in dpjax, so that whatever draws, weighs, tempers or simulates records does so with
tables, at a cost that does not grow with the number of records.
"""

import warnings
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln

from dpjax.base import Array, ConjugateCounts, Key, Model, Parameters, Records
from dpjax.mechanisms.base import AdditiveNoise, ElementwiseDensity, is_exact, parts_of
from dpjax.models.data_sets import NUMBER, take_number
from dpjax.models.support import LARGEST_SUPPORT, support_size
from dpjax.numerics.multinomial import draw_multinomial
from dpjax.pytree import is_opaque
from dpjax.release import PrecisionWarning, PrivateRelease, Release
from dpjax.release.unknown import CountPrior, UnknownCount, is_unknown
from dpjax.simulate import position_shapes
from dpjax.tables.fibre import Fibre, find_fibre
from dpjax.tables.sums import CellSums, contributions_of_cells
from dpjax.validation import fail, is_traced

__all__ = ["COUNTS", "Table", "TableSums", "count_form", "find_obstacle", "prefers_counts", "table_of"]

COUNTS = "counts"
"""The field of the one record: how often each possible value occurs, whole numbers [c]."""

RECORDS_PER_CELL = 64
"""From so many records a cell on counts pay where the parameters are not integrated out: they then mix less well than
records do, whose noise can be held while the parameters move."""

KINDS = (AdditiveNoise, ElementwiseDensity)


@dataclass(frozen=True, eq=False)
class Table:
    """What the counts are of; hashed by identity, so that compiled programs are found again.

    Parameters
    ----------
    model
        The model of the records.
    support
        Every possible record, leading axis [c].
    sums
        What each adds to all released sums.
    parts
        What each adds to those of each part of the release.
    known
        The sums among them that were released as they are, with their values.
    fibre
        The moves that keep these.
    n
        The number of records, or its prior.
    """

    model: Model
    support: Records
    sums: CellSums
    parts: tuple[CellSums, ...]
    known: tuple[tuple[CellSums, np.ndarray], ...]
    fibre: Fibre
    n: int | UnknownCount

    def draw_number(self, key: Key) -> int | Array:
        """The number of records [], or a draw from its prior."""
        return self.n.prior.sample(key) if isinstance(self.n, UnknownCount) else self.n

    @property
    def bounds(self) -> tuple[int, int | None]:
        """The least and the greatest possible number of records; None where there is no greatest."""
        return self.n.prior.bounds if isinstance(self.n, UnknownCount) else (self.n, self.n)

    @property
    def prior(self) -> CountPrior | None:
        """The prior of the number of records, None where that is known."""
        return self.n.prior if isinstance(self.n, UnknownCount) else None

    @property
    def noisy(self) -> tuple[CellSums, ...]:
        """The sums of the parts that are not known."""
        return tuple(part for part in self.parts if all(part is not sums for sums, _ in self.known))

    @property
    def num_cells(self) -> int:
        """The number c of possible records."""
        return len(self.sums.index)

    def log_probability(self, parameters: Parameters) -> Array:
        """The log-probability of each possible record [c]."""
        return self.model.log_density(parameters, self.support)


@dataclass(frozen=True, eq=False)
class TableSums:
    """The released statistic of a table: its sums over cells."""

    table: Table

    @property
    def dimension(self) -> int:
        """The number of sums."""
        return self.table.sums.size

    def __call__(self, record: Records) -> Array:
        """The sums [d] of one table."""
        return self.table.sums.total(record[COUNTS])


def table_of(release: PrivateRelease) -> Table:
    """What the counts of a release in count form are of."""
    assert isinstance(release, Release)
    assert isinstance(release.statistic, TableSums)
    return release.statistic.table


def find_obstacle(model: Model, release: PrivateRelease) -> tuple[str, str, str] | None:
    """What stands against counts in place of records: given, expected and the remedy; None where nothing does."""
    remedy = "Impute the records: dpjax.imwg()."
    if not isinstance(release, Release):
        return f"a {type(release).__name__}", "a release of one summed value", remedy
    num_cells = support_size(model)
    if model.support is None or num_cells is None:
        expected = f"a model whose records take at most {LARGEST_SUPPORT} possible values, which its `support` lists"
        return "a model of records without a listed support", expected, remedy
    if not model.exchangeable:
        return "a model whose records have laws of their own", "exchangeable records", remedy
    for mechanism, _ in parts_of(release.mechanism, len(release.observed)):
        if not (release.is_noisy_sum and isinstance(mechanism, KINDS)) or is_opaque(mechanism):
            given = f"a mechanism {type(mechanism).__name__}"
            return given, "noise on each sum by itself, by a mechanism that is a pytree", remedy
    if not 1 < num_cells <= LARGEST_SUPPORT:
        return f"{num_cells} possible records", f"from 2 to {LARGEST_SUPPORT}", remedy
    if missing := sorted(set(position_shapes(model, 1).records) - set(jax.eval_shape(model.support))):
        return f"fields {missing} that the support does not list", "a support of whole records", remedy
    return None


def prefers_counts(model: Model, release: PrivateRelease) -> bool:
    """Whether counts can stand for the records, and are cheaper or the only latent data that fit."""
    if find_obstacle(model, release):
        return False
    assert isinstance(release, Release)
    num_cells = support_size(model)
    assert num_cells is not None
    known = any(is_exact(mechanism) for mechanism, _ in parts_of(release.mechanism, len(release.value)))
    if known or is_unknown(release):
        return True
    return num_cells * (1 if model.conjugate is not None else RECORDS_PER_CELL) <= release.n


def count_form(model: Model, release: PrivateRelease) -> tuple[Model, Release]:
    """The count form of a model and a release.

    Parameters
    ----------
    model
        A model whose records are exchangeable and take finitely many values, listed by its `support`.
    release
        A `Release` of sums over the records, each with noise of its own.

    Returns
    -------
    model
        The model of one record ``{"counts": [c] int}``: a multinomial draw. Parameters are those of the given model.
    release
        The release of n = 1 such record.

    Raises
    ------
    TypeError, ValueError
        If the records are continuous, too many values are possible, or the sums are not released one by one.
    """
    if isinstance(release, Release) and isinstance(release.statistic, TableSums):
        return model, release
    if obstacle := find_obstacle(model, release):
        given, expected, remedy = obstacle
        fail("imputation", f"counts() with {given}", expected, remedy)
    assert isinstance(release, Release)
    parts = parts_of(release.mechanism, len(release.value))
    exact = tuple(is_exact(mechanism) for mechanism, _ in parts)
    if any(exact) and is_traced(release.value):
        remedy = "Build the count form outside jit and vmap, where the known totals are numbers."
        fail("release", "known totals that are traced", "numbers", remedy, error=TypeError)
    known = tuple(
        tuple(np.asarray(release.value[where], float).tolist()) if is_known else None
        for is_known, (_, where) in zip(exact, parts, strict=True)
    )
    layout = Layout(tuple(where.stop - where.start for _, where in parts), known, release.value.dtype)
    counted, statistic = bind(model, release.statistic, release.n, layout)
    with warnings.catch_warnings():
        # The user was warned where the release was made.
        warnings.simplefilter("ignore", PrecisionWarning)
        return counted, replace(release, statistic=statistic, n=1)


class Layout(NamedTuple):
    """The parts of a release: how many sums each has, their values where they are known, and the type of the values."""

    sizes: tuple[int, ...]
    known: tuple[tuple[float, ...] | None, ...]
    kind: Any


@lru_cache(maxsize=64)
def bind(model: Model, statistic: Any, n: int | UnknownCount, layout: Layout) -> tuple[Model, TableSums]:
    """The count model and the statistic, the same objects for equal arguments."""
    with jax.ensure_compile_time_eval():
        support = jax.tree.map(np.asarray, model.support())  # type: ignore[misc]
        sums = contributions_of_cells(statistic, support, sum(layout.sizes), layout.kind)
    ends = np.cumsum(layout.sizes).tolist()
    parts = tuple(sums.part(end - size, end) for size, end in zip(layout.sizes, ends, strict=True))
    known = tuple(
        (part, np.array(values)) for part, values in zip(parts, layout.known, strict=True) if values is not None
    )
    fibre = find_fibre(len(sums.index), known, is_size_known=not isinstance(n, UnknownCount))
    table = Table(model, support, sums, parts, known, fibre, n)
    return count_model(table), TableSums(table)


def count_model(table: Table) -> Model:
    """The model of a whole table as one record."""
    model, conjugate, prior = table.model, table.model.conjugate, table.prior

    def sample_records(key: Key, parameters: Parameters, n: int) -> Records:
        parameters, known = take_number(parameters)
        probability = jnp.exp(table.log_probability(parameters))

        def draw(key: Key) -> Array:
            number_key, count_key = jax.random.split(key)
            number = table.draw_number(number_key) if known is None else known
            return draw_multinomial(count_key, number, probability)

        return {COUNTS: jax.vmap(draw)(jax.random.split(key, n))}

    def log_density(parameters: Parameters, records: Records) -> Array:
        counts = records[COUNTS].astype(float)
        terms = weigh(table.log_probability(parameters)[None], counts) - gammaln(counts + 1)
        number = jnp.sum(records[COUNTS], axis=1)
        total = jnp.sum(terms, axis=1) + gammaln(number.astype(float) + 1)
        return total if prior is None else total + prior.log_probability(number)

    return Model(
        sample_prior=model.sample_prior,
        log_prior=model.log_prior,
        sample_records=sample_records,
        log_density=log_density,
        **({} if conjugate is None else conjugate_update(conjugate())),
        unconstrain=model.unconstrain,
        constrain=model.constrain,
        log_jacobian=model.log_jacobian,
        summarize=lambda records: jnp.sum(records[COUNTS], axis=0),
        log_likelihood=lambda parameters, counts: jnp.sum(weigh(table.log_probability(parameters), counts)),
        derived=model.derived,
        reported=None if prior is None else lambda records: {NUMBER: jnp.sum(records[COUNTS])},
    )


def weigh(log_probability: Array, counts: Array) -> Array:
    """Each cell's share of the log-likelihood [..., c]; an impossible cell that nobody is in adds nothing."""
    return jnp.where(counts > 0, counts.astype(log_probability.dtype) * log_probability, 0.0)


def conjugate_update(conjugate: ConjugateCounts) -> dict[str, Any]:
    """The exact draw of the parameters given tables, with its density."""
    sums = CellSums(np.asarray(conjugate.places), np.ones(conjugate.places.shape), len(conjugate.shift))

    def total(records: Records) -> Array:
        return sums.total(jnp.sum(records[COUNTS], axis=0)).astype(float)

    def update(key: Key, parameters: Parameters, records: Records) -> Parameters:
        del parameters
        return conjugate.update(key, total(records))

    def update_log_density(new: Parameters, parameters: Parameters, records: Records) -> Array:
        del parameters
        return conjugate.log_density(new, total(records))

    return {"update": update, "update_log_density": update_log_density}
