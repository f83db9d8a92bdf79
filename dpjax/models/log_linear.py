"""Records of many columns, with effects of the tables that some of the columns form: log-linear models."""

from collections.abc import Mapping, Sequence

import numpy as np

from dpjax._util.pytree import static
from dpjax._util.validation import describe, fail
from dpjax.base import Array, Key, Model, Parameters
from dpjax.domain import Domain
from dpjax.models.columns import read_domain, read_tables
from dpjax.models.distributions import accept_distributions
from dpjax.models.of_tables import OfSeenTables, check_size
from dpjax.models.priors import NormalPrior
from dpjax.models.table_effects import EffectLayout, layout_of
from dpjax.models.table_starts import starts_at_tables
from dpjax.numerics.elimination import Elimination, log_normaliser, plan_elimination
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


class LogLinear(OfSeenTables):
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

    def log_total(self, weights: list[Array]) -> Array:
        """The logarithm [] of the sum of the weights of all combinations of levels."""
        return log_normaliser(self.plan, weights)

    def first_parameters(self, key: Key, release: PrivateRelease, num_chains: int) -> Parameters | None:
        """Effects [chain, k] near the released tables; None if no tables of these columns were released."""
        return starts_at_tables(self, key, release, num_chains)

    def entry_labels(self, level_names: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[tuple[str, ...], ...]]:
        """The columns of each effect, with the numbers of their contrasts."""
        del level_names
        names = []
        for term in self.layout.terms:
            for contrast in np.ndindex(*(self.cells.sizes[column] - 1 for column in term)):
                pairs = zip(term, contrast, strict=True)
                names.append(":".join(f"{self.cells.fields[column]}.{number + 1}" for column, number in pairs))
        return {"effects": (tuple(names),)}
