"""Records of many columns, with effects of the tables that some of the columns form: log-linear models."""

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.pytree import static
from dpjax._util.validation import describe, fail
from dpjax.base import Array, Key, Model, Parameters, Records, Statistic
from dpjax.domain import Domain
from dpjax.models.columns import OfColumns, read_domain
from dpjax.models.distributions import accept_distributions
from dpjax.models.priors import NormalPrior
from dpjax.models.table_effects import Columns, EffectLayout, layout_of, order_of, tables_of
from dpjax.models.table_starts import starts_at_tables
from dpjax.numerics.cells import count_cells
from dpjax.numerics.elimination import (
    MOST_ENTRIES,
    Elimination,
    cell_moments,
    draw_levels,
    log_normaliser,
    margins,
    plan_elimination,
    without_table,
)
from dpjax.release import PrivateRelease

__all__ = ["LogLinear", "log_linear"]


@accept_distributions
def log_linear(
    domain: Mapping[str, int | Sequence[str]] | Domain,
    tables: Sequence[str | Sequence[str]],
    effect_prior: NormalPrior = NormalPrior(0.0, 1.0),  # noqa: B008  it is data
) -> Model:
    """Records of several columns, with p(x | effects) ∝ exp(Σ_C θ_C(x_C)), where each C is a table of a few columns.

    Given the margins of these tables, it is the model of largest entropy. It has one integer field [] for each column.

    Parameters
    ----------
    domain
        The columns by name, each with its number of levels or the names of these; or a `dpjax.domain.Domain`.
    tables
        The columns of each table, such as those that were released: ``[("sex", "income"), ("age", "income")]``. A
        column that is in none has a main effect alone.
    effect_prior
        The prior of ``effects`` [k]. They are the coordinates of main effects and interactions that sum to zero over
        each of their columns, in orthonormal contrasts. So their prior is the same whatever the order of the levels.
        The terms are all columns, and all subsets of two or more columns of each table.

    Notes
    -----
    The normaliser is summed along a tree of tables (`dpjax.numerics.elimination`), at the cost of the largest of these,
    and records are drawn along the same tree. If there are at most 100,000 combinations of levels they are listed, too,
    so that `dpjax.counts` can stand for the records.

    Raises
    ------
    TypeError, ValueError
        If a column has fewer than two levels, or a table names columns that there are not or one of them twice. If the
        tree has a table of more than 2²⁴ entries: the message says which of the tables to leave out.

    Examples
    --------
    >>> import dpjax, jax
    >>> people = {"sex": ["female", "male"], "age": 4, "income": 3}
    >>> model = dpjax.models.log_linear(people, [("sex", "age"), ("age", "income")])
    >>> model.sample_prior(jax.random.key(1))["effects"].shape
    (15,)
    >>> sorted(model.sample_records(jax.random.key(2), model.sample_prior(jax.random.key(1)), n=5))
    ['age', 'income', 'sex']
    """
    cells = read_domain(domain)
    if not isinstance(effect_prior, NormalPrior):
        remedy = "Pass such as dpjax.models.NormalPrior(0.0, 1.0)."
        fail("effect_prior", describe(effect_prior), "a Normal prior", remedy, error=TypeError)
    named = read_tables(tables, cells)
    whole = tuple(one for one in named if not any(set(one) < set(other) for other in named))
    alone = tuple((column,) for column in range(len(cells.sizes)) if not any(column in one for one in whole))
    plan = plan_elimination(cells.sizes, (*dict.fromkeys(whole), *alone))
    check_size(plan, cells.fields, "tables", "tables")
    num_effects = layout_of(plan).num_effects
    if (given := np.broadcast_shapes(np.shape(effect_prior.mean), np.shape(effect_prior.scale))) not in (
        (),
        (num_effects,),
    ):
        remedy = "Pass one number, or one for each effect."
        fail("effect_prior", f"one of shape {list(given)}", f"shape [] or [{num_effects}]", remedy)
    return LogLinear(prior=effect_prior, cells=cells, plan=plan)


