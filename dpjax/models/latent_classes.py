"""Latent classes: records of several columns that are independent given a class, which nobody sees."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

import jax
import jax.numpy as jnp
from jax.scipy.special import logsumexp
from jax.typing import ArrayLike

from dpjax._util.pytree import static
from dpjax._util.validation import check_count, check_positive, fail
from dpjax.base import Array, Key, Model, Parameters, Records
from dpjax.domain import Domain
from dpjax.models.arguments import as_array
from dpjax.models.columns import read_domain
from dpjax.models.distributions import accept_distributions
from dpjax.models.of_tables import OfProbabilities
from dpjax.models.priors import may_underflow
from dpjax.numerics.cells import all_edges, cell_edges, cells_at, count_cells, uniforms_within
from dpjax.numerics.dirichlet import draw_dirichlets, share_features
from dpjax.numerics.elimination import Elimination, plan_elimination
from dpjax.numerics.selection import select_indices

__all__ = ["LatentClasses", "latent_classes"]

SHARES = "class_probabilities"
SYMMETRIC = """\
labels: classes can change places, so that draws of one class mean nothing by themselves. Margins do:
  posterior.margin(...) has those of any columns"""


@accept_distributions
def latent_classes(
    domain: Mapping[str, int | Sequence[str]] | Domain,
    classes: int,
    class_concentration: ArrayLike = 1.0,
    level_concentration: ArrayLike = 1.0,
) -> Model:
    """Records of several columns that are independent given a hidden class: a mixture of products.

    P(x) = Σ_h class_probabilities[h] Π_c c_given_class[h, x_c], with one integer field [] for each column c.

    Parameters
    ----------
    domain
        The columns by name, each with its number of levels or the names of these; or a `dpjax.domain.Domain`.
    classes
        The number H of classes, at least 2. With enough of them every distribution is such a mixture.
    class_concentration
        The Dirichlet prior of ``class_probabilities`` [H]: one number for each class, or one for all.
    level_concentration
        That of each row of ``c_given_class`` [H, levels], the parameter of a column named c: one number for all levels.

    Notes
    -----
    The update is exact: the class of each record is drawn, and the probabilities are Dirichlet draws given these. The
    non-centred form has a uniform number for the class, and one for each column. It is left out if a concentration is
    so small that probabilities underflow. With at most 100,000 combinations of levels these are listed.

    The posterior is the same if classes change places, so that chains need not agree on which is which: R-hat of the
    parameters may be large. Look at ``posterior.margin("sex", "income")``, which does not depend on their order.

    Raises
    ------
    TypeError, ValueError
        If a column has fewer than two levels, or there are fewer than two classes. If concentrations are not positive,
        or of another shape.

    Examples
    --------
    >>> import dpjax, jax
    >>> model = dpjax.models.latent_classes({"sex": ["female", "male"], "age": 4}, classes=3)
    >>> parameters = model.sample_prior(jax.random.key(1))
    >>> {name: leaf.shape for name, leaf in parameters.items()}
    {'class_probabilities': (3,), 'sex_given_class': (3, 2), 'age_given_class': (3, 4)}
    """
    cells = read_domain(domain)
    number = check_count("classes", classes, "With one class the columns would be independent.", least=2)
    given = {"class_concentration": class_concentration, "level_concentration": level_concentration}
    shapes = {"class_concentration": ((), (number,)), "level_concentration": ((),)}
    for name, value in given.items():
        expected = " or ".join(f"shape {list(shape)}" for shape in shapes[name])
        if (shape := as_array(name, value, "positive numbers", "Pass 1.0.").shape) not in shapes[name]:
            fail(name, f"shape {list(shape)}", expected, "Pass one number for all.")
        check_positive(name, value)
    both = [jnp.asarray(value, float) for value in given.values()]
    interweaves = not any(may_underflow(jnp.atleast_1d(one)) for one in both)
    prior = jnp.broadcast_to(both[0], (number,))
    hidden = len(cells.sizes)
    tables = ((hidden,), *((column, hidden) for column in range(hidden)))
    plan = plan_elimination((*cells.sizes, number), tables)
    return LatentClasses(classes=prior, level=both[1], cells=cells, plan=plan, interweaves=interweaves)


class LatentClasses(OfProbabilities):
    """A mixture of products, as `latent_classes` describes it.

    Parameters
    ----------
    classes
        The Dirichlet prior of the classes [H].
    level
        The concentration [] of each level.
    cells
        The columns.
    plan
        A table of the class, which is a hidden column, and one of it and each column.
    interweaves
        Whether there is a non-centred form.
    """

    classes: Array
    level: Array
    cells: Domain = static()
    plan: Elimination = static()
    interweaves: bool = static()

    form: ClassVar[str] = "a uniform within its cell, given a class drawn anew"

    @property
    def sizes(self) -> dict[str, int]:
        """The number of levels by the name of the parameter, as ``sex_given_class``."""
        return {f"{field}_given_class": size for field, size in zip(self.cells.fields, self.cells.sizes, strict=True)}

    @property
    def names(self) -> tuple[str, ...]:
        """The shares of the classes, and the probabilities of the levels of each column."""
        return SHARES, *self.sizes

    @property
    def concentrations(self) -> Parameters:
        """The Dirichlet priors, in the shapes of the parameters."""
        rows = {name: jnp.full((len(self.classes), size), self.level) for name, size in self.sizes.items()}
        return {SHARES: self.classes, **rows}

    def weights(self, parameters: Parameters) -> list[Array]:
        """The log-probabilities of the classes and of the levels, of which none is below that of the smallest float."""
        return [share_features(parameters[name])[0].T for name in self.names]

    def log_density(self, parameters: Parameters, records: Records) -> Array:
        """The log-probability of each record [n]."""
        levels = self.levels(records)
        total = logsumexp(self.log_weights(parameters, levels), axis=0)
        return jnp.where(self.are_levels(levels), total, -jnp.inf)

    def log_weights(self, parameters: Parameters, levels: Array) -> Array:
        """The log-probability [H, n] of each class together with the levels [K, n] of the columns."""
        rows = (jnp.log(parameters[name])[:, own] for name, own in zip(self.sizes, levels, strict=True))
        return sum(rows, jnp.log(parameters[SHARES])[:, None])

    def update(self, key: Key, parameters: Parameters, records: Records) -> Parameters:
        """The classes given the parameters, and exact Dirichlet draws given the classes."""
        class_key, draw_key = jax.random.split(key)
        levels = self.levels(records)
        classes = self.draw_classes(class_key, parameters, levels)
        prior, number = self.concentrations, len(self.classes)
        after = {SHARES: prior[SHARES] + count_cells(classes, number)}
        for (name, size), own in zip(self.sizes.items(), levels, strict=True):
            after[name] = prior[name] + count_cells(classes * size + own, number * size).reshape(number, size)
        return draw_dirichlets(draw_key, after)

    def draw_classes(self, key: Key, parameters: Parameters, levels: Array) -> Array:
        """The class [n] of each record, given the levels [K, n] of its columns."""
        uniforms = jax.random.uniform(key, levels.shape[1:], float)
        return select_indices(self.log_weights(parameters, levels), uniforms)[0].astype(int)

    def records_at(self, parameters: Parameters, noise: Array) -> Records:
        """The records whose cells contain these uniforms [1 + K, n]."""
        classes = cells_at(noise[0], cell_edges(parameters[SHARES]))
        edges = (cell_edges(parameters[name])[classes] for name in self.sizes)
        levels = [
            jnp.sum(one[:, None] >= inner, axis=1, dtype=int) for one, inner in zip(noise[1:], edges, strict=True)
        ]
        return dict(zip(self.cells.fields, levels, strict=True))

    def noise_of(self, key: Key, parameters: Parameters, records: Records) -> Array:
        """Uniforms [1 + K, n] drawn within the cells of a class drawn for each record, and of its columns."""
        class_key, within_key = jax.random.split(key)
        levels = self.levels(records)
        classes = self.draw_classes(class_key, parameters, levels)
        edges = all_edges(cell_edges(parameters[SHARES]))
        lower, upper = [edges[classes]], [edges[classes + 1]]
        for name, own in zip(self.sizes, levels, strict=True):
            rows = all_edges(cell_edges(parameters[name]))
            lower.append(rows[classes, own])
            upper.append(rows[classes, own + 1])
        return uniforms_within(within_key, jnp.stack(lower), jnp.stack(upper))

    def entry_labels(self, level_names: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[tuple[str, ...], ...]]:
        """The numbers of the classes, and the names of the levels."""
        classes = tuple(map(str, range(len(self.classes))))
        named = zip(self.sizes, self.named_levels(level_names), strict=True)
        return {SHARES: (classes,)} | {name: (classes, levels) for name, levels in named}

    def describe(self) -> str:
        """As of any model, and what the symmetry of the classes means for its draws."""
        return f"{super().describe()}\n{SYMMETRIC}"
