"""Records of several columns with Dirichlet priors of the tables that they form: decomposable models."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from dpjax._util.pytree import static
from dpjax._util.validation import check_positive, fail
from dpjax.base import Array, ConjugateCounts, Key, Model, Parameters, Records
from dpjax.domain import LARGEST_DOMAIN, Domain
from dpjax.models.arguments import as_scalar
from dpjax.models.columns import read_domain, read_tables
from dpjax.models.distributions import accept_distributions
from dpjax.models.of_tables import OfProbabilities, OfSeenTables, check_size
from dpjax.models.priors import may_underflow
from dpjax.numerics.cells import all_edges, cell_edges, uniforms_within
from dpjax.numerics.dirichlet import draw_dirichlets, share_features
from dpjax.numerics.elimination import Elimination, places_of, plan_elimination

__all__ = ["HyperDirichlet", "hyper_dirichlet"]


@accept_distributions
def hyper_dirichlet(
    domain: Mapping[str, int | Sequence[str]] | Domain,
    tables: Sequence[str | Sequence[str]],
    prior_number: ArrayLike,
) -> Model:
    """Records of several columns, of which each depends on those that it shares tables with: a decomposable model.

    P(x) = Π_c P(x_c | neighbours), with one integer field [] for each column c. Given the margins of the tables, it is
    the distribution of largest entropy.

    Parameters
    ----------
    domain
        The columns by name, each with its number of levels or the names of these; or a `dpjax.domain.Domain`.
    tables
        The columns of each table, such as ``[("sex", "income"), ("age", "income")]``. They have to form a decomposable
        graph, as those of a tree do. A column that is in none is independent of the others.
    prior_number
        How many records the prior counts as, above 0. The probabilities of each table have a Dirichlet prior whose
        concentrations are equal and add up to this number: the hyper-Dirichlet law of Dawid and Lauritzen (1993).

    Notes
    -----
    The parameters are the probabilities of each column given those that come before it in the tree, as
    ``income_given_sex`` [levels of sex, levels of income], or ``sex_probabilities`` of a first column. Their rows are
    independent, with Dirichlet priors. The update is an exact draw, and it needs no normaliser. The non-centred form
    has a uniform number for each column. It is left out if concentrations are so small that probabilities underflow.

    Raises
    ------
    TypeError, ValueError
        If a column has fewer than two levels, or a table names columns that there are not or one of them twice. If the
        tables are not decomposable: the message names a table that would make them so. If `prior_number` is not
        positive.

    Examples
    --------
    >>> import dpjax, jax
    >>> people = {"sex": ["female", "male"], "age": 4, "income": 3}
    >>> model = dpjax.models.hyper_dirichlet(people, [("sex", "income"), ("age", "income")], prior_number=1.0)
    >>> {name: leaf.shape for name, leaf in model.sample_prior(jax.random.key(1)).items()}
    {'sex_given_income': (3, 2), 'age_given_income': (3, 4), 'income_probabilities': (3,)}
    """
    cells = read_domain(domain)
    named = read_tables(tables, cells)
    number = as_scalar("prior_number", prior_number, "Pass a number above zero, such as 10.0.")
    check_positive("prior_number", number)
    plan = plan_elimination(cells.sizes, named)
    check_size(plan, cells.fields, "tables", "tables")
    for bucket in plan.buckets:
        if len(bucket) > 1 and not any(set(bucket) <= set(table) for table in named):
            missing = tuple(cells.fields[column] for column in sorted(bucket))
            expected = "tables of a decomposable graph, as of a tree"
            remedy = f"Add the table {missing}, or use dpjax.models.log_linear, which takes any tables."
            fail("tables", f"{len(named)} tables that form a cycle", expected, remedy)
    plan = plan_elimination(cells.sizes, plan.buckets)
    smallest = jnp.asarray(number / plan.num_entries(plan.largest))
    return HyperDirichlet(number=number, cells=cells, plan=plan, interweaves=not may_underflow(smallest[None]))


class HyperDirichlet(OfSeenTables, OfProbabilities):
    """A decomposable model of several columns, as `hyper_dirichlet` describes it.

    Parameters
    ----------
    number
        How many records the prior counts as [].
    cells
        The columns.
    plan
        The order in which columns are summed out, with a table for each bucket: a column, after those that it is given.
    interweaves
        Whether there is a non-centred form.
    """

    number: Array
    cells: Domain = static()
    plan: Elimination = static()
    interweaves: bool = static()

    form: ClassVar[str] = "a uniform within its cell, given other columns"

    @property
    def names(self) -> tuple[str, ...]:
        """The name of the parameter of each bucket."""
        found = []
        for bucket in self.plan.buckets:
            *others, own = (self.cells.fields[column] for column in bucket)
            found.append(f"{own}_given_{'_'.join(others)}" if others else f"{own}_probabilities")
        return tuple(found)

    @property
    def concentrations(self) -> Parameters:
        """The Dirichlet priors, in the shapes of the parameters: equal, with the same sum for each bucket."""
        pairs = zip(self.names, self.plan.buckets, strict=True)
        return {name: jnp.full(self.plan.shape(one), self.number / self.plan.num_entries(one)) for name, one in pairs}

    def weights(self, parameters: Parameters) -> list[Array]:
        """The log-probabilities of each bucket, of which none is below that of the smallest float."""
        return [share_features(parameters[name])[0] for name in self.names]

    def sample_records(self, key: Key, parameters: Parameters, n: int) -> Records:
        """Records drawn given the parameters."""
        return self.records_at(parameters, jax.random.uniform(key, (len(self.cells.sizes), n), float))

    def update(self, key: Key, parameters: Parameters, records: Records) -> Parameters:
        """An exact draw from independent Dirichlet distributions."""
        return draw_dirichlets(key, self.given(self.summarize(records)["counts"]))

    def update_log_density(self, new: Parameters, parameters: Parameters, records: Records) -> Array:
        """The log-density [] of that draw."""
        return self.log_density_given(new, self.given(self.summarize(records)["counts"]))

    def given(self, counts: Array) -> Parameters:
        """The concentrations given the counts of the cells of all tables [d]."""
        pairs = zip(self.concentrations.items(), self.plan.places.offsets, strict=True)
        return {name: one + counts[start : start + one.size].reshape(one.shape) for (name, one), start in pairs}

    def records_at(self, parameters: Parameters, noise: Array) -> Records:
        """The records whose cells contain these uniforms [K, n], column by column along the tree."""
        levels: dict[int, Array] = {}
        for name, bucket in zip(reversed(self.names), reversed(self.plan.buckets), strict=True):
            *others, own = bucket
            edges = cell_edges(parameters[name])[tuple(levels[other] for other in others)]
            levels[own] = jnp.sum(noise[own][:, None] >= jnp.atleast_2d(edges), axis=1, dtype=int)
        return {field: levels[column] for column, field in enumerate(self.cells.fields)}

    def noise_of(self, key: Key, parameters: Parameters, records: Records) -> Array:
        """Uniforms [K, n] drawn within the cells of the records' columns."""
        levels, ends = self.levels(records), {}
        for name, bucket in zip(self.names, self.plan.buckets, strict=True):
            rows = tuple(levels[other] for other in bucket[:-1])
            own = levels[bucket[-1]]
            edges = all_edges(cell_edges(parameters[name]))
            ends[bucket[-1]] = edges[*rows, own], edges[*rows, own + 1]
        lower, upper = (jnp.stack([ends[column][end] for column in range(len(levels))]) for end in (0, 1))
        return uniforms_within(key, lower, upper)

    def has(self, member: str) -> bool:
        """Whether records can be counted, too, as they are listed."""
        return super().has(member) and (member != "conjugate" or self.cells.num_cells <= LARGEST_DOMAIN)

    def conjugate(self) -> ConjugateCounts:
        """The sums are the counts of the cells of each bucket, and the totals of its rows with negative signs."""
        levels, plan = self.levels(self.cells()), self.plan
        rows = tuple(bucket[:-1] for bucket in plan.buckets)
        cells, totals = plan.places, places_of(plan.sizes, rows)
        prior = [one.ravel() for one in self.concentrations.values()]
        of_rows = [jnp.sum(one, axis=-1).ravel() for one in self.concentrations.values()]
        return ConjugateCounts(
            places=jnp.concatenate([cells(levels), cells.num_cells + totals(levels)], axis=1),
            shift=jnp.concatenate([*prior, *of_rows]),
            sign=np.repeat([1.0, -1.0], [cells.num_cells, totals.num_cells]),
            update=lambda key, sums: draw_dirichlets(key, self.given(sums.astype(float))),
            log_density=lambda parameters, sums: self.log_density_given(parameters, self.given(sums.astype(float))),
        )

    def entry_labels(self, level_names: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[tuple[str, ...], ...]]:
        """The names of the levels, or their numbers."""
        named = self.named_levels(level_names)
        pairs = zip(self.names, self.plan.buckets, strict=True)
        return {name: tuple(named[column] for column in bucket) for name, bucket in pairs}
