"""Categorical records, such as the cells of a contingency table, with a Dirichlet prior."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import xlogy
from jax.typing import ArrayLike

from dpjax._util.pytree import static
from dpjax._util.validation import check_count, check_positive, describe, fail, read_numbers
from dpjax.base import Array, ConjugateCounts, Key, Model, NonCentred, Parameters, Records
from dpjax.domain import Domain
from dpjax.models.arguments import as_array, as_vector
from dpjax.models.bijections import SIMPLEX, Bijection, MappedModel
from dpjax.models.distributions import accept_distributions
from dpjax.models.priors import may_underflow
from dpjax.numerics.cells import all_edges, cell_edges, cells_at, count_cells, log_probability, uniforms_within
from dpjax.numerics.dirichlet import dirichlet_log_density, draw_dirichlet, share_features
from dpjax.numerics.ends import positive_at
from dpjax.numerics.scores import UNIFORM_SCORES
from dpjax.statistics.base import check_field_name
from dpjax.statistics.labels import read_labels, read_levels

__all__ = ["categorical"]

FORM = "a uniform within its cell"
EXPECTED, REMEDY = "a vector of at least 2 numbers", "Pass one positive number for each cell."
FIELDS = ("cell",)
"""The one field of records whose variables are not named: the number of the cell."""


@accept_distributions
def categorical(
    concentration: ArrayLike = 1.0,
    shape: Sequence[int] | None = None,
    possible: Sequence[bool] | None = None,
    fields: Sequence[str] | None = None,
    levels: Sequence[Sequence[str]] | Mapping[str, Sequence[str]] | None = None,
) -> Model:
    """Records ``{"cell": [] int}`` with P(cell = j) = probabilities[j], or one field for each variable of a table.

    Parameters
    ----------
    concentration : [c]
        The Dirichlet prior of ``probabilities`` [c]. One number is that of every cell. An array with an axis for each
        variable shows the shape, and a DataFrame or Series of pandas also fields and levels.
    shape
        For a table of two or more variables, its numbers of levels, with cells in C order. The model then also reports
        ``odds_ratio`` and ``log_odds_ratio``. They are for levels i and i + 1 of the first variable and j and j + 1 of
        the second, at each level of all others. Their shape is ``[r - 1, s - 1, ...]``, or ``[...]`` if both variables
        have two levels: [] for a 2×2 table. A probability that underflows counts as the smallest float.
        By default `levels` or `concentration` shows it.
    possible : [c]
        Which cells a record can be in: the others are structural zeros, whose probability is 0 whatever the records,
        and the Dirichlet prior is that of the rest. None if all are. A release may have noisy counts of impossible
        cells.
    fields
        The record field of each variable. Each is an integer [], and there is no field ``cell``.
    levels
        The names of the levels of each field, or of the only one, for summaries and pictures. If the release has names,
        these are used. ``release.level_names`` has the fields, too.

    Notes
    -----
    The update is an exact Dirichlet draw. The non-centred form has one uniform number for each record. It is left out
    if a concentration is so small that probabilities underflow: below 0.16 in float32, 0.02 in float64.

    Raises
    ------
    TypeError, ValueError
        If a concentration is not positive, there are fewer than two, or the shape does not hold c cells. If `possible`
        is not one flag for each cell, leaves fewer than two, or comes with a shape, as odds ratios need every cell.
        If fields and levels do not fit the shape.

    Examples
    --------
    >>> import dpjax
    >>> import jax.numpy as jnp
    >>> model = dpjax.models.categorical([1.0, 1.0, 2.0])
    >>> p = {"probabilities": jnp.array([0.5, 0.25, 0.25])}
    >>> jnp.exp(model.log_density(p, {"cell": jnp.array([0, 2])})).tolist()
    [0.5, 0.25]
    >>> admissions = dpjax.models.categorical(fields=["sex", "admitted"], levels=[["female", "male"], ["no", "yes"]])
    >>> admissions.num_cells, admissions.level_names["admitted"]
    (4, ('no', 'yes'))
    """
    fields, levels = fields_of(fields, levels)
    if labels := read_labels("concentration", concentration):
        names, named = labels
        fields, levels = names if fields is None else fields, named if levels is None else levels
        concentration = np.reshape(np.asarray(concentration), tuple(map(len, named)))
    alpha = as_array("concentration", concentration, EXPECTED, REMEDY)
    check_positive("concentration", alpha)
    sizes = read_sizes(alpha, shape, read_levels(levels))
    alpha = flatten(alpha, sizes)
    domain = Domain(FIELDS, (alpha.size,)) if fields is None else name_fields(fields, levels, sizes or (alpha.size,))
    if fields is None and levels is not None:
        fail("fields", None, "the names of the variables that the levels are of", "Pass such as ['sex', 'admitted'].")
    if fields is None and sizes is not None and len(sizes) < 2:
        fail("shape", sizes, "two or more numbers of levels", "Leave it out for one variable, or name its field.")
    table = sizes if sizes is not None and len(sizes) > 1 else None
    cells = replace(domain, possible=check_possible(possible, alpha.size, table))
    return Categorical(alpha, cells, table, interweaves=not may_underflow(alpha))


class Categorical(MappedModel):
    """Categorical records, as `categorical` describes them.

    Parameters
    ----------
    concentration
        The Dirichlet prior of all cells [c].
    cells
        The possible cells.
    table
        The numbers of levels of a table.
    interweaves
        Whether there is a non-centred form.
    """

    concentration: Array
    cells: Domain = static()
    table: tuple[int, ...] | None = static()
    interweaves: bool = static()

    @property
    def num_cells(self) -> int:
        """The number of cells c."""
        return self.cells.num_cells

    @property
    def free(self) -> Array:
        """The Dirichlet prior of the possible cells [m]."""
        return self.cells.take(self.concentration)

    def sample_prior(self, key: Key) -> Parameters:
        """A draw from the prior."""
        return self.draw_given(key, jnp.zeros(self.num_cells))

    def log_prior(self, parameters: Parameters) -> Array:
        """The log-density [] of the prior."""
        return self.log_density_given(parameters, jnp.zeros(self.num_cells))

    def sample_records(self, key: Key, parameters: Parameters, n: int) -> Records:
        """Records drawn given the parameters."""
        return self.records_at(parameters, jax.random.uniform(key, (n,), float))

    def log_density(self, parameters: Parameters, records: Records) -> Array:
        """The log-probability of each record [n]."""
        return log_probability(parameters["probabilities"], self.cells.cell(records))

    def update(self, key: Key, parameters: Parameters, records: Records) -> Parameters:
        """An exact Dirichlet draw."""
        return self.draw_given(key, self.summarize(records))

    def update_log_density(self, new: Parameters, parameters: Parameters, records: Records) -> Array:
        """The log-density [] of that draw."""
        return self.log_density_given(new, self.summarize(records))

    def draw_given(self, key: Key, counts: Array) -> Parameters:
        """A draw of the probabilities given the counts of the cells [c]."""
        return {"probabilities": self.cells.spread(draw_dirichlet(key, self.free + self.cells.take(counts)))}

    def log_density_given(self, parameters: Parameters, counts: Array) -> Array:
        """The log-density [] of that draw."""
        probabilities = self.cells.take(parameters["probabilities"])
        return dirichlet_log_density(self.free + self.cells.take(counts), probabilities)

    def has(self, member: str) -> bool:
        """Whether records have noise, too, as no probability underflows."""
        return super().has(member) and (member != "noncentred" or self.interweaves)

    @property
    def noncentred(self) -> NonCentred:
        """A uniform number for each record, unless probabilities underflow."""
        if not self.interweaves:
            return super().noncentred
        forms = tuple((field, FORM) for field in self.cells.fields)
        return NonCentred(self.noise_of, self.records_at, scores=UNIFORM_SCORES, forms=forms)

    def records_at(self, parameters: Parameters, noise: Array) -> Records:
        """The records in the cells that contain these uniforms [n]."""
        return self.cells.records(cells_at(noise, cell_edges(parameters["probabilities"])))

    def noise_of(self, key: Key, parameters: Parameters, records: Records) -> Array:
        """Uniforms [n] drawn within the records' cells."""
        edges, cell = all_edges(cell_edges(parameters["probabilities"])), self.cells.cell(records)
        return uniforms_within(key, edges[cell], edges[cell + 1])

    def summarize(self, records: Records) -> Array:
        """The counts of the cells [c]."""
        return count_cells(self.cells.cell(records), self.num_cells)

    def log_likelihood(self, parameters: Parameters, summary: Array) -> Array:
        """The log-probability [] of all records."""
        return jnp.sum(xlogy(summary, parameters["probabilities"]))

    @property
    def support(self) -> Domain:
        """Every possible record."""
        return self.cells

    def conjugate(self) -> ConjugateCounts:
        """The counts of the possible cells and their total, with the parameters integrated out."""
        # Arrays on the host, which decide what is compiled and need no program of their own.
        size = self.cells.size
        cells = np.arange(size, dtype=jnp.result_type(int))
        return ConjugateCounts(
            places=np.stack([cells, np.full_like(cells, size)], axis=1),
            shift=jnp.append(self.free, jnp.sum(self.free)),
            sign=np.append(np.ones(size), -1.0),
            update=lambda key, sums: self.draw_given(key, self.counts_of(sums)),
            log_density=lambda parameters, sums: self.log_density_given(parameters, self.counts_of(sums)),
        )

    def counts_of(self, sums: Array) -> Array:
        """The counts of all cells [c] in the sums of `conjugate` [m + 1]."""
        return self.cells.spread(sums[:-1].astype(float))

    def derived(self, parameters: Parameters) -> Parameters:
        """The odds ratios of a table."""
        return {} if self.table is None else odds_ratios(self.table, parameters)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the fields."""
        return self.cells.fields

    def margin(self, parameters: Parameters, fields: tuple[str, ...]) -> Array:
        """The probabilities [levels, ...] of all combinations of the levels of some fields."""
        axes = tuple(map(self.cells.fields.index, fields))
        others = tuple(axis for axis in range(len(self.cells.sizes)) if axis not in axes)
        kept = jnp.sum(parameters["probabilities"].reshape(self.cells.sizes), axis=others)
        return jnp.transpose(kept, [sorted(axes).index(axis) for axis in axes])

    @property
    def level_names(self) -> dict[str, tuple[str, ...]]:
        """The names of the levels by field."""
        return self.cells.level_names

    def entry_labels(self, level_names: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[tuple[str, ...], ...]]:
        """Cells by the names of their levels, odds ratios by those of neighbouring levels."""
        domain = self.cells.named(level_names)
        if domain.levels is None or domain.cell_names is None:
            return {}
        if self.table != domain.sizes:
            return {"probabilities": (domain.cell_names,)}
        first, second, *others = domain.levels
        between = () if self.table[:2] == (2, 2) else (steps(first), steps(second))
        ratios = (*between, *others)
        return {"probabilities": (domain.cell_names,), "odds_ratio": ratios, "log_odds_ratio": ratios}

    @property
    def bijections(self) -> dict[str, Bijection]:
        """The log-ratios of the possible probabilities."""
        cells = self.cells
        if cells.possible is None:
            return {"probabilities": SIMPLEX}
        bijection = Bijection(
            lambda probabilities: SIMPLEX.unconstrain(cells.take(probabilities)),
            lambda ratios: cells.spread(SIMPLEX.constrain(ratios)),
            SIMPLEX.log_jacobian,
        )
        return {"probabilities": bijection}


def read_sizes(concentration: Array, shape: Any, levels: tuple[tuple[str, ...], ...] | None) -> tuple[int, ...] | None:
    """How many levels each variable has, by what was given; None where there is one axis of cells."""
    if shape is not None:
        return check_shape(shape, "a whole number of at least 2 for each variable")
    if levels is not None:
        return check_shape(tuple(map(len, levels)), "two or more levels of each variable")
    return concentration.shape if concentration.ndim > 1 else None


def flatten(concentration: Array, sizes: tuple[int, ...] | None) -> Array:
    """The concentrations of all cells [c], in C order."""
    if sizes is None or concentration.ndim == 1:
        cells = as_vector("concentration", concentration, REMEDY, least=2)
    elif concentration.shape in ((), sizes):
        cells = jnp.broadcast_to(concentration, sizes).ravel()
    else:
        expected = f"one number, or numbers of shape {list(sizes)}"
        fail("concentration", f"an array of shape {list(concentration.shape)}", expected, REMEDY)
    if sizes is not None and prod(sizes) != cells.size:
        expected = f"two or more numbers of levels with product {cells.size}"
        fail("shape", sizes, expected, "Pass one concentration for each cell of the table.")
    return cells


def fields_of(fields: Any, levels: Any) -> tuple[Any, Any]:
    """The fields, and the levels of each; levels by field have both."""
    if isinstance(fields, Mapping):
        remedy = "Pass levels={'sex': ['female', 'male'], ...}, which has the fields, too."
        fail("fields", describe(fields), "names", remedy, error=TypeError)
    if not isinstance(levels, Mapping):
        return fields, levels
    known = list(levels)
    names = known if fields is None else fields
    if not isinstance(names, (list, tuple)):
        return fields, list(levels.values())
    if len(names) != len(known) or any(name not in known for name in names):
        fail("levels", f"those of {known}", f"those of the fields {list(names)}", "Leave fields out.")
    return names, [levels[name] for name in names]


def name_fields(fields: Any, levels: Any, sizes: tuple[int, ...]) -> Domain:
    """The variables of a table of these fields, or an error unless each has a number of levels."""
    expected, remedy = f"{len(sizes)} different names, one for each variable", "Pass such as ['sex', 'admitted']."
    if isinstance(fields, (str, bytes)) or not isinstance(fields, Sequence):
        fail("fields", describe(fields), expected, remedy, error=TypeError)
    names = tuple(map(check_field_name, fields))
    if len(set(names)) != len(sizes) or len(names) != len(sizes):
        fail("fields", list(names), expected, "Pass shape, too, or levels." if len(sizes) == 1 else remedy)
    return Domain(names, sizes, read_levels(levels, sizes))


def check_shape(shape: Any, expected: str) -> tuple[int, ...]:
    """The numbers of levels, or an error unless each variable has at least two."""
    if isinstance(shape, (str, bytes)) or not isinstance(shape, Sequence):
        fail("shape", repr(shape), expected, "Pass a tuple such as (2, 3).", error=TypeError)
    return tuple(check_count("shape", level, "A variable has at least two levels.", least=2) for level in shape)


def check_possible(possible: Any, num_cells: int, shape: Any) -> tuple[int, ...] | None:
    """The cells of records, None for all; or an error unless there is a flag for each and two of them are set."""
    if possible is None:
        return None
    expected, remedy = (
        f"{num_cells} flags, one for each cell, two of them or more True",
        "Pass True for possible cells.",
    )
    flags = read_numbers("possible", possible, expected, remedy)
    if flags.dtype != bool or flags.shape != (num_cells,):
        fail("possible", f"{flags.dtype}{list(flags.shape)}", expected, remedy)
    if flags.sum() < 2:
        fail("possible", f"{flags.sum()} possible cells", expected, "With one possible cell nothing is unknown.")
    if shape is not None and not np.all(flags):
        fail("shape", shape, "None beside impossible cells", "Odds ratios need every cell: compute those you want.")
    return None if np.all(flags) else tuple(np.flatnonzero(flags).tolist())


def steps(levels: tuple[str, ...]) -> tuple[str, ...]:
    """The names of neighbouring levels."""
    return tuple(f"{low}/{high}" for low, high in pairwise(levels))


def odds_ratios(shape: tuple[int, ...], parameters: Parameters) -> Parameters:
    """The local odds ratios of the first two variables of a table, given all others."""
    logs, _ = share_features(parameters["probabilities"])  # finite where a probability underflows
    ratios = jnp.diff(jnp.diff(logs.reshape(shape), axis=0), axis=1)
    ratios = ratios[0, 0] if shape[:2] == (2, 2) else ratios
    return {"odds_ratio": positive_at(ratios), "log_odds_ratio": ratios}