class LogLinear(OfColumns):
    """A log-linear model of several columns, as `log_linear` describes it.

    Parameters
    ----------
    prior
        The prior of the effects.
    cells
        The columns.
    plan
        The tables, and the order in which columns are summed out.
    """

    prior: NormalPrior
    cells: Domain = static()
    plan: Elimination = static()

    @property
    def layout(self) -> EffectLayout:
        """Where the effects are in the tables."""
        return layout_of(self.plan)

    def sample_prior(self, key: Key) -> Parameters:
        """A draw from the prior."""
        return {"effects": self.prior.sample(key, (self.layout.num_effects,))}

    def log_prior(self, parameters: Parameters) -> Array:
        """The log-density [] of the prior."""
        return self.prior.log_density(parameters["effects"])

    def weights(self, parameters: Parameters) -> list[Array]:
        """The log-weights θ_C of each table."""
        return self.layout.weights(parameters["effects"])

    def sample_records(self, key: Key, parameters: Parameters, n: int) -> Records:
        """Records drawn given the parameters, column by column along the tree."""
        uniforms = jax.random.uniform(key, (len(self.cells.sizes), n), float)
        levels = draw_levels(self.plan, self.weights(parameters), uniforms)
        return dict(zip(self.cells.fields, levels, strict=True))

    def log_density(self, parameters: Parameters, records: Records) -> Array:
        """The log-probability of each record [n]."""
        weights = self.weights(parameters)
        levels = self.levels(records)
        sizes = np.asarray(self.cells.sizes)[:, None]
        flat = jnp.concatenate([one.ravel() for one in weights])
        total = jnp.sum(flat[self.layout.places(levels)], axis=1) - log_normaliser(self.plan, weights)
        return jnp.where(jnp.all((levels >= 0) & (levels < sizes), axis=0), total, -jnp.inf)

    def summarize(self, records: Records) -> Records:
        """The counts of the cells of all tables [d], and the number of records."""
        levels = self.levels(records)
        counts = count_cells(self.layout.places(levels), self.layout.num_cells)
        return {"counts": counts, "number": jnp.asarray(levels.shape[1], float)}

    def log_likelihood(self, parameters: Parameters, summary: Records) -> Array:
        """The log-probability [] of all records."""
        weights = self.weights(parameters)
        flat = jnp.concatenate([one.ravel() for one in weights])
        return jnp.sum(summary["counts"] * flat) - summary["number"] * log_normaliser(self.plan, weights)

    def first_parameters(self, key: Key, release: PrivateRelease, num_chains: int) -> Parameters | None:
        """Effects [chain, k] near the released tables; None if no tables of these columns were released."""
        return starts_at_tables(self, key, release, num_chains)

    def statistic_moments(self, parameters: Parameters, statistic: Statistic) -> tuple[Array, Array] | None:
        """The probabilities [d] and the covariance [d, d] of all released cells, by the tree; None of other sums."""
        if (released := self.with_released(parameters, statistic)) is None:
            return None
        plan, weights, order = released
        places = tuple(range(len(self.plan.tables), len(plan.tables)))
        mean, covariance = cell_moments(plan, weights, places)
        return mean[order], covariance[order][:, order]

    def statistic_mean(self, parameters: Parameters, statistic: Statistic) -> Array | None:
        """The probabilities [d] alone."""
        if (released := self.with_released(parameters, statistic)) is None:
            return None
        plan, weights, order = released
        return jnp.concatenate([one.ravel() for one in margins(plan, weights)[len(self.plan.tables) :]])[order]

    def with_released(
        self, parameters: Parameters, statistic: Statistic
    ) -> tuple[Elimination, list[Array], np.ndarray] | None:
        """The plan with released tables after the model's own, the weights of both, and the order of released cells."""
        released = tables_of(statistic, self.cells)
        if released is None:
            return None
        plan = plan_elimination(self.cells.sizes, (*self.plan.tables, *(tuple(sorted(one)) for one in released)))
        if plan.num_entries(plan.largest) > MOST_ENTRIES:
            return None
        own = self.weights(parameters)
        nothing = [jnp.zeros(plan.shape(one), own[0].dtype) for one in plan.tables[len(own) :]]
        return plan, [*own, *nothing], order_of(released, self.cells.sizes)

    def margin(self, parameters: Parameters, fields: tuple[str, ...]) -> Array:
        """The probabilities [levels, ...] of all combinations of the levels of some columns, by the tree."""
        columns = tuple(map(self.cells.fields.index, fields))
        plan = plan_elimination(self.cells.sizes, (*self.plan.tables, tuple(sorted(columns))))
        check_size(plan, self.cells.fields, "fields", f"a margin of {list(fields)}")
        own = self.weights(parameters)
        whole = margins(plan, [*own, jnp.zeros(plan.shape(sorted(columns)), own[0].dtype)])[-1]
        return jnp.transpose(whole, [sorted(columns).index(column) for column in columns])

    def entry_labels(self, level_names: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[tuple[str, ...], ...]]:
        """The columns of each effect, with the numbers of their contrasts."""
        del level_names
        names = []
        for term in self.layout.terms:
            for contrast in np.ndindex(*(self.cells.sizes[column] - 1 for column in term)):
                pairs = zip(term, contrast, strict=True)
                names.append(":".join(f"{self.cells.fields[column]}.{number + 1}" for column, number in pairs))
        return {"effects": (tuple(names),)}


def read_tables(tables: Any, domain: Domain) -> tuple[Columns, ...]:
    """The columns of each table by their places, increasing; or an error unless they are columns of the domain."""
    expected = f"lists of some of the columns {list(domain.fields)}"
    remedy = "Pass such as [('sex', 'income'), ('age', 'income')]."
    if isinstance(tables, (str, bytes)) or not isinstance(tables, Sequence):
        fail("tables", describe(tables), expected, remedy, error=TypeError)
    if not tables:
        fail("tables", "no tables", expected, remedy)
    found = []
    for place, table in enumerate(tables):
        names = (table,) if isinstance(table, str) else table
        if not isinstance(names, Sequence):
            fail(f"tables[{place}]", describe(table), expected, remedy, error=TypeError)
        if unknown := [name for name in names if name not in domain.fields]:
            fail(f"tables[{place}]", f"the columns {unknown}", expected, remedy)
        if not names or len(set(names)) != len(names):
            fail(f"tables[{place}]", f"the columns {list(names)}", "one column or more, each once", remedy)
        found.append(tuple(sorted(map(domain.fields.index, names))))
    return tuple(found)


def check_size(plan: Elimination, fields: tuple[str, ...], argument: str, asked: str) -> None:
    """Raise if the largest table of the tree is too large, with what would make it smaller."""
    largest, size = plan.largest, plan.num_entries(plan.largest)
    if size <= MOST_ENTRIES:
        return
    columns = [fields[column] for column in sorted(largest)]
    given = f"{asked} whose sums go through one of {size:,} entries, over the columns {columns}"
    widest = fields[max(largest, key=lambda column: plan.sizes[column])]
    remedy = f"Coarsen {widest!r}, which has most levels of these"
    if (found := without_table(plan)) is not None:
        place, rest = found
        left = tuple(fields[column] for column in plan.tables[place])
        remedy = f"Leave out the table {left}, and it has {rest:,}. Or c{remedy[1:]}"
    fail(argument, given, f"at most {MOST_ENTRIES:,} entries", f"{remedy}.")
