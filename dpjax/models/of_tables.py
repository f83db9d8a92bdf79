"""Records of several columns whose probabilities are a product of tables, each of a few columns."""

from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from dpjax._util.validation import fail
from dpjax.base import Array, Key, NonCentred, Parameters, Records, Statistic
from dpjax.models.bijections import SIMPLEX, Bijection, MappedModel
from dpjax.models.columns import OfColumns
from dpjax.models.table_effects import order_of, tables_of
from dpjax.numerics.dirichlet import dirichlet_log_density, draw_dirichlets
from dpjax.numerics.elimination import (
    MOST_ENTRIES,
    Elimination,
    cell_moments,
    draw_levels,
    margins,
    plan_elimination,
    without_table,
)
from dpjax.numerics.scores import UNIFORM_SCORES

__all__ = ["OfProbabilities", "OfSeenTables", "OfTables", "check_size"]


class OfTables(OfColumns, abstract=True):
    """A model of columns with p(x | parameters) ∝ exp(Σ_C weights_C(x_C)), summed along a tree of tables.

    A subclass has ``plan``, an `Elimination`, and ``weights``. Columns after those of the domain are hidden, and
    summed out.
    """

    plan: Elimination

    def weights(self, parameters: Parameters) -> list[Array]:
        """The log-weights, finite, of each table of the plan."""
        raise NotImplementedError

    def sample_records(self, key: Key, parameters: Parameters, n: int) -> Records:
        """Records drawn given the parameters, column by column along the tree."""
        uniforms = jax.random.uniform(key, (len(self.plan.sizes), n), float)
        levels = draw_levels(self.plan, self.weights(parameters), uniforms)
        return dict(zip(self.cells.fields, levels, strict=False))

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
        plan = plan_elimination(self.plan.sizes, (*self.plan.tables, *(tuple(sorted(one)) for one in released)))
        if plan.num_entries(plan.largest) > MOST_ENTRIES:
            return None
        own = self.weights(parameters)
        nothing = [jnp.zeros(plan.shape(one), own[0].dtype) for one in plan.tables[len(own) :]]
        return plan, [*own, *nothing], order_of(released, self.cells.sizes)

    def margin(self, parameters: Parameters, fields: tuple[str, ...]) -> Array:
        """The probabilities [levels, ...] of all combinations of the levels of some columns, by the tree."""
        columns = tuple(map(self.cells.fields.index, fields))
        plan = plan_elimination(self.plan.sizes, (*self.plan.tables, tuple(sorted(columns))))
        check_size(plan, self.cells.fields, "fields", f"a margin of {list(fields)}")
        own = self.weights(parameters)
        whole = margins(plan, [*own, jnp.zeros(plan.shape(sorted(columns)), own[0].dtype)])[-1]
        return jnp.transpose(whole, [sorted(columns).index(column) for column in columns])


class OfSeenTables(OfTables, abstract=True):
    """A model of tables without hidden columns, for which the counts of their cells stand for the records."""

    def log_total(self, weights: list[Array]) -> Array:
        """The logarithm [] of the sum of exp(Σ_C weights_C(x_C)) over all combinations: 0 if they are probabilities."""
        del weights
        return jnp.zeros(())

    def log_density(self, parameters: Parameters, records: Records) -> Array:
        """The log-probability of each record [n]."""
        levels, weights = self.levels(records), self.weights(parameters)
        total = jnp.sum(flat(weights)[self.plan.places(levels)], axis=1)
        return jnp.where(self.are_levels(levels), total - self.log_total(weights), -jnp.inf)

    def summarize(self, records: Records) -> Records:
        """The counts of the cells of all tables [d], and the number of records."""
        levels = self.levels(records)
        return {"counts": self.plan.places.counts(levels), "number": jnp.asarray(levels.shape[1], float)}

    def log_likelihood(self, parameters: Parameters, summary: Records) -> Array:
        """The log-probability [] of all records."""
        weights = self.weights(parameters)
        return jnp.sum(summary["counts"] * flat(weights)) - summary["number"] * self.log_total(weights)


class OfProbabilities(OfTables, MappedModel, abstract=True):
    """A model of tables whose parameters are probabilities with independent Dirichlet priors, along their last axes."""

    interweaves: bool
    form: ClassVar[str]
    """What the uniform number of a column is in the non-centred form."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the parameters."""
        raise NotImplementedError

    @property
    def concentrations(self) -> Parameters:
        """The Dirichlet priors, in the shapes of the parameters."""
        raise NotImplementedError

    def sample_prior(self, key: Key) -> Parameters:
        """A draw from the prior."""
        return draw_dirichlets(key, self.concentrations)

    def log_prior(self, parameters: Parameters) -> Array:
        """The log-density [] of the prior."""
        return self.log_density_given(parameters, self.concentrations)

    def log_density_given(self, parameters: Parameters, concentrations: Parameters) -> Array:
        """The log-density [] of independent Dirichlet distributions with these concentrations."""
        rows = (jnp.sum(dirichlet_log_density(one, parameters[name])) for name, one in concentrations.items())
        return sum(rows, jnp.zeros(()))

    def has(self, member: str) -> bool:
        """Whether records have noise, too, as no probability underflows."""
        return super().has(member) and (member != "noncentred" or self.interweaves)

    @property
    def bijections(self) -> dict[str, Bijection]:
        """The log-ratios of the probabilities."""
        return dict.fromkeys(self.names, SIMPLEX)

    @property
    def noncentred(self) -> NonCentred:
        """Uniform numbers for each record, unless probabilities underflow."""
        if not self.interweaves:
            return super().noncentred
        forms = tuple((field, self.form) for field in self.cells.fields)
        return NonCentred(self.noise_of, self.records_at, scores=UNIFORM_SCORES, forms=forms)

    def records_at(self, parameters: Parameters, noise: Array) -> Records:
        """The records whose cells contain these uniforms."""
        raise NotImplementedError

    def noise_of(self, key: Key, parameters: Parameters, records: Records) -> Array:
        """Uniforms drawn within the cells of the records."""
        raise NotImplementedError


def flat(tables: list[Array]) -> Array:
    """The entries of all tables, one after another."""
    return jnp.concatenate([one.ravel() for one in tables])


def check_size(plan: Elimination, fields: tuple[str, ...], argument: str, asked: str) -> None:
    """Raise if the largest table of the tree is too large, with what would make it smaller."""
    largest, size = plan.largest, plan.num_entries(plan.largest)
    if size <= MOST_ENTRIES:
        return
    shown = sorted(column for column in largest if column < len(fields))
    given = f"{asked} whose sums go through one of {size:,} entries, over the columns {[fields[one] for one in shown]}"
    widest = fields[max(shown, key=lambda column: plan.sizes[column])]
    remedy = f"Coarsen {widest!r}, which has most levels of these"
    if (found := without_table(plan)) is not None and all(column < len(fields) for column in plan.tables[found[0]]):
        place, rest = found
        left = tuple(fields[column] for column in plan.tables[place])
        remedy = f"Leave out the table {left}, and it has {rest:,}. Or c{remedy[1:]}"
    fail(argument, given, f"at most {MOST_ENTRIES:,} entries", f"{remedy}.")
